import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import type * as OutageNow from "../../examples/outage-now.ts"

const statusOf = (status: number, headers: Record<string, string> = {}) => async () =>
  new Response(null, { status, headers })

/** Fails after a second, like an attempt whose time is up. */
const hanging = () =>
  new Promise<never>((_, reject) => {
    setTimeout(() => reject(new DOMException("", "TimeoutError")), 1000)
  })

/** Lets promises run that are not waiting for a timer. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe("outage-now", () => {
  let sends = 0
  let guardedFetch: typeof OutageNow.guardedFetch

  const answering = (answer: () => Promise<Response>) => {
    vi.stubGlobal("fetch", () => {
      sends++
      return answer()
    })
  }

  /** Calls in equal steps, and how each ended: a status, or the name of an error. */
  const callsOver = async (millis: number, calls: number): Promise<ReadonlyArray<unknown>> => {
    const ends: Array<unknown> = []
    for (let call = 0; call < calls; call++) {
      void guardedFetch("http://orders.test").then(({ status }) => ends.push(status), ({ _tag, name }) => {
        ends.push(_tag ?? name)
      })
      await vi.advanceTimersByTimeAsync(millis / calls)
      await turn()
    }
    while (ends.length < calls) {
      await vi.advanceTimersByTimeAsync(100)
      await turn()
    }
    return ends
  }

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance", "hrtime"] })
    vi.resetModules()
    sends = 0
    guardedFetch = (await import("../../examples/outage-now.ts")).guardedFetch
  })

  afterEach(() => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })

  it("retries a response that says so, and returns the last one", async () => {
    answering(() => statusOf(sends < 3 ? 503 : 200)())
    assert.deepStrictEqual(await callsOver(1000, 1), [200])
    assert.strictEqual(sends, 3)
  })

  it("makes 100 retries in a whole outage", async () => {
    answering(statusOf(500))
    const ends = await callsOver(100_000, 500)
    assert.deepStrictEqual([...new Set(ends)], [500])
    assert.strictEqual(sends, 600)
  })

  it("keeps fewer requests in flight while they time out", async () => {
    answering(hanging)
    const ends = await callsOver(60_000, 2400)
    // No retry is sent while all time out: the call ends with its timeout. Later calls are not sent at all.
    assert.deepStrictEqual([...new Set(ends)], ["TimeoutError", "ConcurrencyLimitExceeded"])
    assert.isBelow(sends, 480)
  })

  it("sends nothing before a Retry-After is over", async () => {
    answering(statusOf(503, { "retry-after": "5" }))
    await callsOver(4000, 40)
    assert.strictEqual(sends, 1)
  })

  it("ends with a response that asks for more than two seconds, without a wait", async () => {
    answering(statusOf(429, { "retry-after": "30" }))
    // No timer moves here.
    assert.strictEqual((await guardedFetch("http://orders.test")).status, 429)
    assert.strictEqual(sends, 1)
  })

  it("ends with the caller's signal", async () => {
    answering(hanging)
    const end = guardedFetch("http://orders.test", { signal: AbortSignal.abort("gone") }).catch((reason) => reason)
    await vi.advanceTimersByTimeAsync(10)
    assert.strictEqual(await end, "gone")
    assert.strictEqual(sends, 0)
  })
})
