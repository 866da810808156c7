import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { monotonicMillis } from "../../internal/clock.ts"
import { reasonOf } from "./reason.ts"

/** An exchange that got no answer in time may still be on its way: for so long nothing more is sent. */
export const lostMillis = 30_000

/**
 * The exit of a fiber that ends in time. The timer of a process that was busy may ring before it has read an answer which
 * was there in time: it reads once more.
 */
const exitWithin = <A, E>(fiber: Fiber.Fiber<A, E>, millis: number): Effect.Effect<Exit.Exit<A, E> | undefined> =>
  Effect.flatMap(Effect.timeoutOption(Fiber.await(fiber), millis), (exit) =>
    Option.isSome(exit)
      ? Effect.succeed(exit.value)
      : Effect.map(Effect.yieldNow, () => fiber.pollUnsafe()))

/** Exchanges with Redis, each of which has so long for its answer. */
export class Exchanges {
  private readonly clock: Clock.Clock
  private readonly scope: Scope.Scope
  private readonly timeoutMillis: number
  private lost: { readonly fiber: Fiber.Fiber<unknown, unknown>; readonly untilMillis: number } | undefined = undefined

  constructor(clock: Clock.Clock, scope: Scope.Scope, timeoutMillis: number) {
    this.clock = clock
    this.scope = scope
    this.timeoutMillis = timeoutMillis
  }

  /** The reply in time, or why there is none. What comes later is not waited for, but it is known to be on its way. */
  send<A extends object>(
    asked: Effect.Effect<unknown, unknown>,
    replyOf: (answer: unknown) => A | undefined
  ): Effect.Effect<A | string> {
    return Effect.flatMap(
      Effect.forkIn(asked, this.scope, { startImmediately: true }),
      (fiber) =>
        Effect.map(exitWithin(fiber, this.timeoutMillis), (exit) => {
          if (exit === undefined) {
            this.lost = { fiber, untilMillis: monotonicMillis(this.clock) + lostMillis }
            return `no answer within ${this.timeoutMillis} ms`
          }
          return Exit.isFailure(exit) ? reasonOf(exit.cause) : replyOf(exit.value) ?? "an answer that is none"
        })
    )
  }

  /** Whether an exchange that got no answer may still arrive. One that is too old is given up. */
  isLost(nowMillis: number): boolean {
    if (this.lost === undefined) return false
    const { fiber, untilMillis } = this.lost
    if (fiber.pollUnsafe() === undefined) {
      if (nowMillis < untilMillis) return true
      fiber.interruptUnsafe()
    }
    this.lost = undefined
    return false
  }
}
