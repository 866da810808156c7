/** What `.ci/run` makes of the reports of the tests. */
import { assert, it } from "@effect/vitest"

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
const down = "PeerError: nginx does not listen on 8080: no answer"
const wrong = "AssertionError: expected 'PeerError: EADDRINUSE' to equal 'spawn a ETIMEDOUT'"

it("a file that failed for its environment alone runs again, and no other", () => {
  const hook = { ...fileOf("hook"), errors: [down] }
  const files = [fileOf("a", inUse), fileOf("b", wrong), fileOf("c", slow, wrong), fileOf("d", slow, down), hook]
  assert.deepStrictEqual(environmental(reportOf(...files, fileOf("passed"), fileOf("e", "Error: Test timed out"))), [
    { file: "a", error: inUse },
    { file: "d", error: slow },
    { file: "hook", error: down }
  ])
  assert.deepStrictEqual(environmental(undefined), [])
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
