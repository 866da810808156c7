/**
 * Bundles the command line into bin.js of a folder, dist unless another is given. What it takes from other packages is inside, with their licences beside it;
 * `effect` is the peer of the package.
 */
import { build } from "esbuild"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const folder = process.argv[2] ?? "dist"
const { version } = JSON.parse(readFileSync("package.json", "utf8"))

const { metafile } = await build({
  entryPoints: ["src/cli/bin.ts"],
  outfile: join(folder, "bin.js"),
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  platform: "node",
  target: "node20",
  external: ["effect"],
  define: { VERSION: JSON.stringify(version) },
  banner: { js: "#!/usr/bin/env node" },
  legalComments: "none",
  tsconfigRaw: "{}",
  logLevel: "warning"
})

const [output] = Object.values(metafile.outputs)
const packages = new Set(
  Object.entries(output.inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .flatMap(([path]) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? [])
)
const texts = [...packages].sort().map((folder) => {
  const { license, name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const files = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(licen[cs]e|notice|copying)/i.test(entry.name))
    .map((entry) => entry.name)
    .sort()
  if (files.length === 0 && license !== "MIT") throw new Error(`${name} is bundled and has no licence file`)
  return [`${name} ${version} (${license})`, ...files.map((file) => readFileSync(join(folder, file), "utf8").trim())]
    .join("\n\n")
})
writeFileSync(
  join(folder, "bin.licenses.txt"),
  `bin.js contains parts of these packages.\n\n${texts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`)
