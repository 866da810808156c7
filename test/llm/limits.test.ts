import { assert, describe, it } from "@effect/vitest"
import { firstOf } from "../utils/budget.ts"
import { type Counts, inVirtualTime, run, sdks } from "./load.ts"

/** In real time with a window of this many seconds; without it, in virtual time with a window of a minute. */
const realSeconds = Number(process.env["LLM_WINDOW_SECONDS"] ?? NaN)
const isReal = !Number.isNaN(realSeconds)
const windowMillis = isReal ? realSeconds * 1000 : 60_000
const load = { calls: 120, callers: 30, windowMillis }
const timed = isReal ? <A>(measure: () => Promise<A>) => measure() : inVirtualTime

const row = (sdk: string, who: string, { failed, refused, sends, throughput }: Counts): string =>
  `| ${sdk} | ${who} | ${sends} | ${refused} | ${failed} | ${(throughput * 100).toFixed(1)} % |`

describe.each(isReal ? sdks : firstOf(sdks, 1))("%s against a service that holds its limits", (sdk) => {
  it("serves every call, with at most a tenth of the wasted sends, and 95 % of the limit used", {
    timeout: 60 * windowMillis
  }, async () => {
    const own = await timed(() => run(sdk, "its own", load))
    const ours = await timed(() => run(sdk, "ours", load))
    console.log([row(sdk, "its own", own), row(sdk, "ours", ours)].join("\n"))
    assert.isAtLeast(own.refused, 30)
    assert.isAtMost(ours.refused, own.refused / 10)
    assert.deepStrictEqual([ours.succeeded, ours.failed], [load.calls, 0])
    assert.isAtLeast(ours.throughput, 0.95)
  })
})
