import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { checks } from "../../internal/checks.ts"
import * as RetryObserver from "../../RetryObserver.ts"

/** What is expected of the events of one name. */
interface Clause {
  readonly name: string
  /** Milliseconds; empty if there must be none. */
  readonly times: ReadonlyArray<number>
}

/** Units of time, by their names. */
const units: ReadonlyArray<readonly [millis: number, ...names: ReadonlyArray<string>]> = [
  [1, "ms", "milli", "millis"],
  [1000, "s", "second", "seconds"],
  [60_000, "min", "minute", "minutes"],
  [3_600_000, "h", "hour", "hours"]
]

const reject = (text: string): never =>
  checks("Timeline.expect").reject("expected", text, `text such as "attempts at 0 ms, 430 ms, 1.2 s; no retries"`)

const timeOf = (text: string): number => {
  if (text === "0") return 0
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(text) ?? reject(text)
  const [millis] = units.find(([, ...names]) => names.includes(unit!)) ?? reject(text)
  return Number(amount) * millis
}

const clauseOf = (text: string): Clause => {
  const [, none] = /^no (\S.*)$/.exec(text) ?? []
  if (none !== undefined) return { name: none, times: [] }
  const [, name, times] = /^(\S.*?) at (.+)$/.exec(text) ?? reject(text)
  return { name: name!, times: times!.split(/, and | and |,/).map((time) => timeOf(time.trim())) }
}

/** Parses the expectations of a timeline: clauses separated by semicolons. */
const parse = (text: string): ReadonlyArray<Clause> => text.split(";").map((clause) => clauseOf(clause.trim()))

/** A time to the nanosecond: in milliseconds below one second, else in seconds. */
const formatTime = (millis: number): string =>
  millis < 1000 ? `${Number(millis.toFixed(6))} ms` : `${Number((millis / 1000).toFixed(9))} s`

/** The inverse of {@link parse}. */
const format = ({ name, times }: Clause): string =>
  times.length === 0 ? `no ${name}` : `${name} at ${times.map(formatTime).join(", ")}`

/**
 * A timeline that is not as expected. Test runners show the difference between `actual` and `expected`.
 *
 * @category errors
 * @since 0.1.0
 */
export class TimelineMismatch extends Data.TaggedError("TimelineMismatch")<{
  readonly actual: string
  readonly expected: string
}> {
  override get message(): string {
    return `the timeline is not as expected\n  expected: ${this.expected}\n  actual:   ${this.actual}`
  }
}

/**
 * An event, and when it happened.
 *
 * @category models
 * @since 0.1.0
 */
export interface TimelineEvent {
  readonly name: string
  /** Milliseconds of the clock, which starts at 0 under `TestClock`. */
  readonly atMillis: number
}

/**
 * Events with their times, and assertions about them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Timeline {
  /** All events, in order. */
  readonly events: ReadonlyArray<TimelineEvent>
  /** Records an event, now. */
  readonly record: (name: string) => Effect.Effect<void>
  /** The effect, recording an `"attempt"` whenever it begins. */
  readonly attempts: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * An observer that records each decision of a policy when it is made: a `"retry"`, or the reason of a stop, such as
   * `"max-attempts"`. The observer in force is notified as well.
   */
  readonly layer: Layer.Layer<never>
  /** The times of the events with this name, in milliseconds. */
  readonly at: (name: string) => ReadonlyArray<number>
  /**
   * Checks only the named events, and throws {@link TimelineMismatch}: clauses separated by semicolons,
   * `attempts at 0 ms, 430 ms, 1.2 s` or `no retries`. A plural names the events of its singular, which is the name
   * itself or the name without an `s`, or `y` for `ies`. Units are `ms`, `s`, `min` and `h`. Throws `InvalidOption` for
   * text that it cannot parse.
   */
  readonly expect: (expected: string) => void
  /** Clears all events. */
  readonly clear: Effect.Effect<void>
}

const singulars = (name: string): ReadonlyArray<string> => [name, name.replace(/s$/, ""), name.replace(/ies$/, "y")]

/**
 * Makes an empty timeline.
 *
 * **Example** (What a policy decided, and when)
 *
 * ```ts
 * const events = timeline()
 * const call = events.attempts(Effect.fail(new Transient())).pipe(withRetry(awsStandard), Effect.provide(events.layer))
 * yield* call.pipe(Effect.exit, runToEnd, Effect.provide(fixedRandom(0.5)))
 * events.expect("attempts at 0 ms, 500 ms, 1.5 s; max-attempts at 1.5 s")
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const timeline = (): Timeline => {
  const events: Array<TimelineEvent> = []
  const note = (name: string, atMillis: number): void => void events.push({ name, atMillis })
  const noteIn = (name: string, context: RetryObserver.Caller): void =>
    note(name, Context.get(context, Clock.Clock).currentTimeMillisUnsafe())
  const at = (...names: ReadonlyArray<string>): ReadonlyArray<number> =>
    events.filter(({ name }) => names.includes(name)).map(({ atMillis }) => atMillis)
  const made: Timeline & { readonly toString: () => string } = {
    events,
    record: (name) => Effect.map(Clock.currentTimeMillis, (now) => note(name, now)),
    attempts: (self) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        note("attempt", now)
        return self
      }),
    layer: RetryObserver.layer({
      onRetry: (_, __, context) => noteIn("retry", context),
      onStop: ({ reason }, _, context) => noteIn(reason, context)
    }),
    at,
    expect: (text) => {
      const clauses = parse(text)
      const found = clauses.map(({ name }) => ({ name, times: at(...singulars(name)) }))
      const [actual, expected] = [found.map(format).join("; "), clauses.map(format).join("; ")]
      if (actual !== expected) throw new TimelineMismatch({ actual, expected })
    },
    clear: Effect.sync(() => void events.splice(0)),
    toString: () => events.map(({ atMillis, name }) => `${formatTime(atMillis)} ${name}`).join("\n")
  }
  return made
}
