import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { checksOf } from "../../internal/checks.ts"
import * as Options from "../../internal/options.ts"
import { type Outcome, play, Throttled, type Transient, transient } from "./scriptedService.ts"
import { isDuring, validOutage, type Window } from "./window.ts"

/**
 * A period in which a service is down, counted from the clock's zero, where `TestClock` starts.
 *
 * @category models
 * @since 0.1.0
 */
export interface Outage<out E = never> extends Window {
  /** How each send during the outage ends. Default `transient`; `never` is a service that does not respond. */
  readonly outcome?: Outcome<never, E> | undefined
}

/**
 * Options of a service.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceOptions<out E = never> {
  /** Sends that it can serve per second: a finite number above 0. */
  readonly capacity: number
  /**
   * What it does with more: throttle what exceeds one second's worth at the same time, or queue everything. Default
   * `"reject"`.
   */
  readonly overload?: "reject" | "slow" | undefined
  /** How long a response takes, in addition to the wait in the queue: a duration of at least 0. Default 0. */
  readonly latency?: Duration.Input | undefined
  /** The hint of a throttle. Default: none. */
  readonly retryAfter?: Duration.Input | undefined
  /** When it is down. Default: never. */
  readonly outages?: ReadonlyArray<Outage<E>> | undefined
}

/**
 * A service with limited capacity, and what it has seen so far.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service<out E> {
  /** One send. */
  readonly send: Effect.Effect<void, Throttled | Transient | E>
  /** Sends received. */
  readonly requests: number
  /** Sends accepted: they succeed unless interrupted. */
  readonly accepted: number
  /** Sends throttled. */
  readonly throttled: number
  /** Sends received in an outage. */
  readonly failed: number
  /** Sends received per second of the clock: only seconds with any, in order. */
  readonly requestsPerSecond: ReadonlyMap<number, number>
}

const serviceOptions = {
  capacity: Options.positive(),
  overload: Options.word("reject", "slow"),
  latency: Options.duration(0),
  retryAfter: Options.optional(Options.duration()),
  outages: Options.inCode
}

/** How far a service that rejects lets sends run ahead of its capacity: one second. */
const burstMillis = 1000

const validated = (options: ServiceOptions<unknown>) => {
  const check = checksOf("service", options)
  const { outages = [] } = options
  const valid = Options.validOptions(check, serviceOptions, options)
  if (!Array.isArray(outages)) check.reject("outages", outages, "an array of outages")
  return {
    ...valid,
    outages: outages.map((outage) => ({
      ...validOutage(checksOf("service", outage), { outcome: Options.inCode }, outage),
      outcome: outage.outcome ?? transient
    }))
  }
}

/**
 * Makes a service that can serve this many sends per second, and is down at times. It runs on the clock of its callers,
 * and so takes no time under `TestClock`.
 *
 * **Details**
 *
 * A service that rejects lets one second's worth of sends in at the same time, then as many as its capacity; it
 * throttles the others and spends nothing on them. One that slows down serves them one at a time: with a queue of `n`,
 * a response takes `(n + 1) / capacity` seconds. An interrupted send keeps its place. Throws `InvalidOption` when an
 * option is invalid.
 *
 * **Example** (Ten per second, and an outage of two seconds)
 *
 * ```ts
 * const orders = service({ capacity: 10, outages: [{ from: "3 seconds", to: "5 seconds" }] })
 * yield* orders.send.pipe(withRetry(awsStandard), runToEnd)
 * orders.requestsPerSecond.get(0) // 1
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const service = <E = never>(options: ServiceOptions<E>): Service<E> => {
  const { capacity, latencyMillis, outages, overload } = validated(options)
  const throttle = Effect.suspend(() => new Throttled({ retryAfter: options.retryAfter }))
  /** How much work was in the queue when the latest send arrived. */
  let [lineMillis, latestMillis] = [0, 0]
  const received = (now: number): Effect.Effect<void, any> => {
    const second = Math.floor(now / 1000)
    seen.requests++
    seen.requestsPerSecond.set(second, (seen.requestsPerSecond.get(second) ?? 0) + 1)
    const outage = outages.find((outage) => isDuring(outage, now))
    if (outage !== undefined) {
      seen.failed++
      return play({ ...outage.outcome, latencyMillis: outage.outcome.latencyMillis ?? latencyMillis })
    }
    lineMillis = Math.max(0, lineMillis - Math.max(0, now - latestMillis))
    latestMillis = now
    const waitMillis = lineMillis + 1000 / capacity
    // Sums of fractions such as a third of a second are not exact.
    if (overload === "reject" && waitMillis > burstMillis + 1e-6) {
      seen.throttled++
      return play({ answer: throttle, latencyMillis })
    }
    seen.accepted++
    lineMillis = waitMillis
    return play({ answer: Effect.void, latencyMillis: latencyMillis + (overload === "slow" ? waitMillis : 0) })
  }
  const seen = {
    requests: 0,
    accepted: 0,
    throttled: 0,
    failed: 0,
    requestsPerSecond: new Map<number, number>(),
    send: Effect.flatMap(Clock.currentTimeMillis, received)
  }
  return seen
}
