// Bundles what TypeScript has built into few files, because loading a file takes longer than running what is in it:
// everything the index needs is in one, and each public module exports its part of it. Part of `npm run build:library`.
//
//   node .config/bundle.mjs [folder]  # of the output of TypeScript, default dist
import babel from "@babel/core"
import annotatePureCalls from "babel-plugin-annotate-pure-calls"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const root = fileURLToPath(new URL("..", import.meta.url))
const dist = `${resolve(root, process.argv[2] ?? "dist")}/`

/** As TypeScript leaves them: the index, so that bundlers follow its namespaces, and what Effect 3 does not have. */
const kept = ["index.js", "internal/requiresEffect4.js"]

/** The published name of the latter: the error that Effect 3 causes ends with it. */
const needsEffect4 = "effect-retry needs effect 4.1 (npm install effect@4).js"

/** A bundler drops what an app does not use only if calls at the top of a file are marked as pure. */
const annotated = {
  name: "annotated",
  resolveId: (source) => source.endsWith("/requiresEffect4.js") ? { external: true, id: `./${needsEffect4}` } : undefined,
  load: (id) => {
    if (!id.startsWith(dist)) return undefined
    const options = { babelrc: false, configFile: false, plugins: [annotatePureCalls] }
    return { code: babel.transformSync(readFileSync(id, "utf8"), options).code }
  }
}

const bundle = (input) =>
  rolldown({ external: /^[a-z@]/, input, platform: "neutral", plugins: [annotated], treeshake: false })

const { exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8"))
const modules = Object.values(exports)
  .flatMap((file) => /^\.\/dist\/(.*)\.js$/.exec(file)?.[1] ?? [])
  .filter((name) => name !== "index")

/** What these modules load. */
const loadedBy = async (...names) => {
  const { output } = await (await bundle(names.map((name) => `${dist}${name}.js`))).generate()
  const ids = output.flatMap(({ moduleIds }) => moduleIds ?? [])
  return new Set(ids.filter((id) => !kept.some((file) => id === dist + file)))
}

// Two files, because bundlers drop whole files more reliably than parts of them: what retrying takes, and the rest.
const core = await loadedBy("Attempt", "aws/AwsModes")
const more = await loadedBy("index")

const library = await bundle(Object.fromEntries(modules.map((name) => [name, `${dist}${name}.js`])))
const built = await library.generate({
  chunkFileNames: "internal/[name].js",
  codeSplitting: {
    groups: [
      { name: "core", test: (id) => core.has(id) },
      { name: "more", test: (id) => more.has(id) && !core.has(id) }
    ]
  }
})

for (const file of readdirSync(dist, { recursive: true })) {
  if (file.endsWith(".js") && !kept.includes(file)) rmSync(dist + file)
}
for (const { code, fileName } of built.output) {
  mkdirSync(dirname(dist + fileName), { recursive: true })
  writeFileSync(dist + fileName, code)
}
renameSync(`${dist}${kept[1]}`, `${dist}internal/${needsEffect4}`)
const index = readFileSync(`${dist}index.js`, "utf8")
writeFileSync(`${dist}index.js`, index.replace(kept[1], `internal/${needsEffect4}`))
