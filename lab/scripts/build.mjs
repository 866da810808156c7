/**
 * Builds the lab into dist of a folder, its own unless another is given: the command line and what runs in its threads as one
 * file each, with what they take from other packages inside and the licenses beside them; the JSON Schema of scenarios; and the
 * playground. Into its own folder it also builds the modules and their types, which import `effect` and `effect-retry`.
 */
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { tsImport } from "tsx/esm/api"
import { licensesOf } from "./licenses.mjs"
import { playground } from "./playground.mjs"

const lab = fileURLToPath(new URL("..", import.meta.url))
const tsconfig = join(lab, "..", "tsconfig.json")
const other = process.argv[2]
const dist = join(other ?? lab, "dist")
const { peerDependencies, version } = JSON.parse(readFileSync(join(lab, "package.json"), "utf8"))

const common = {
  absWorkingDir: lab,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  legalComments: "none",
  tsconfig,
  logLevel: "warning"
}

/** With another Effect the imports of the command line fail before any of it runs: something has to run before them. */
const launcher = (effect) => `#!/usr/bin/env node
import("./commandLine.js").catch((error) => {
  if (!/^ERR_(PACKAGE_PATH_NOT_EXPORTED|MODULE_NOT_FOUND)$/.test(error.code)) throw error
  process.stderr.write(\`effect-retry: needs Effect ${effect}: npm install effect@${effect} (\${error.message})\\n\`)
  process.exitCode = 2
})
`

const buildCommandLine = async () => {
  const { metafile } = await build({
    ...common,
    entryPoints: { commandLine: "src/cli/bin.ts", worker: "src/cli/worker.ts" },
    outdir: dist,
    minify: true,
    metafile: true,
    // The main file of jsonc-parser requires its parts in a way that cannot be bundled.
    mainFields: ["module", "main"],
    external: ["effect"],
    define: { VERSION: JSON.stringify(version) }
  })
  writeFileSync(join(dist, "bin.js"), launcher(peerDependencies.effect), { mode: 0o755 })
  writeFileSync(
    join(dist, "bin.licenses.txt"),
    `commandLine.js and worker.js contain parts of these packages.\n\n${licensesOf(metafile, lab)}\n`
  )
}

const buildSchema = async () => {
  const Simulator = await tsImport("../src/Simulator.ts", { parentURL: import.meta.url, tsconfig })
  writeFileSync(join(dist, "scenario.schema.json"), `${JSON.stringify(Simulator.jsonSchema(), null, 2)}\n`)
}

const buildModules = () =>
  build({
    ...common,
    entryPoints: ["src/Expect.ts", "src/Explain.ts", "src/Simulator.ts"],
    outdir: dist,
    splitting: true,
    external: ["effect", "effect-retry"]
  })

/** The compiler also writes the types of what is borrowed, beside those of the lab; they are let go. */
const buildTypes = () => {
  const types = join(dist, "types")
  execFileSync(process.execPath, [tsc, "-p", join(lab, "tsconfig.build.json")], { stdio: "inherit" })
  const own = join(types, "lab", "src")
  for (const path of readdirSync(own, { recursive: true, encoding: "utf8" })) {
    if (!path.endsWith(".d.ts")) continue
    mkdirSync(dirname(join(dist, path)), { recursive: true })
    renameSync(join(own, path), join(dist, path))
  }
  rmSync(types, { recursive: true })
}

const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", new URL("..", import.meta.url)))

rmSync(dist, { recursive: true, force: true })
mkdirSync(dist, { recursive: true })
await buildCommandLine()
await buildSchema()
writeFileSync(join(dist, "playground.html"), await playground())
if (other === undefined) {
  await buildModules()
  buildTypes()
}
