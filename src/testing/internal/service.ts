import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { checks } from "../../internal/checks.ts"
import { type Outcome, play, Throttled, type Transient, transient } from "./outcomes.ts"

/**
 * A time in which a service is down.
 *
 * @category models
 * @since 0.1.0
 */
export interface Outage<out E = never> {
  /** When it begins, by the clock: a duration of at least 0 since the clock's zero, where `TestClock` begins. */
  readonly from: Duration.Input
  /** When it is over: later than `from`. What comes at this moment is served. */
  readonly until: Duration.Input
  /** How each send ends that comes meanwhile. Default `transient`; `never` is a service that does not answer. */
  readonly outcome?: Outcome<never, E> | undefined
}

/**
 * What a service is like.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceOptions<out E = never> {
  /** Sends that it can serve per second: a finite number above 0. */
  readonly capacity: number
  /**
   * What it does with more: it throttles what goes beyond one second's worth at the same time, or lets all wait in a line.
   * Default `"reject"`.
   */
  readonly overload?: "reject" | "slow" | undefined
  /** How long an answer takes, besides the wait in the line: a duration of at least 0. Default 0. */
  readonly latency?: Duration.Input | undefined
  /** The hint of a throttle. Default: none. */
  readonly retryAfter?: Duration.Input | undefined
  /** When it is down. Default: never. */
  readonly outages?: ReadonlyArray<Outage<E>> | undefined
}

/**
 * A service with a limited capacity, and what it has seen so far.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service<out E> {
  /** One send. */
  readonly send: Effect.Effect<void, Throttled | Transient | E>
  /** Sends that have come. */
  readonly requests: number
  /** Sends that it has taken on: they succeed unless they are interrupted. */
  readonly accepted: number
  /** Sends that it has throttled. */
  readonly throttled: number
  /** Sends that have come in an outage. */
  readonly failed: number
  /** How many sends have come in a second of the clock, by the second: those in which any came, in order. */
  readonly requestsPerSecond: ReadonlyMap<number, number>
}

interface Window {
  readonly fromMillis: number
  readonly untilMillis: number
  readonly outcome: Outcome<never, any>
}

const windowOf = ({ from, outcome, until }: Outage<unknown>): Window => {
  const check = checks("service")
  const fromMillis = check.duration("from", from)
  const untilMillis = check.duration("until", until)
  if (untilMillis <= fromMillis) check.reject("until", until, "a duration longer than from")
  return { fromMillis, untilMillis, outcome: outcome ?? transient }
}

/** How far a service that rejects lets sends run ahead of its capacity: one second. */
const burstMillis = 1000

class Served implements Service<any> {
  requests = 0
  accepted = 0
  throttled = 0
  failed = 0
  readonly requestsPerSecond = new Map<number, number>()
  private readonly outages: ReadonlyArray<Window>
  private readonly workMillis: number
  private readonly latencyMillis: number
  private readonly rejects: boolean
  private readonly throttle: Effect.Effect<never, Throttled>
  /** How much work was in the line when the latest send had come. */
  private lineMillis = 0
  private latestMillis = 0

  constructor({ capacity, latency, outages = [], overload = "reject", retryAfter }: ServiceOptions<unknown>) {
    const check = checks("service")
    this.workMillis = 1000 / check.positive("capacity", capacity)
    this.rejects = check.oneOf("overload", overload, ["reject", "slow"]) === "reject"
    this.latencyMillis = check.duration("latency", latency ?? 0)
    if (retryAfter !== undefined) check.duration("retryAfter", retryAfter)
    this.throttle = Effect.suspend(() => new Throttled({ retryAfter }))
    this.outages = outages.map(windowOf)
  }

  get send(): Effect.Effect<void, any> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => this.received(now))
  }

  private received(now: number): Effect.Effect<void, any> {
    this.requests++
    this.count(now)
    const outage = this.outages.find(({ fromMillis, untilMillis }) => fromMillis <= now && now < untilMillis)
    if (outage !== undefined) {
      this.failed++
      return play({ ...outage.outcome, latencyMillis: outage.outcome.latencyMillis ?? this.latencyMillis })
    }
    const waitMillis = this.inLine(now) + this.workMillis
    // Sums of fractions such as a third of a second are not exact.
    if (this.rejects && waitMillis > burstMillis + 1e-6) {
      this.throttled++
      return this.answered(this.throttle, 0)
    }
    this.accepted++
    this.lineMillis = waitMillis
    return this.answered(Effect.void, this.rejects ? 0 : waitMillis)
  }

  /** How much work is left of what has come. */
  private inLine(now: number): number {
    this.lineMillis = Math.max(0, this.lineMillis - Math.max(0, now - this.latestMillis))
    this.latestMillis = now
    return this.lineMillis
  }

  private answered<E>(answer: Effect.Effect<void, E>, waitMillis: number): Effect.Effect<void, E> {
    return play({ answer, latencyMillis: waitMillis + this.latencyMillis })
  }

  private count(now: number): void {
    const second = Math.floor(now / 1000)
    this.requestsPerSecond.set(second, (this.requestsPerSecond.get(second) ?? 0) + 1)
  }
}

/**
 * Makes a service that can serve so many sends per second, and is down at times. It works on the clock of its callers,
 * and so in no time under `TestClock`.
 *
 * **Details**
 *
 * A service that rejects lets one second's worth of sends come at the same time, then as many as its capacity; it throttles the
 * others and spends nothing on them. One that slows serves one after the other: with a line of `n`, an answer takes
 * `(n + 1) / capacity` seconds. A send that is interrupted keeps its place. Throws `InvalidOption` when an option is
 * impossible.
 *
 * **Example** (Ten a second, and an outage of two seconds)
 *
 * ```ts
 * const orders = service({ capacity: 10, outages: [{ from: "3 seconds", until: "5 seconds" }] })
 * yield* orders.send.pipe(withRetry(awsStandard), runToEnd)
 * orders.requestsPerSecond.get(0) // 1
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const service = <E = never>(options: ServiceOptions<E>): Service<E> => new Served(options)
