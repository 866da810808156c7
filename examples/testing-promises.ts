/**
 * Tests of promise code, in virtual time: what retries takes a context,
 * and the test's context has its clock.
 *
 * Fake timers of a test runner move timers, but not the monotonic clock
 * that Effect reads. So waits become too long, and deadlines are
 * missed.
 */
import { Clock, Context, Effect } from "effect"
import { type Options, retryFetch } from "effect-retry/fetch"
import * as Kit from "effect-retry/testing"
import * as assert from "node:assert/strict"
import { main, print } from "./support/program.ts"

/** The code under test. Only tests pass options. */
export const makeOrders = (options?: Options) => {
  const fetch = retryFetch(options)
  return {
    status: async (id: number) => {
      const { status } = await fetch(`http://shop.example/orders/${id}`)
      return status
    }
  }
}

/**
 * Runs a test in virtual time, which begins at 0. `now` is its time in
 * milliseconds.
 */
export const inVirtualTime = <A>(
  test: (
    context: Context.Context<never>,
    now: () => number
  ) => Promise<A>
): Promise<A> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const clock = Context.get(context, Clock.Clock)
    return Effect.promise(() =>
      test(context, () => clock.currentTimeMillisUnsafe())
    )
  }).pipe(
    Kit.runToEnd,
    Effect.provide(Kit.fixedRandom(0.5)),
    Effect.runPromise
  )

/**
 * The server asks for three seconds; the cool-down of its host adds 0
 * to 20 % of that, at random.
 */
export const waitsAsAsked = () =>
  inVirtualTime(async (context, now) => {
    const sentAt: Array<number> = []
    const orders = makeOrders({
      context,
      fetch: async () =>
        sentAt.push(now()) === 1
          ? new Response("", {
            status: 429,
            headers: { "retry-after": "3" }
          })
          : new Response("an order")
    })
    assert.equal(await orders.status(1), 200)
    assert.deepEqual(sentAt, [0, 3300])
  })

/** A server that never answers: the call ends soon after 30 seconds. */
export const givesUp = () =>
  inVirtualTime(async (context, now) => {
    const orders = makeOrders({ context, fetch: hanging })
    await assert.rejects(orders.status(1), { name: "TimeoutError" })
    return now()
  })

const hanging: typeof fetch = (_, init) =>
  new Promise((_, reject) => {
    init?.signal?.addEventListener("abort", () => {
      reject(init.signal?.reason)
    })
  })

main(
  import.meta.url,
  Effect.andThen(
    Effect.promise(waitsAsAsked),
    print("passes: waitsAsAsked")
  ),
  Effect.flatMap(
    Effect.promise(givesUp),
    (millis) => print(`gives up after ${millis} ms`)
  )
)
