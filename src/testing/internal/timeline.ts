import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as RetryObserver from "../../RetryObserver.ts"
import { format, formatTime, parse } from "./timelineText.ts"

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

class Recorded implements Timeline {
  readonly events: Array<TimelineEvent> = []

  private note(name: string, atMillis: number): void {
    this.events.push({ name, atMillis })
  }

  record(name: string): Effect.Effect<void> {
    return Effect.map(Clock.currentTimeMillis, (now) => this.note(name, now))
  }

  attempts = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      this.note("attempt", now)
      return self
    })

  get layer(): Layer.Layer<never> {
    const note = (name: string, context: RetryObserver.Caller) =>
      this.note(name, Context.get(context, Clock.Clock).currentTimeMillisUnsafe())
    const observer: RetryObserver.RetryObserver = {
      onRetry: (_, __, context) => note("retry", context),
      onStop: ({ reason }, _, context) => note(reason, context)
    }
    return RetryObserver.layer(observer)
  }

  at(name: string): ReadonlyArray<number> {
    return this.events.filter((event) => event.name === name).map(({ atMillis }) => atMillis)
  }

  expect(expected: string): void {
    const clauses = parse(expected)
    const found = clauses.map(({ name }) => {
      const names = singulars(name)
      const times = this.events.filter((event) => names.includes(event.name)).map(({ atMillis }) => atMillis)
      return format({ name, times })
    })
    const [actualText, expectedText] = [found.join("; "), clauses.map(format).join("; ")]
    if (actualText !== expectedText) throw new TimelineMismatch({ actual: actualText, expected: expectedText })
  }

  get clear(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.events.length = 0
    })
  }

  toString(): string {
    return this.events.map(({ atMillis, name }) => `${formatTime(atMillis)} ${name}`).join("\n")
  }
}

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
export const timeline = (): Timeline => new Recorded()
