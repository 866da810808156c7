/**
 * Builds the playground: one HTML file that needs nothing else, neither a server nor a network.
 */
import { build } from "esbuild"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { tsImport } from "tsx/esm/api"
import { licensesOf } from "./licenses.mjs"

const lab = fileURLToPath(new URL("..", import.meta.url))
const tsconfig = join(lab, "playground", "tsconfig.json")

const bundled = async (entry) => {
  const { metafile, outputFiles } = await build({
    absWorkingDir: lab,
    entryPoints: [`playground/${entry}`],
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    outdir: "out",
    format: "iife",
    platform: "browser",
    target: "es2023",
    legalComments: "none",
    tsconfig,
    logLevel: "warning"
  })
  return { metafile, text: outputFiles[0].text }
}

/** The colors of the lines of policies. */
const lines = async () => {
  const { darkRules, lookOf } = await tsImport("../src/cli/charts/palette.ts", { parentURL: import.meta.url, tsconfig })
  const { stopRules } = await tsImport("../src/cli/charts/timePanel.ts", { parentURL: import.meta.url, tsconfig })
  const rules = (ground) => [0, 1, 2, 3].map((place) => `.line-${place}{stroke:${lookOf(place).color[ground]}}`).join("")
  return `${rules("light")}${stopRules}@media (prefers-color-scheme: dark){${rules("dark")}${darkRules("figure svg")}}`
}

/** As a content security policy names what it allows. */
const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** The page, as text. It may run nothing else, and load nothing. */
export const playground = async () => {
  const [main, worker, colors] = await Promise.all([bundled("main.tsx"), bundled("worker.ts"), lines()])
  const style = readFileSync(join(lab, "playground/style.css"), "utf8") + colors
  const program = main.text.replaceAll("</script", "<\\/script")
  const outputs = { ...main.metafile.outputs, worker: Object.values(worker.metafile.outputs)[0] }
  const licenses = licensesOf({ outputs }, lab)
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${hashOf(program)}; worker-src blob:; style-src ${
    hashOf(style)
  }; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Playground: effect-retry</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<div id="app"><noscript>The playground simulates in your browser, so it needs JavaScript. The command line does the same: npx effect-retry</noscript></div>
<script type="application/json" id="worker">${JSON.stringify(worker.text).replaceAll("<", "\\u003c")}</script>
<script>${program}</script>
<!--
This page contains parts of these packages.

${licenses.replaceAll("--", "==")}
-->
</body>
</html>
`
}
