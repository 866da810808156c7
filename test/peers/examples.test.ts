import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { assert, describe, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = path.join(root, "examples")

const filesIn = (name: string) =>
  fs.readdirSync(path.join(folder, name)).filter((file) => file.endsWith(".ts")).map((file) => path.join(name, file))

/** A server that stays up and the durable workflows have tests of their own; the procedures of an example print nothing. */
const others = new Set(["metrics.ts", "durable.ts", "durableEngine.ts", "rpcOrders.ts"])

const lessons = [...filesIn(""), ...filesIn("sharing")].filter((file) => !others.has(file))

/** What the index promises of a file, and what it prints is to contain. */
const rows = fs.readFileSync(path.join(folder, "README.md"), "utf8").split("\n").flatMap((line) => {
  const [, file, prints] = /^\| \[[^\]]+\]\(([^)]+\.ts)\).*\| .* \| (.*) \|$/.exec(line) ?? []
  return file === undefined ? [] : [{ file, line, prints: prints! }]
})

const promisedOf = (name: string) =>
  rows.filter(({ file }) => file === name)
    .flatMap(({ prints }) => Array.from(prints.matchAll(/`([^`]+)`/g), ([, text]) => text!))

const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href

/** In any folder, without the environment of this machine, and without warnings of Node and of the AWS SDK about its version. */
const started = (file: string) =>
  new Promise<{ readonly code: number | null; readonly out: string; readonly errors: string }>((resolve, reject) => {
    const { HOME, PATH } = process.env
    const child = spawn(process.execPath, ["--import", tsx, path.join(folder, file)], {
      cwd: os.tmpdir(),
      env: { HOME, PATH, NODE_NO_WARNINGS: "1", TSX_TSCONFIG_PATH: path.join(root, "tsconfig.json") },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 300_000
    })
    let out = ""
    let errors = ""
    child.stdout.on("data", (text) => out += text)
    child.stderr.on("data", (text) => errors += text)
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, out, errors }))
  })

describe.concurrent("examples as programs", () => {
  it.each(lessons)("%s prints what the index promises, and ends", async (file) => {
    const { code, errors, out } = await started(file)
    assert.deepStrictEqual([code, errors], [0, ""])
    assert.match(out, /\S/)
    for (const text of promisedOf(file)) assert.include(out, text)
  })
})

it("the index begins with three examples that need no AWS", () => {
  assert.deepStrictEqual(rows.slice(0, 3).map(({ file }) => file), [
    "start.ts",
    "first-retry.ts",
    "errors-with-facts.ts"
  ])
  assert.isTrue(rows.slice(0, 3).every(({ line }) => !/aws/i.test(line)))
})
