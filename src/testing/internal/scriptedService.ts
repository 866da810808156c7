import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { checks, checksOf, rejectUnknown } from "../../internal/checks.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import { type Timeline, timeline } from "./timeline.ts"

/**
 * A transient failure: the server's fault, safe to retry.
 *
 * @category errors
 * @since 0.1.0
 */
export class Transient extends RetryInfo.TaggedError("Transient", { fault: "server" }) {}

/**
 * A throttled call: the service asked for less traffic, with its hint if it gave one.
 *
 * @category errors
 * @since 0.1.0
 */
export class Throttled extends RetryInfo.TaggedError("Throttled", { throttling: true, fault: "client" })<{
  readonly retryAfter?: Duration.Input | undefined
}> {}

/**
 * A timeout: the client gave up waiting, and a retry is safe.
 *
 * @category errors
 * @since 0.1.0
 */
export class TimedOut extends RetryInfo.TaggedError("TimedOut", { timeout: true }) {}

/**
 * A failure that must not be retried.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotRetryable extends RetryInfo.TaggedError("NotRetryable", { safety: "No" }) {}

/**
 * How one send ends, and how long it takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Outcome<out A = unknown, out E = unknown> {
  readonly answer: Effect.Effect<A, E>
  /** How long the send takes; `undefined` for the latency of the script. */
  readonly latencyMillis: number | undefined
}

const outcome = <A, E>(answer: Effect.Effect<A, E>): Outcome<A, E> => ({ answer, latencyMillis: undefined })

/**
 * The send succeeds with the value.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const ok: {
  (): Outcome<void, never>
  <A>(value: A): Outcome<A, never>
} = (value?: unknown) => outcome(Effect.succeed(value)) as Outcome<any, never>

/**
 * The send fails with the error: your own, in place of those below.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const failure = <E>(error: E): Outcome<never, E> => outcome(Effect.fail(error))

/**
 * The send dies of a defect, which no policy retries.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const defect = (value: unknown): Outcome<never, never> => outcome(Effect.die(value))

/**
 * The send never ends unless interrupted.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const never: Outcome<never, never> = outcome(Effect.never)

/**
 * The send fails with {@link Transient}.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const transient: Outcome<never, Transient> = outcome(Effect.suspend(() => new Transient()))

/**
 * The send fails with {@link TimedOut}.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const timeout: Outcome<never, TimedOut> = outcome(Effect.suspend(() => new TimedOut()))

/**
 * The send fails with {@link NotRetryable}.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const notRetryable: Outcome<never, NotRetryable> = outcome(Effect.suspend(() => new NotRetryable()))

/**
 * The send fails with {@link Throttled}, without a hint.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const throttled: Outcome<never, Throttled> = outcome(Effect.suspend(() => new Throttled({})))

/**
 * The send fails with {@link Throttled}, and the service asks for this wait. Invalid values are passed on: services
 * send those too.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const throttledFor = (retryAfter: Duration.Input): Outcome<never, Throttled> =>
  outcome(Effect.suspend(() => new Throttled({ retryAfter })))

/**
 * The outcome comes after this time, regardless of the latency of the script.
 *
 * **Example** (A slow timeout)
 *
 * ```ts
 * outcomes([after("2 seconds", timeout), ok("x")])
 * ```
 *
 * @category outcomes
 * @since 0.1.0
 */
export const after = <A, E>(latency: Duration.Input, outcome: Outcome<A, E>): Outcome<A, E> => ({
  answer: outcome.answer,
  latencyMillis: checks("after").duration("latency", latency)
})

/**
 * Waits as long as the outcome takes, and ends as it does.
 *
 * @internal
 */
export const play = <A, E>({ answer, latencyMillis = 0 }: Outcome<A, E>): Effect.Effect<A, E> =>
  latencyMillis === 0 ? answer : Effect.delay(answer, latencyMillis)

/**
 * A call that follows a script.
 *
 * @category models
 * @since 0.1.0
 */
export interface Scripted<out A, out E> {
  /** One send. It does what the script says next. */
  readonly send: Effect.Effect<A, E>
  /** How many sends have begun. */
  readonly sends: number
  /** When they began, as `"attempt"`. */
  readonly timeline: Timeline
}

/**
 * Options for playing a script.
 *
 * @category models
 * @since 0.1.0
 */
export interface OutcomesOptions<out A = never, out E = never> {
  /** How long each send takes unless `after` says otherwise: a duration of at least 0. Default 0. */
  readonly latency?: Duration.Input | undefined
  /**
   * What a send does after the end of the script: die with a message that says so, repeat the last outcome, restart the
   * script, or end with the given outcome. Default `"die"`: an extra send is a mistake.
   */
  readonly afterwards?: "die" | "repeat" | "restart" | Outcome<A, E> | undefined
}

type Script = ReadonlyArray<Outcome<any, any>>
type Value<S extends Script> = S[number] extends Outcome<infer A, any> ? A : never
type Failing<S extends Script> = S[number] extends Outcome<any, infer E> ? E : never

const checkScript = (script: Script): void => {
  if (!Array.isArray(script)) checks("outcomes").reject("script", script, "an array of outcomes")
  for (const outcome of script) {
    if (Effect.isEffect(outcome?.answer)) continue
    checks("outcomes").reject("script", outcome, "of outcomes such as transient or ok()")
  }
}

const beyond = (
  script: Script,
  sends: number,
  afterwards: OutcomesOptions<any, any>["afterwards"]
): Outcome<any, any> => {
  if (typeof afterwards === "object") return afterwards
  if (afterwards === "repeat") return script.at(-1)!
  if (afterwards === "restart") return script[(sends - 1) % script.length]!
  return defect(new Error(`the script has ${script.length} outcomes, and this is send ${sends}`))
}

/**
 * Makes a call whose sends end as the script says, one after the other, and records when each began.
 *
 * **Details**
 *
 * The errors carry facts about retrying, so every policy knows what to do with them. Throws `InvalidOption` when an
 * option is invalid, the script contains anything but outcomes, or an empty script is to be repeated.
 *
 * **Example** (Two failures, then a success)
 *
 * ```ts
 * const call = outcomes([throttled, timeout, ok("x")], { latency: "30 millis" })
 * yield* call.send.pipe(withRetry(awsStandard), runToEnd, Effect.provide(fixedRandom(0.5)))
 * call.timeline.expect("attempts at 0 ms, 530 ms, 1.56 s")
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const outcomes = <const S extends Script, A = never, E = never>(
  script: S,
  options: OutcomesOptions<A, E> = {}
): Scripted<Value<S> | A, Failing<S> | E> => {
  const check = checksOf("outcomes", options)
  const latencyMillis = check.duration("latency", options.latency ?? 0)
  const afterwards = options.afterwards ?? "die"
  check.names.add("afterwards")
  rejectUnknown(check, options)
  checkScript(script)
  if (typeof afterwards === "string") {
    check.oneOf("afterwards", afterwards, ["die", "repeat", "restart"])
    if (script.length === 0 && afterwards !== "die") check.reject("script", "[]", "one outcome or more")
  }
  const events = timeline()
  let sends = 0
  const next = Effect.suspend(() => {
    const outcome = script[sends++] ?? beyond(script, sends, afterwards)
    return play({ answer: outcome.answer, latencyMillis: outcome.latencyMillis ?? latencyMillis })
  })
  return {
    send: events.attempts(next),
    get sends() {
      return sends
    },
    timeline: events
  }
}
