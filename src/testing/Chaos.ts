/**
 * Deliberate faults: sends that fail, hang, are held or slow, by share and time, the same in each run with the same
 * seed.
 *
 * Faults are described in the words of the simulator's outages, so a test on a staging system and a simulation can
 * share one list. {@link around} wraps a send where it is made: an injected failure is a failure of that send.
 * Classifiers judge it, quotas pay for it, limits are cut by it. Nothing is injected without two layers: {@link layer}
 * says what, {@link armed} that it is intended. Without them `around` costs one service lookup.
 *
 * @since 0.1.0
 */

import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { also, checks, checksOf, rejectUnknown } from "../internal/checks.ts"
import { clockOf, monotonicMillis, withMillis } from "../internal/clock.ts"
import { isObject } from "../internal/invalidField.ts"
import * as Records from "../internal/options.ts"
import * as RetryInfo from "../RetryInfo.ts"
import { isDuring, type Times, validOutage, type Window } from "./internal/window.ts"

/** The share of sends that are hit: from 0 to 1. Default 1. */
interface Shared {
  readonly share?: number | undefined
}

/**
 * What goes wrong, as in an outage of a scenario in `@effect-retry/lab/Simulator`: sends fail immediately (`fail`), are
 * never answered (`drop`), are held until it ends (`hold`), or take longer (`slow`). Times count from when the layer is
 * built.
 *
 * **Details**
 *
 * A `slow` send takes `factor` times as long, a finite number of at least 1, plus `by`: it has one of them, or both. A
 * `hold` without an end is invalid. If several outages of a kind overlap, the first in the list counts. A send is held first, then dropped,
 * failed or slowed.
 *
 * @category models
 * @since 0.1.0
 */
export type Outage =
  | Window & Shared & { readonly kind: "fail" }
  | Window & Shared & { readonly kind: "drop" }
  | Window & { readonly kind: "hold"; readonly to: Duration.Input | string }
  | Window & Shared & {
    readonly kind: "slow"
    readonly factor?: number | undefined
    readonly by?: Duration.Input | string | undefined
  }

/**
 * Options of chaos.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** What goes wrong, and when. */
  readonly outages: ReadonlyArray<Outage>
  /**
   * Decides which sends are hit: the same ones in each run with the same seed, by the order in which sends are made.
   * Default 1.
   */
  readonly seed?: number | string | undefined
  /** Which sends can be hit: the names given to {@link around}. Default: all. */
  readonly only?: ReadonlyArray<string> | undefined
}

/**
 * How many sends there were, and what happened to them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Counts {
  readonly sends: number
  readonly failed: number
  readonly dropped: number
  readonly held: number
  readonly slowed: number
}

/**
 * An injected failure. It is transient, like that of a service that is down.
 *
 * @category errors
 * @since 0.1.0
 */
export class ChaosFailure extends Data.TaggedError("ChaosFailure")<{
  /** The name that {@link around} gives the send. */
  readonly name: string
  /** The number of the send among those with this name: 1 for the first. */
  readonly send: number
}> {
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.transient
  }
  override get message(): string {
    return `send ${this.send} of ${JSON.stringify(this.name)} fails on purpose`
  }
}

/**
 * The operations of chaos.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** What happens to the next send with this name; `undefined` if nothing does. */
  readonly fate: (name: string, clock: Clock.Clock) => Fate | undefined
  /** What has been done so far, by name. */
  readonly counts: Effect.Effect<ReadonlyMap<string, Counts>>
}

/**
 * What happens to a send.
 *
 * @category models
 * @since 0.1.0
 */
export interface Fate {
  /** The number of the send among those with its name. */
  readonly send: number
  readonly holdMillis: number
  /** Whether it is made, and if not, how it ends. */
  readonly ends: "made" | "dropped" | "failed"
  readonly factor: number
  readonly byMillis: number
}

/**
 * Deliberate faults. Without this service, none are made.
 *
 * @category services
 * @since 0.1.0
 */
export class Chaos extends Context.Service<Chaos, Service>()("effect-retry/Chaos") {}

/**
 * Confirms that deliberate faults are intended: see {@link armed}.
 *
 * @category services
 * @since 0.1.0
 */
export class Armed extends Context.Service<Armed, { readonly armed: true }>()("effect-retry/Chaos/Armed") {}

/**
 * The layer that {@link layer} requires. Provide it in the one place that is never production.
 *
 * @category layers
 * @since 0.1.0
 */
export const armed: Layer.Layer<Armed> = /* @__PURE__ */ Layer.succeed(Armed, { armed: true })

const share = Records.share(1)

const slow = { share, factor: Records.factor(1), by: Records.duration(0) }

/** The options of each kind, besides its window. */
const kinds = { fail: { share }, drop: { share }, hold: {}, slow }

/** A valid outage, in milliseconds. */
type Valid = Times & Records.Valid<typeof slow> & Pick<Outage, "kind">

const validated = (constructorName: string, outage: Outage, index: number): Valid => {
  const field = `outages[${index}]`
  if (!isObject(outage as unknown)) checks(constructorName).reject(field, outage, "an outage")
  const check = checks(constructorName, `${field}.`)
  const { kind } = outage
  check.oneOf("kind", kind, Object.keys(kinds))
  const valid = { kind, share: 1, factor: 1, byMillis: 0, ...validOutage(check, kinds[kind], outage) }
  if (kind === "hold" && valid.toMillis === Infinity) check.reject("to", outage.to, "a finite duration")
  if (kind === "slow" && (outage.factor ?? outage.by) === undefined) {
    check.reject("factor", outage.factor, "a number of at least 1 if there is no by")
  }
  return valid
}

const settingsOf = (options: Options) => {
  const check = checksOf("Chaos.layer", options)
  const { only, outages, seed = 1 } = options
  also(check, "outages", "seed", "only")
  rejectUnknown(check, options)
  if (!Array.isArray(outages)) check.reject("outages", outages, "an array of outages")
  if (typeof seed !== "string" && !Number.isFinite(seed)) check.reject("seed", seed, "a string or a finite number")
  if (only !== undefined && !(Array.isArray(only) && only.every((name) => typeof name === "string"))) {
    check.reject("only", only, "an array of names")
  }
  return {
    outages: outages.map((outage, index) => validated(check.tag, outage, index)),
    seed,
    only: only && new Set(only)
  }
}

/** Beyond this many names, the others count as one. */
const mostNames = 1000

/**
 * The sends of one name. Each draws the same number of times whatever the time, so its luck depends only on its number.
 */
const sendsOf = (outages: ReadonlyArray<Valid>, random: Random.Random) => {
  const counts = { sends: 0, failed: 0, dropped: 0, held: 0, slowed: 0 }
  const draw = (): number => random.nextDoubleUnsafe()
  const hit = (kind: Valid["kind"], nowMillis: number, luck = 0): Valid | undefined => {
    const outage = outages.find((each) => each.kind === kind && isDuring(each, nowMillis))
    return outage !== undefined && luck < outage.share ? outage : undefined
  }
  /** When a send made now is sent: at the end of the outages that hold it. */
  const sentAtMillis = (nowMillis: number): number => {
    const hold = hit("hold", nowMillis)
    return hold === undefined ? nowMillis : sentAtMillis(hold.toMillis)
  }
  const next = (nowMillis: number): Fate => {
    const [dropLuck, failLuck, slowLuck] = [draw(), draw(), draw()]
    const sentMillis = sentAtMillis(nowMillis)
    const isDropped = hit("drop", sentMillis, dropLuck) !== undefined
    const ends = isDropped ? "dropped" : hit("fail", sentMillis, failLuck) === undefined ? "made" : "failed"
    const slow = ends === "made" ? hit("slow", sentMillis, slowLuck) : undefined
    counts.sends++
    if (sentMillis > nowMillis) counts.held++
    if (ends !== "made") counts[ends]++
    if (slow !== undefined) counts.slowed++
    const { byMillis, factor } = slow ?? { byMillis: 0, factor: 1 }
    return { send: counts.sends, holdMillis: sentMillis - nowMillis, ends, factor, byMillis }
  }
  return { counts, next }
}

/** A random stream per name, so the sends of one name do not affect the others. */
const randomOf = (seed: number | string, name: string): Random.Random =>
  Effect.runSync(Random.withSeed(Random.Random.use(Effect.succeed), `${seed}/${name}`))

/**
 * A layer that injects faults. Requires {@link armed}. Throws `InvalidOption` when an option is invalid.
 *
 * **Details**
 *
 * Times count from when the layer is built, which is logged at Warning.
 *
 * **Example** (A tenth of the sends fail, and all are slow for a while)
 *
 * ```ts
 * const chaos = Chaos.layer({
 *   seed: 7,
 *   outages: [
 *     { kind: "fail", share: 0.1 },
 *     { kind: "slow", from: "10 seconds", to: "20 seconds", by: "200 millis" }
 *   ]
 * }).pipe(Layer.provide(Chaos.armed))
 * const program = Chaos.around(call, "orders").pipe(
 *   withRetry(awsStandard),
 *   Effect.provide([RetryQuota.layer(), chaos])
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Chaos, never, Armed> => {
  const { only, outages, seed } = settingsOf(options)
  return Layer.effect(
    Chaos,
    Effect.gen(function*() {
      yield* Armed
      const startMillis = yield* withMillis((nowMillis) => nowMillis)
      yield* Effect.logWarning(`chaos is armed: ${outages.length} outages, seed ${JSON.stringify(seed)}`)
      const names = new Map<string, ReturnType<typeof sendsOf>>()
      const sendsBy = (name: string): ReturnType<typeof sendsOf> => {
        const existing = names.get(name)
        if (existing !== undefined) return existing
        if (names.size >= mostNames && name !== "") return sendsBy("")
        const sends = sendsOf(outages, randomOf(seed, name))
        names.set(name, sends)
        return sends
      }
      return {
        fate: (name, clock) =>
          only?.has(name) === false ? undefined : sendsBy(name).next(monotonicMillis(clock) - startMillis),
        counts: Effect.sync(() => new Map(Array.from(names, ([name, { counts }]) => [name, { ...counts }])))
      }
    })
  )
}

/** Slows a send down. */
const slowed = <A, E, R>(self: Effect.Effect<A, E, R>, { byMillis, factor }: Fate): Effect.Effect<A, E, R> =>
  Effect.clockWith((clock) => {
    const startMillis = monotonicMillis(clock)
    const rest = Effect.suspend(() => Effect.sleep(byMillis + (factor - 1) * (monotonicMillis(clock) - startMillis)))
    return Effect.flatMap(Effect.exit(self), (exit) => Effect.andThen(rest, exit))
  })

/**
 * Wraps a send, so that `Chaos` can make it fail. Put it directly around the send: inside its timeout, retry and
 * breaker.
 *
 * **Details**
 *
 * A failed or dropped send is not made. The failure is {@link ChaosFailure}, or what `failed` makes of it, such as a
 * client's own error or, as an effect that succeeds, a response with status 503. Without `Chaos` in the context it does
 * nothing.
 *
 * **Gotchas**
 *
 * A dropped send never ends: it needs a timeout around it.
 *
 * **Example** (A failure as the client would report it)
 *
 * ```ts
 * const program = Chaos.around(call, "orders", ({ send }) => Effect.fail(new Error(`refused: ${send}`))).pipe(
 *   withRetry(awsStandard),
 *   Effect.provide(RetryQuota.layer())
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const around = <A, E, R, A2 = never, E2 = ChaosFailure, R2 = never>(
  self: Effect.Effect<A, E, R>,
  name: string,
  failed?: (failure: ChaosFailure) => Effect.Effect<A2, E2, R2>
): Effect.Effect<A | A2, E | E2, R | R2> =>
  Effect.withFiber((fiber) => {
    const fate = Context.getOrUndefined(fiber.context, Chaos)?.fate(name, clockOf(fiber))
    return fate === undefined ? self : fated<A | A2, E | E2, R | R2>(self, fate, () => {
      const failure = new ChaosFailure({ name, send: fate.send })
      return failed === undefined ? Effect.fail(failure as E2) : failed(failure)
    })
  })

const fated = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  fate: Fate,
  failed: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const isSlow = fate.factor > 1 || fate.byMillis > 0
  const made = { made: () => isSlow ? slowed(self, fate) : self, dropped: () => Effect.never, failed }[fate.ends]
  return fate.holdMillis > 0 ? Effect.andThen(Effect.sleep(fate.holdMillis), Effect.suspend(made)) : made()
}

/**
 * What has been done so far, by name.
 *
 * @category getters
 * @since 0.1.0
 */
export const counts: Effect.Effect<ReadonlyMap<string, Counts>, never, Chaos> = /* @__PURE__ */ Chaos.use(
  (chaos) => chaos.counts
)
