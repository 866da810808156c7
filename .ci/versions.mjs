// Runs the table of `Effect.retry` under each published version of Effect that the peer range admits, and under 4.0.0 for
// information: what is not public in Effect may change with any of them. `tried` in src/engine/frames.ts names the
// versions: add what the last line reports as new.
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { run } from "./step.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const range = JSON.parse(readFileSync(`${root}package.json`, "utf8")).peerDependencies.effect
const forInformation = ["4.0.0"]

const admitted = [JSON.parse(execFileSync("npm", ["view", `effect@${range}`, "version", "--json"], { encoding: "utf8" }))]
  .flat()
const versions = [...admitted, ...forInformation]
const tests = ["test/core/PlainRetry.test.ts", "test/engine/frames.test.ts"].filter((file) => existsSync(root + file))

// A folder with the sources, the tests and the runner, and each version under a name of its own.
const folder = mkdtempSync(join(tmpdir(), "effect-versions-"))
process.on("exit", () => rmSync(folder, { force: true, recursive: true }))
const packages = versions.map((version) => `effect-${version}@npm:effect@${version}`)
writeFileSync(`${folder}/package.json`, JSON.stringify({ private: true, type: "module" }))
execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", ...packages], {
  cwd: folder,
  stdio: ["ignore", "inherit", "inherit"]
})
for (const path of ["src", "test", "tsconfig.json", "vitest.config.ts"]) {
  cpSync(root + path, `${folder}/${path}`, { recursive: true, filter: (file) => !file.includes("node_modules") })
}
// A copy, so that it imports the version that stands next to it.
mkdirSync(`${folder}/node_modules/@effect`)
cpSync(`${root}node_modules/@effect/vitest`, `${folder}/node_modules/@effect/vitest`, { recursive: true })
symlinkSync(`${root}node_modules/vitest`, `${folder}/node_modules/vitest`)

const resultOf = (version) => {
  console.log(`\n--- effect ${version}`)
  // The caches of the runner name files of the version before.
  for (const name of ["effect", ".vite", ".vite-temp", ".vitest-cache"]) {
    rmSync(`${folder}/node_modules/${name}`, { force: true, recursive: true })
  }
  symlinkSync(`${folder}/node_modules/effect-${version}`, `${folder}/node_modules/effect`)
  return run(2, process.execPath, `${root}node_modules/vitest/vitest.mjs`, "run", "--root", folder, ...tests)
}
const results = versions.map((version) => ({ version, result: resultOf(version) }))

console.log(`\nPeer range ${range}`)
for (const { result, version } of results) {
  console.log(`effect ${version.padEnd(8)} ${admitted.includes(version) ? "" : "for information: "}${result}`)
}
const frames = `${root}src/engine/frames.ts`
const [, named = ""] = existsSync(frames) ? /\btried\b[^=\n]*= \[([^\]]*)\]/.exec(readFileSync(frames, "utf8")) ?? [] : []
const fresh = results.filter(({ result, version }) => result === "ok" && !named.includes(`"${version}"`))
if (fresh.length > 0) console.log(`New to src/engine/frames.ts: ${fresh.map(({ version }) => version).join(", ")}`)
process.exitCode = results.some(({ result, version }) => admitted.includes(version) && result !== "ok") ? 1 : 0
