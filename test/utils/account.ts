/** What a retried effect comes to, whatever loop drives it: its sends, its tokens, its passes and its notifications. */
import { RetryObserver, RetryQuota, SendGate } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { constantRandom, Transient } from "./call.ts"

/** A policy, or any other schedule for a retry. */
export type AnyPolicy = Schedule.Schedule<unknown, unknown, never, RetryQuota.RetryQuota>
export type Call = Effect.Effect<string, Transient>
export type Drive = (call: Call) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>

class CountingGate extends SendGate.Service<CountingGate>()("test/CountingGate") {}

/** A gate that lets each send pass, and counts its passes. */
export const countingGate = () => {
  const passes = { entered: 0, settled: 0, canceled: 0 }
  const pass: SendGate.Pass = {
    settle: () => passes.settled++,
    cancel: () => passes.canceled++
  }
  const gate: SendGate.SendGate<never> = {
    order: 1,
    enter: (send) => {
      passes.entered++
      send.hold(pass)
    }
  }
  return { passes, layer: SendGate.layer(CountingGate, gate) }
}

/** Notifications, in order: `-` and `+` for attempts, `r5` for a retry at 5 tokens, the reason of a stop. */
export const noting = () => {
  const notes: Array<string> = []
  const observer: RetryObserver.RetryObserver = {
    onAttempt: (succeeded) => void notes.push(succeeded ? "+" : "-"),
    onRetry: ({ cost }) => void notes.push(`r${cost}`),
    onStop: ({ reason }) => void notes.push(reason)
  }
  return {
    notes,
    observe: <A, E, R>(self: Effect.Effect<A, E, R>) =>
      Effect.provideService(self, RetryObserver.CurrentObserver, observer)
  }
}

export interface Account {
  /** Milliseconds since the call began. */
  readonly sentAt: ReadonlyArray<number>
  /** When the call has ended. */
  readonly balance: number
  readonly passes: { readonly entered: number; readonly settled: number; readonly canceled: number }
  readonly notes: ReadonlyArray<string>
}

/** The account of a call that fails this many times first, with 100 tokens, under a `TestClock`. */
export const accountOf = (drive: Drive, fails: number): Effect.Effect<Account> =>
  Effect.gen(function*() {
    const startMillis = yield* Clock.currentTimeMillis
    const sentAt: Array<number> = []
    const call = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.suspend(() =>
        sentAt.push(now - startMillis) > fails ? Effect.succeed("ok") : Effect.fail(new Transient())
      ))
    const { layer, passes } = countingGate()
    const { notes, observe } = noting()
    const ended = Effect.andThen(Effect.exit(drive(call)), RetryQuota.balance)
    const fiber = yield* Effect.forkChild(Effect.provide(observe(ended), layer))
    yield* TestClock.adjust("1 hour")
    const balance = yield* Fiber.join(fiber)
    return { sentAt, balance, passes, notes }
  }).pipe(
    Effect.provide(RetryQuota.layer({ initial: 100 })),
    Effect.provideService(Random.Random, constantRandom(0.5))
  )

/** An account as a line of a table: when it was sent; balance; passes entered and settled; notifications. */
export const lineOf = ({ balance, notes, passes, sentAt }: Account): string => {
  const { canceled, entered, settled } = passes
  const gate = `${entered}/${settled}${canceled === 0 ? "" : `/${canceled}`}`
  return [sentAt.join(" "), balance, gate, notes.join(" ")].join("; ")
}
