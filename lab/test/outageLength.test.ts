import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { budget, firstOf } from "../../test/utils/budget.ts"
import { inputOf as comparedInput } from "../scripts/overload.ts"
import * as Simulator from "../src/Simulator.ts"
import { inputOf } from "./utils/simulate.ts"

const read = (file: string): string => fs.readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")

const figure = (text = ""): number => Number(text.replaceAll(",", ""))

/** Rows of the page on overload: processes, then how long after the outage they recover, in seconds, with the quota alone and with the limit. */
const rows = [
  ...read("docs/overload.md").matchAll(/^\| ([\d,]+) \| [\d.]+ \| ([\d,]+) s \| [\d.]+ \| ([\d,]+) s \|$/gm)
].map(([, processes, quota, limit]) => [figure(processes), figure(quota), figure(limit)] as const)

type Row = typeof rows[number]

/** Runs of an hour of virtual time are for the gate. */
const isRun = ([processes]: Row): boolean => processes <= budget(1000, 10)

/** How long after the outage a run recovers, in seconds. */
const recoveredAfter = (input: unknown) =>
  Effect.flatMap(Simulator.decode(input), (scenario) =>
    Effect.map(Simulator.run(scenario), (result) => {
      const { afterMillis } = Simulator.summarize([result]).recovery
      return afterMillis === undefined ? Infinity : afterMillis.mean / 1000
    }))

const outage = (processes: number, policy: string, seconds: number) =>
  inputOf("outage", { scenario: { duration: seconds * 1000 }, fleet: { processes, policy } })

/** One run of each: several differ by less than a tenth, or by two seconds. */
const near = (found: number, figure: number) => assert.closeTo(found, figure, Math.max(2, 0.1 * figure))

describe("how long an outage of ten seconds lasts for callers", () => {
  it("is in four rows on the page, from 1 to 1,000 processes", () => {
    assert.deepStrictEqual(rows.map(([processes]) => processes), [1, 10, 100, 1000])
  })

  for (const [processes, quota, limit] of rows.filter(isRun)) {
    it.live(`is ${quota} s with the quotas of ${processes} processes, and ${limit} s with their limits`, () =>
      Effect.gen(function*() {
        near(yield* recoveredAfter(outage(processes, "awsStandard", 30 + 1.15 * quota)), quota)
        near(yield* recoveredAfter(outage(processes, "limited", 40 + 1.3 * limit)), limit)
      }))
  }

  it("is said by the README in minutes and seconds of the page", () => {
    const [one, , hundred, thousand] = rows
    const minutes = (seconds: number) => Math.round(seconds / 60)
    assert.include(
      read("README.md"),
      `lasts ${minutes(one![1])} minutes if all callers are in one process, ${
        minutes(hundred![1])
      } minutes with 100 processes and ${minutes(thousand![1])} minutes with 1,000`
    )
    assert.match(read("README.md"), new RegExp(`lasts ${one![2]} s, ${hundred![2]} s and ${thousand![2]} s\\.`))
  })

  for (const mechanism of firstOf(["AIMD", "Gradient2", "quota"], 0)) {
    it.live(`is 6 minutes with ${mechanism} in each of 100 processes`, () =>
      Effect.gen(function*() {
        const input = { ...comparedInput("outage", mechanism, 100, 1), duration: "600 seconds" }
        assert.strictEqual(Math.round((yield* recoveredAfter(input)) / 60), 6)
      }))
  }

  for (const [processes, seconds] of firstOf([[1, 86], [100, 179]] as const, 1)) {
    it.live(`is ${seconds} s after a minute at half the speed, with the quotas of ${processes} processes`, () =>
      Effect.gen(function*() {
        const input = { ...comparedInput("brownout", "quota", processes, 1), duration: "400 seconds" }
        near(yield* recoveredAfter(input), seconds)
      }))
  }

  for (const policy of firstOf(["envoy", "finagle"], 0)) {
    it.live(`is longer than 2,000 s with the budget of ${policy} alone`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* recoveredAfter(outage(1, policy, 2000)), Infinity)
      }))
  }
})
