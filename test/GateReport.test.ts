/** What `.ci/run` makes of its steps, and of the reports of their tests. */
import { assert, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const { counted, environmental, failures, merged, reportAt, resultOf } = await import(
  new URL("../.ci/report.mjs", import.meta.url).href
)

const root = fileURLToPath(new URL("..", import.meta.url))

/** Runs a module in a process of its own; what it prints, and what its children print. */
const printed = (module: string, env: NodeJS.ProcessEnv = {}): string =>
  execFileSync(process.execPath, ["--input-type=module", "--eval", module], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"]
  })

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

it("a step has its result; one that hangs is killed with everything that it started", () => {
  const steps = [
    [1, "true"],
    [1, "bash", "-c", "exit 3"],
    [1, "bash", "-c", "kill -KILL $$"],
    [1, "no-such-program"],
    [0.01, "bash", "-c", `trap "" TERM; (sleep 20; echo survived) & wait`]
  ]
  const script = `import { run } from "./.ci/step.mjs"
console.log(JSON.stringify(${JSON.stringify(steps)}.map((step) => run(...step))))`
  // A folder of the PATH that is not for everyone makes it EACCES.
  const results: ReadonlyArray<string> = JSON.parse(printed(script))
  assert.deepStrictEqual(results.map((result) => result.replace("EACCES", "ENOENT")), [
    "ok",
    "RED: exit code 3",
    "RED: SIGKILL",
    "RED: spawnSync no-such-program ENOENT",
    "RED: still running after 0.01 minutes"
  ])
})

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
  printed(script, { REPORT })
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

it("what failed is named, with the first line of its first error", () => {
  const report = { ...reportOf({ ...fileOf("a", `${wrong}\nmore`), errors: [down] }), unhandled: ["Error: b"] }
  assert.deepStrictEqual(failures(report), [`a \n  ${down}`, `a ${wrong}\nmore\n  ${wrong}`, "unhandled \n  Error: b"])
  assert.deepStrictEqual(failures(undefined), ["unhandled \n  no report"])
})

it("the second result of a file counts, if there is one", () => {
  const first = reportOf(fileOf("a", inUse), fileOf("b", wrong))
  assert.deepStrictEqual(counted(merged(first, reportOf(fileOf("a")))), { passed: 2, failed: 1, skipped: 0 })
  assert.deepStrictEqual(counted(merged(first, undefined)), { passed: 2, failed: 3, skipped: 0 })
  const again = { files: [fileOf("a")], unhandled: ["Error: c"] }
  assert.deepStrictEqual(counted(merged(first, again)), { passed: 2, failed: 2, skipped: 0 })
})

it("a run is ok when tests passed and none failed, was skipped or never ran", () => {
  const inState = (state: string) => ({ file: state, tests: [{ name: state, state, errors: [] }], errors: [] })
  const passed = inState("passed")
  assert.deepStrictEqual(
    [
      reportOf(passed),
      reportOf(),
      reportOf(passed, inState("skipped")),
      reportOf(passed, inState("pending")),
      reportOf(passed, inState("failed")),
      undefined
    ].map(resultOf),
    [
      "ok",
      "RED: 0 passed, 0 failed, 0 skipped",
      "RED: 1 passed, 0 failed, 1 skipped",
      "RED: 1 passed, 0 failed, 1 skipped",
      "RED: 1 passed, 1 failed, 0 skipped",
      "RED: no report"
    ]
  )
})

it("a file without a report is none, whatever else it holds", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  const reports = ["null", "{}", `{"files":[]}`, `{"files":[{}],"unhandled":[]}`, `{"files":[`, ""].map((text) => {
    fs.writeFileSync(path.join(folder, "report.json"), text)
    return reportAt(path.join(folder, "report.json"))
  })
  assert.deepStrictEqual(reports, reports.map(() => undefined))
  fs.writeFileSync(path.join(folder, "report.json"), JSON.stringify(reportOf(fileOf("a"))))
  assert.deepStrictEqual(reportAt(path.join(folder, "report.json")), reportOf(fileOf("a")))
  assert.isUndefined(reportAt(path.join(folder, "none.json")))
  fs.rmSync(folder, { recursive: true })
})

it("a broken file, a failed hook, an unhandled error and a run without a report count as failures", () => {
  const broken = { file: "a", tests: [{ name: "b", state: "skipped", errors: [] }], errors: ["SyntaxError: c"] }
  assert.deepStrictEqual(counted({ files: [broken], unhandled: ["Error: d"] }), { passed: 0, failed: 2, skipped: 1 })
  assert.deepStrictEqual(counted(undefined), { passed: 0, failed: 1, skipped: 0 })
})
