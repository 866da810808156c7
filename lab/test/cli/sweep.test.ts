import { assert, describe, it } from "@effect/vitest"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { folder, run } from "./commandLine.ts"

const here = folder()
const file = join(here, "limited.json")

/** A limit of 16 a second lets 80 % of 20 calls pass. */
const limited = {
  name: "limited",
  duration: "10 seconds",
  fleets: [{ name: "app", to: "api", rate: 20, arrivals: "even" }],
  services: [{ name: "api", limit: { requests: 1 } }],
  expect: { succeed: ">= 80 %" }
}
writeFileSync(file, JSON.stringify(limited))

const sweep = (...args: ReadonlyArray<string>) =>
  run(["sweep", file, "services.0.limit.requests", "--runs", "1", ...args])

describe("sweep", () => {
  it("prints the values that were tried, and the smallest that satisfies the expectations", async () => {
    const { code, err, out } = await sweep("--from", "10", "--to", "22")
    assert.deepStrictEqual([code, err], [0, ""])
    assert.strictEqual(
      out,
      `limited: 1 run of each value, seeds 1 to 1

services.0.limit.requests
10                         FAILED  not succeed >= 80 %: 50 %
12                         FAILED  not succeed >= 80 %: 60 %
14                         FAILED  not succeed >= 80 %: 70 %
15                         FAILED  not succeed >= 80 %: 75 %
16                             ok  succeed 80 %
18                             ok  succeed 90 %
20                             ok  succeed 100 %
22                             ok  succeed 100 %

The smallest services.0.limit.requests that satisfies the expectations is 16; 15 does not.
`
    )
  })

  it("looks for the expectations given by flags instead", async () => {
    const { out } = await sweep(
      "--from",
      "10",
      "--to",
      "22",
      "--expect",
      "succeed <= 60 %",
      "--expect",
      "sendsPerCall<=1"
    )
    assert.include(out, "The largest services.0.limit.requests that satisfies the expectations is 12; 13 does not.")
  })

  it("says when the answer is at an end of the range, or beyond it", async () => {
    assert.include(
      (await sweep("--from", "4", "--to", "16")).out,
      "satisfies the expectations is 16; 15 does not.\nIt is at the end of the range: there may be better values beyond it.\n"
    )
    assert.include(
      (await sweep("--from", "16", "--to", "30")).out,
      "The expectations hold from 16 to 30.\nEvery value tried satisfies them: the answer is beyond the range.\n"
    )
  })

  it("says when it is not monotonic", async () => {
    writeFileSync(
      join(here, "both.json"),
      JSON.stringify({
        ...limited,
        fleets: [{
          ...limited.fleets[0],
          policy: { steps: [{ fixed: { delay: 0 } }, { maxAttempts: 2 }, "whileRetryable"] }
        }],
        expect: { succeed: "<= 70 %", sendsPerCall: "<= 1.8" }
      })
    )
    const { out } = await run([
      "sweep",
      join(here, "both.json"),
      "services.0.limit.requests",
      ..."--from 1 --to 41 --runs 1".split(" ")
    ])
    assert.include(out, "It is not monotonic: the expectations start and stop holding along the range")
  })

  it("exits with 3 if no value satisfies the expectations", async () => {
    const { code, err, out } = await sweep("--from", "1", "--to", "9")
    assert.strictEqual(code, 3)
    assert.strictEqual(
      err,
      "effect-retry: no value of services.0.limit.requests that was tried satisfies the expectations\n"
    )
    assert.include(out, "9                          FAILED")
  })

  it("prints the data, and takes durations", async () => {
    const { out } = await run([
      "sweep",
      file,
      "services.0.limit.per",
      ..."--from 500ms --to 2s --step 100ms --runs 1 --json".split(" "),
      "--expect",
      "succeed >= 5 %"
    ])
    const { kind, path, points, scenario, step } = JSON.parse(out)
    assert.deepStrictEqual([scenario, path, kind, step], ["limited", "services.0.limit.per", "largest", 100])
    assert.deepStrictEqual([points[0].value, points.at(-1).value], [500, 2000])
  })

  for (
    const [what, args, problem] of [
      [
        "a scenario that expects nothing",
        ["outage", "fleets.0.rate", "--from", "1", "--to", "2"],
        "add one with --expect"
      ],
      [
        "an unknown expectation",
        [file, "seed", "--from", "1", "--to", "2", "--expect", "succed >= 1"],
        "expect.succed: is not a key here: did you mean succeed?"
      ],
      [
        "an unknown path",
        [file, "fleets.0.rat", "--from", "1", "--to", "2"],
        "fleets[0].rat: is not a key here: did you mean rate?"
      ],
      [
        "an empty range",
        [file, "fleets.0.rate", "--from", "2", "--to", "2"],
        "fleets.0.rate: cannot go from 2 to 2"
      ],
      ["no number", [file, "fleets.0.rate", "--from", "x", "--to", "2"], "a number, or a duration such as 250ms"]
    ] as const
  ) {
    it(`refuses ${what}, with 2`, async () => {
      const { code, err, out } = await run(["sweep", ...args])
      assert.deepStrictEqual([code, out], [2, ""])
      assert.include(err, problem)
    })
  }
})
