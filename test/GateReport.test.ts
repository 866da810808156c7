/** What `.ci/run` makes of the reports of the tests. */
import { assert, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const { counted, environmental, merged } = await import(new URL("../.ci/report.mjs", import.meta.url).href)

const fileOf = (file: string, ...errors: ReadonlyArray<string>) => ({
  file,
  tests: [
    { name: "passes", state: "passed", errors: [] },
    ...errors.map((error) => ({ name: error, state: "failed", errors: [error] }))
  ],
  errors: []
})
const reportOf = (...files: ReadonlyArray<object>) => ({ files, unhandled: [] })

const inUse = "Error: listen EADDRINUSE: address already in use 127.0.0.1:6379"
const slow = "Error: spawnSync chromium ETIMEDOUT"
const killed = "Error: Command failed: chromium\n\nkilled: true, signal: SIGTERM"
const down = "PeerError: nginx does not listen on 8080: no answer"
const wrong = "AssertionError: expected 'PeerError: listen EADDRINUSE' to equal 'spawn a ETIMEDOUT'"

it("a file that failed for its environment alone runs again, and no other", () => {
  const hook = { ...fileOf("hook"), errors: [down] }
  const files = [
    fileOf("a", inUse),
    fileOf("b", wrong),
    fileOf("c", slow, wrong),
    fileOf("d", slow, down, killed),
    hook
  ]
  assert.deepStrictEqual(environmental(reportOf(...files, fileOf("passed"), fileOf("e", "Error: Test timed out"))), [
    { file: "a", error: inUse },
    { file: "d", error: slow },
    { file: "hook", error: down }
  ])
  assert.deepStrictEqual(environmental(undefined), [])
})

it("a failed assertion is no environment, wherever it stands, and neither is a port that a test asserts", () => {
  const errors = [`PeerError: ${wrong}`, `${inUse}\ncause: ${wrong}`, `${killed}\n${wrong}`, "Error: got EADDRINUSE"]
  assert.deepStrictEqual(environmental(reportOf(...errors.map((error) => fileOf(error, error)))), [])
})

it("an error has its causes and what killed its program; one that nothing handled belongs to its file", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  const REPORT = path.join(folder, "report.json")
  const config = {
    config: false,
    watch: false,
    include: ["test/utils/failing.spec.ts"],
    reporters: ["./.ci/reporter.mjs"]
  }
  const script = `import { startVitest } from "vitest/node"
await startVitest("test", [], ${JSON.stringify(config)})
process.exitCode = 0`
  execFileSync(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...process.env, REPORT },
    stdio: "ignore"
  })
  const report = JSON.parse(fs.readFileSync(REPORT, "utf8"))
  fs.rmSync(folder, { recursive: true })
  const [file] = report.files
  assert.deepStrictEqual(file.tests.map(({ errors, state }: any) => [state, ...errors]), [
    ["failed", "Error: Command failed: sleep 300\n\nkilled: true, signal: SIGTERM"],
    ["failed", "Error: outer\ncause: Error: inner\ncause: AssertionError: wrong"],
    ["failed", "Error: its own cause\ncause: Error: its own cause"],
    ["passed"]
  ])
  assert.lengthOf(file.errors, 1)
  assert.match(file.errors[0], /^Error: listen EADDRINUSE: address already in use 127\.0\.0\.1:\d+$/)
  assert.deepStrictEqual(report.unhandled, [])
  assert.deepStrictEqual(environmental({ files: [{ ...file, tests: file.tests.slice(3) }], unhandled: [] }), [
    { file: "test/utils/failing.spec.ts", error: file.errors[0] }
  ])
})

it("the second result of a file counts, if there is one", () => {
  const first = reportOf(fileOf("a", inUse), fileOf("b", wrong))
  assert.deepStrictEqual(counted(merged(first, reportOf(fileOf("a")))), { passed: 2, failed: 1, skipped: 0 })
  assert.deepStrictEqual(counted(merged(first, undefined)), { passed: 2, failed: 3, skipped: 0 })
  const again = { files: [fileOf("a")], unhandled: ["Error: c"] }
  assert.deepStrictEqual(counted(merged(first, again)), { passed: 2, failed: 2, skipped: 0 })
})

it("a broken file, a failed hook, an unhandled error and a run without a report count as failures", () => {
  const broken = { file: "a", tests: [{ name: "b", state: "skipped", errors: [] }], errors: ["SyntaxError: c"] }
  assert.deepStrictEqual(counted({ files: [broken], unhandled: ["Error: d"] }), { passed: 0, failed: 2, skipped: 1 })
  assert.deepStrictEqual(counted(undefined), { passed: 0, failed: 1, skipped: 0 })
})
