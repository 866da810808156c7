/**
 * A retried effect that yields after every few operations and is interrupted after each number of its yields: no retry
 * is free, no pass stays held. A retry may be charged in two windows only: between the decision to send it and its
 * first instruction, and between its success and the next instruction of the loop.
 */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryObserver, RetryPolicy, RetryQuota, SendGate, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Scheduler from "effect/Scheduler"
import { budget } from "../utils/budget.ts"
import { Transient } from "../utils/call.ts"

class Gate extends SendGate.Service<Gate>()("test/RetrySteps") {}

const P = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: 5 }))
const R = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(4), RetryPolicy.quotaGated({ cost: 7 }))

type Send = Effect.Effect<number, Transient>
type Form = (send: Send) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>

const forms: ReadonlyArray<readonly [name: string, form: Form]> = [
  ["withRetry", (send) => withRetry(send, P)],
  ["withRetry by RetryPolicy.max", (send) => withRetry(send, RetryPolicy.max([P, R]))],
  ["withRetry by Schedule.max", (send) => withRetry(send, Schedule.max([P, R]))],
  ["Effect.retry", (send) => Effect.retry(send, P)],
  ["Effect.retry by RetryPolicy.min", (send) => Effect.retry(send, RetryPolicy.min([P, R]))],
  ["Effect.retry by Schedule.max", (send) => Effect.retry(send, Schedule.max([P, R]))],
  ["Effect.retry by Schedule.concat", (send) => Effect.retry(send, Schedule.concat(P, R))],
  [
    "Effect.retry by tap and upTo",
    (send) => Effect.retry(send, Schedule.tap(Schedule.upTo(P, { times: 2 }), () => Effect.yieldNow))
  ]
]

type Settled = "right" | "charged in a window" | "charged" | "free" | "held" | "stopped twice"
interface Case {
  /** How many sends fail. */
  readonly fails: number
  /** How many operations are run between two yields. */
  readonly operations: number
  /** The yield after which the fiber is interrupted. */
  readonly at: number
  readonly gate: "none" | "passes" | "waits"
}

const cases: ReadonlyArray<Case> = (["none", "passes", "waits"] as const).flatMap((gate) =>
  [0, 2, 9].flatMap((fails) =>
    [3, 4, 5, 7].flatMap((operations) =>
      Array.from({ length: budget(60, 9) }, (_, n) => ({ gate, fails, operations, at: n * budget(1, 7) }))
    )
  )
)

const settled = (
  form: Form,
  { at, fails, gate, operations }: Case
): Effect.Effect<readonly [Settled, sends: number]> => {
  let held = 0
  let spent = 0
  let sends = 0
  let unsent = 0
  let stops = 0
  const back = () => {
    held--
  }
  const enter = (send: SendGate.Send) => {
    const hold = () => {
      held++
      send.hold({ settle: back, cancel: back })
    }
    return gate === "passes" ? hold() : Effect.andThen(Effect.yieldNow, Effect.sync(hold))
  }
  const observer: RetryObserver.RetryObserver = {
    onRetry: ({ cost }) => {
      unsent = cost
    },
    onStop: () => {
      stops++
    }
  }
  const send = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const cost = unsent
      unsent = 0
      const body = ++sends <= fails ? Effect.fail(new Transient()) : Effect.succeed(1)
      return Effect.onExit(restore(Effect.andThen(Effect.yieldNow, body)), (exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit)) spent += cost
        }))
    })
  )
  const stateOf = (balance: number): Settled => {
    const missing = 500 - spent - balance
    if (held > 0) return "held"
    if (stops > 1) return "stopped twice"
    if (missing <= 0) return missing === 0 ? "right" : "free"
    return sends > fails || missing === unsent ? "charged in a window" : "charged"
  }
  return Effect.gen(function*() {
    const fiber = yield* form(send).pipe(
      Effect.provideService(RetryObserver.CurrentObserver, observer),
      Effect.provideService(Scheduler.MaxOpsBeforeYield, operations),
      Effect.provide(gate === "none" ? Layer.empty : SendGate.layer(Gate, { order: 1, enter })),
      Effect.forkChild
    )
    for (let yields = 0; yields < at; yields++) yield* Effect.yieldNow
    yield* Fiber.interrupt(fiber)
    return [stateOf(yield* RetryQuota.balance), sends] as const
  }).pipe(Effect.provide(RetryQuota.layer({ capacity: 1000, initial: 500, successIncrement: 0 })))
}

describe("interrupted at every step", () => {
  for (const [name, form] of forms) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const counts: Partial<Record<Settled, number>> = {}
        let most = 0
        for (const of of cases) {
          const [state, sends] = yield* settled(form, of)
          counts[state] = (counts[state] ?? 0) + 1
          most = Math.max(most, sends)
        }
        const { "charged in a window": windows = 0, right = 0, ...wrong } = counts
        assert.deepStrictEqual(wrong, {})
        assert.strictEqual(right + windows, cases.length)
        assert.isAtMost(windows, cases.length / 20)
        assert.isAtLeast(most, 3, "the steps reach the last send")
      }))
  }
})
