/** Thousands of calls in flight at the same time, on real timers: each fails twice and waits 4 milliseconds each time. */
import * as Effect from "effect/Effect"
import { asyncRetry, bareFunction, checked, cockatiel, pRetry, smithy } from "./calls.ts"
import * as effects from "./effects.ts"
import type { Subject } from "./harness.ts"
import { effectOf, functionOf } from "./operations.ts"
import * as peers from "./peers.ts"

const waitMillis = 4

const byHand: peers.Caller = (send) => async () => {
  for (;;) {
    try {
      return await send()
    } catch {
      await new Promise((done) => setTimeout(done, waitMillis))
    }
  }
}

const callers: Readonly<Record<string, peers.Caller>> = {
  [bareFunction]: byHand,
  [smithy]: peers.smithy(waitMillis),
  [cockatiel]: peers.cockatiel(waitMillis),
  [pRetry]: peers.pRetryOf(waitMillis),
  [asyncRetry]: peers.asyncRetryOf(waitMillis)
}

export const inFlight = async (): Promise<ReadonlyArray<Subject>> => {
  const context = await effects.contextOf({ capacity: 1e12 })
  const ofEffect = Object.entries(effects.retryingAfter(waitMillis)).map(([name, retrying]): Subject => ({
    name,
    run: (operations) => {
      const call = Effect.suspend(() => retrying(effectOf("twice")))
      const all = Effect.all(Array.from({ length: operations }, () => call), {
        concurrency: "unbounded",
        discard: true
      })
      return Effect.runPromise(Effect.provideContext(all, context))
    }
  }))
  const ofPromise = Object.entries(callers).map(([name, caller]): Subject => ({
    name,
    run: (operations) => Promise.all(Array.from({ length: operations }, () => caller(functionOf("twice"))()))
  }))
  return checked([...ofEffect, ...ofPromise], 3)
}
