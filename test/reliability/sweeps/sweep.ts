import type { AdaptiveRateLimiter, RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { CountedClock } from "../utils/clocks.ts"

export type Services = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
export type Program<R = Services> = Effect.Effect<unknown, unknown, R>
export type Send = Effect.Effect<void, Kit.Transient | Kit.Throttled>

/** What is interrupted at every step and in every wait, under a quota and a limiter of the sweep. */
export interface Sweep {
  readonly program: Program
  readonly quota?: RetryQuota.Options
  /** How its limiter is made; `"adaptive"` for one that nobody has throttled yet, whose rate follows the answers. */
  readonly limiter?: Kit.SteadyLimiterOptions | "adaptive"
  /** How many interruptions there are at least: a program that does nothing would pass. Default 15. */
  readonly least?: number
}

/** Sweeps by name. A name has the exports it covers (`RetryPolicy.capped`): see `interruption-coverage.test.ts`. */
export type Sweeps = Readonly<Record<string, Sweep>>

/** A program over a call that fails twice, with a transient failure and a throttle that has a hint, then succeeds. */
export const on = <E, R>(
  program: (send: Send) => Effect.Effect<unknown, E, R>,
  latency = 10
): Effect.Effect<unknown, E, R> =>
  Effect.suspend(() =>
    program(Kit.outcomes([Kit.transient, Kit.throttledFor(300), Kit.ok()], { latency, afterwards: "repeat" }).send)
  )

export const failing = Kit.outcomes([Kit.timeout], { afterwards: "repeat", latency: 10 }).send

/** The sweep itself checks balance, send tokens, what is held and who waits; leftover timers are checked here. */
export const swept = ({ limiter = { fillRate: 3 }, program, quota }: Sweep) =>
  Effect.gen(function*() {
    const left: Array<string> = []
    let runs = 0
    let counted: CountedClock | undefined
    const look = () => {
      if (counted !== undefined && counted.asleep > 0) left.push(`run ${runs}: ${counted.asleep}`)
      runs++
    }
    const watched = Effect.clockWith((clock) => {
      look()
      counted = new CountedClock(clock)
      return Effect.onExit(counted.provide(program), (exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) left.push(`run ${runs}: ${Cause.pretty(exit.cause)}`)
        }))
    })
    const interruptions = yield* limiter === "adaptive"
      ? Effect.provide(Kit.sweepQuota(watched, { quota }), Kit.TestLimiter.layer())
      : Kit.sweepQuota(watched, { quota, limiter })
    look()
    return { interruptions, left }
  }).pipe(Effect.provide(Kit.fixedRandom(0.5)))
