import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import { withRetry } from "effect-retry/Attempt"
import * as CoolDown from "effect-retry/CoolDown"
import type { StopReason } from "effect-retry/RetryDecision"
import * as RetryObserver from "effect-retry/RetryObserver"
import type { RetryPolicy } from "effect-retry/RetryPolicy"
import * as RetryQuota from "effect-retry/RetryQuota"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as References from "effect/References"
import { runVirtually, VirtualTime } from "../simulator/time.ts"
import { refuse } from "./refusal.ts"

/** Why a call is followed no further: a stop, a failure of the policy itself, or the explanation's limit. */
export type EndReason = StopReason | "policy-error" | "not-followed"

/** What is run: a call whose attempts all fail. */
export interface Setting {
  readonly policy: RetryPolicy<any, unknown, RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter>
  readonly error: unknown
  readonly attemptMillis: number
  readonly quota: RetryQuota.Options | undefined
  readonly coolDown: CoolDown.Options | undefined
  /** Retries after which a call is followed no further. */
  readonly limit: number
}

/** One retry of one call. */
interface Retried {
  readonly delayMillis: number
  readonly cost: number
  /** What was left of the quota after it was paid. */
  readonly balance: number
  /** The random numbers drawn for its delay; `NaN` for one outside `[0, 1)`. */
  readonly draws: ReadonlyArray<number>
}

/** One call. */
export interface Trace {
  readonly retries: ReadonlyArray<Retried>
  /** When attempt `n + 1` was sent. */
  readonly sentAtMillis: ReadonlyArray<number>
  readonly reason: EndReason
  readonly attempts: number
  /** When the caller gets its error; `Infinity` if unknown. */
  readonly endMillis: number
}

/** Randomness that always gives the same number. */
export const constant = (value: number): Random.Random => ({
  nextDoubleUnsafe: () => value,
  nextIntUnsafe: () => Math.floor(value * (Number.MAX_SAFE_INTEGER - Number.MIN_SAFE_INTEGER)) + Number.MIN_SAFE_INTEGER
})

/** Randomness from a seed. */
export const seeded = (seed: string | number): Random.Random =>
  Effect.runSync(Random.withSeed(Random.Random.use(Effect.succeed), seed))

let built: Context.Context<AdaptiveRateLimiter.AdaptiveRateLimiter> | undefined = undefined

/** A limiter that never limits: a layer costs more to build than a call to run. */
const unlimited = () => built ??= Effect.runSync(Effect.scoped(Layer.build(AdaptiveRateLimiter.layerUnlimited)))

/** What happens in a call, as it happens. */
class Recorder {
  readonly retries: Array<Retried> = []
  readonly sentAtMillis: Array<number> = []
  readonly clock = new VirtualTime()
  readonly random: Random.Random
  quota: RetryQuota.Service | undefined = undefined
  reason: EndReason | undefined = undefined
  private draws: Array<number> = []

  constructor(random: Random.Random) {
    this.random = {
      nextDoubleUnsafe: () => this.drawn(random.nextDoubleUnsafe()),
      nextIntUnsafe: () => {
        this.drawn(NaN)
        return random.nextIntUnsafe()
      }
    }
  }

  private drawn(value: number): number {
    this.draws.push(value)
    return value
  }

  readonly observer: RetryObserver.RetryObserver = {
    onRetry: ({ cost, delay }) => {
      const balance = this.quota?.store.balance(this.clock) ?? 0
      this.retries.push({ delayMillis: Duration.toMillis(delay), cost, balance, draws: this.draws })
      this.draws = []
    },
    onStop: ({ reason }) => {
      this.reason = reason
    }
  }

  /** One send, which fails; beyond the limit nothing is sent any more. */
  send({ attemptMillis, error, limit }: Setting): Effect.Effect<void, unknown> {
    return Effect.suspend(() => {
      if (this.sentAtMillis.length > limit) {
        this.reason = "not-followed"
        return Effect.void
      }
      this.sentAtMillis.push(this.clock.nowMillis)
      return attemptMillis === 0 ? Effect.fail(error) : Effect.delay(Effect.fail(error), attemptMillis)
    })
  }
}

/** With a cool-down of its own in front of every send, if it is to have one. */
const cooled = <A, E, R>(self: Effect.Effect<A, E, R>, { coolDown }: Setting): Effect.Effect<A, E, R> =>
  coolDown === undefined
    ? self
    : Effect.flatMap(CoolDown.make(coolDown), (gate) => Effect.provideService(self, CoolDown.CoolDown, gate))

const call = (recorder: Recorder, setting: Setting): Effect.Effect<unknown, unknown> =>
  Effect.flatMap(RetryQuota.make(setting.quota), (quota) => {
    recorder.quota = quota
    return cooled(withRetry(recorder.send(setting), setting.policy), setting).pipe(
      Effect.provideContext(unlimited()),
      Effect.provideService(RetryQuota.RetryQuota, quota),
      Effect.provideService(Random.Random, recorder.random),
      Effect.provideService(RetryObserver.CurrentObserver, recorder.observer),
      // The explanation covers what a quota warns of.
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  })

const endReason = ({ reason }: Recorder, { error }: Setting, exit: Exit.Exit<unknown, unknown>): EndReason => {
  const failure = Exit.isFailure(exit) ? Cause.squash(exit.cause) : error
  if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) throw failure
  // A schedule that fails ends the call with an error of its own.
  return reason === undefined || (reason === "schedule" && failure !== error) ? "policy-error" : reason
}

/** Runs one call with the library's own loop, on a clock of its own. Defects of the policy are thrown. */
export const trace = (setting: Setting, random: Random.Random): Trace => {
  const recorder = new Recorder(random)
  const exit = runVirtually(call(recorder, setting), recorder.clock) ??
    refuse("policy", setting.policy, "a policy that decides without waiting for anything external")
  const reason = endReason(recorder, setting, exit)
  return {
    retries: recorder.retries.slice(0, recorder.sentAtMillis.length - 1),
    sentAtMillis: recorder.sentAtMillis,
    reason,
    attempts: recorder.sentAtMillis.length,
    endMillis: reason === "not-followed" ? Infinity : recorder.clock.nowMillis
  }
}
