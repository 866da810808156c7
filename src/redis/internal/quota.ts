import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { type fallbackOptions, fleetOptionsOf } from "../../config/internal/fleetStores.ts"
import { BoundedLabels, others } from "../../internal/boundedLabels.ts"
import { type Checks, checks, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { isObject } from "../../internal/invalidField.ts"
import { type Inputs, readOptions } from "../../internal/options.ts"
import { remembering } from "../../internal/remembering.ts"
import { warn } from "../../internal/sharing.ts"
import { type StoreOptions, validStore } from "../../quota/internal/memoryStore.ts"
import { askOf, Taken, uncounted } from "../../quota/internal/reservation.ts"
import { CurrentResource } from "../../RetryObserver.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import { type Connect, Exchanges } from "./exchange.ts"
import { decisionLog, type SharedOptions, validShared } from "./fleet.ts"
import { QuotaClient, type QuotaTerms } from "./quotaClient.ts"

/** Decisions about tokens. */
export const decisions: Metric.Counter<number> = Metric.counter("retry_quota_decisions", {
  description: "Decisions about tokens of a shared retry quota",
  incremental: true
})

/** Whether the local fallback decides. */
export const fallback: Metric.Gauge<number> = Metric.gauge("retry_quota_fallback", {
  description: "1 while the local fallback of a shared retry quota decides, else 0"
})

type Hold = Parameters<Ask>[1]

/** The bucket in Redis, and the local one while Redis does not respond. */
class RedisStore implements RetryQuotaStore {
  capacity = 0
  successIncrement = 0
  firstAttemptCost = 0
  onExceeded: "stop" | "wait" = "stop"
  readonly refresh: Effect.Effect<void>
  /** The most tokens that the local one holds. */
  private fallbackCapacity = 0
  /** Leases that are not settled yet. */
  private leases = 0
  private settled: (() => void) | undefined = undefined
  private readonly byRedis: Metric.Counter<number>
  private readonly byFallback: Metric.Counter<number>

  constructor(
    terms: QuotaTerms,
    private readonly client: QuotaClient,
    private readonly context: Context.Context<never>,
    resource: string
  ) {
    this.follow(terms)
    this.refresh = client.refresh
    this.byRedis = Metric.withAttributes(decisions, { resource, by: "redis" })
    this.byFallback = Metric.withAttributes(decisions, { resource, by: "fallback" })
  }

  change(terms: QuotaTerms, clock: Clock.Clock): void {
    this.client.change(terms, clock)
    this.follow(terms)
  }

  private follow({ local, store }: QuotaTerms): void {
    this.capacity = store.capacity
    this.successIncrement = store.successIncrement
    this.firstAttemptCost = store.firstAttemptCost
    this.onExceeded = store.onExceeded
    this.fallbackCapacity = local(0).capacity
  }

  /** No more is taken: calls back once all that was taken is settled. */
  end(callback: () => void): void {
    if (this.leases === 0) callback()
    else this.settled = callback
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    if (cost === 0) return uncounted(cost)
    const { fallbackCapacity } = this
    if (cost > fallbackCapacity && cost <= this.capacity) {
      const costs = `a retry costs ${cost}, the fallback of its RetryQuota holds ${fallbackCapacity}`
      warn({ clock, context: this.context }, `${costs}: none is made while Redis does not respond`)
    }
    const { isLineFull, local } = this.client
    if (local !== undefined) {
      this.byFallback.updateUnsafe(1, this.context)
      return local.reserve(cost, clock)
    }
    if (!isLineFull) return (patience, hold) => this.ask(cost, clock, Duration.toMillis(patience), hold)
    this.byRedis.updateUnsafe(1, this.context)
    return undefined
  }

  private taken(cost: number, lease: string): Reservation {
    const { outbox } = this.client
    this.leases++
    return new Taken(cost, (isBack) => {
      if (isBack) outbox.giveBack(lease)
      else outbox.spend(lease)
      if (--this.leases === 0) this.settled?.()
    })
  }

  deposit(tokens: number, clock: Clock.Clock): void {
    const { local, outbox } = this.client
    if (local === undefined) outbox.deposit(tokens)
    else local.deposit(tokens, clock)
  }

  balance(clock: Clock.Clock): number {
    const { local, tokens } = this.client
    return Math.min(this.capacity, local === undefined ? tokens : local.balance(clock))
  }

  /** Asks Redis. A lease expires without further reports about it. */
  private ask(cost: number, clock: Clock.Clock, patienceMillis: number, hold: Hold): Effect.Effect<Shortage> {
    if (cost > this.capacity) return Effect.succeed("refused")
    if (patienceMillis <= 0) return Effect.void
    const { client } = this
    const granted = (lease: string) => hold(this.taken(cost, lease))
    return Effect.suspend(() => {
      const untilMillis = client.nowMillis + patienceMillis
      return Effect.flatMap(client.ask(cost, untilMillis, granted), (answer) => {
        // The one that decides now: by then, Redis may have come back.
        if (answer === "local") {
          return askOf(this.reserve(cost, clock))(Duration.millis(Math.max(0, untilMillis - client.nowMillis)), hold)
        }
        this.byRedis.updateUnsafe(1, this.context)
        return Effect.succeed(answer === "refused" ? answer : undefined)
      })
    })
  }
}

type Options = RetryQuota.Options & SharedOptions & Inputs<typeof fleetOptionsOf.quota>

/** The checked options of a shared quota. */
interface Valid {
  readonly name: string
  readonly terms: QuotaTerms
}

const constructorName = "RetryQuotaRedis.make"
const hourMillis = 3_600_000

/** The options of the fallback, given the tokens last seen. */
const validFallback = (shared: StoreOptions, input: Inputs<typeof fallbackOptions> = {}): QuotaTerms["local"] => {
  if (!isObject(input as unknown)) return checks(constructorName).reject("fallback", input, "an object")
  const check = checks(constructorName, "fallback.")
  const capacity = check.positive("capacity", input.capacity ?? shared.capacity)
  if (capacity < shared.firstAttemptCost) {
    check.reject("capacity", capacity, `at least the firstAttemptCost, ${shared.firstAttemptCost}`)
  }
  const initial = input.initial === undefined
    ? undefined
    : check.between("initial", input.initial, 0, capacity)
  const refillPerSecond = check.amount("refillPerSecond", input.refillPerSecond ?? shared.refillPerSecond)
  if (shared.onExceeded === "wait" && refillPerSecond === 0) {
    check.reject("refillPerSecond", refillPerSecond, `above 0 when onExceeded is "wait"`)
  }
  check.names.add("initial")
  rejectUnknown(check, input)
  const successIncrement = Math.min(shared.successIncrement, capacity)
  return (tokens) => ({
    ...shared,
    capacity,
    initial: initial ?? Math.min(capacity, tokens),
    refillPerSecond,
    successIncrement
  })
}

const validLease = (check: Checks, options: Options) => {
  const { flushIntervalMillis, leaseTimeMillis, idleTimeToLiveMillis = Math.max(hourMillis, 2 * leaseTimeMillis) } =
    readOptions(check, fleetOptionsOf.quota, options)
  if (idleTimeToLiveMillis < 2 * leaseTimeMillis) {
    check.reject("idleTimeToLive", options.idleTimeToLive, "at least twice the leaseTime")
  }
  return { flushMillis: flushIntervalMillis, leaseMillis: leaseTimeMillis, idleMillis: idleTimeToLiveMillis }
}

/** The options of a shared quota, with their defaults, checked. */
export const validated = (options: Options): Valid => {
  const check = checksOf(constructorName, options)
  const { key, name, times } = validShared(check, options, "retry-quota:")
  const { flushMillis, ...lease } = validLease(check, options)
  const store = validStore(options, check)
  const { capacity, initial, maxWaiters, refillPerSecond, onExceeded } = store
  const inOrder = onExceeded === "wait" && maxWaiters > 0
  const settings = { key, capacity, initial, refillPerSecond, ...lease, inOrder }
  const local = validFallback(store, options.fallback)
  return { name, terms: { store, settings, flushMillis, local, ...times } }
}

const maxResources = 100

/** The resources seen by the metrics of a registry. */
const seenIn = /* @__PURE__ */ remembering(() => new BoundedLabels(maxResources, others))

/** What the metrics call the quota. */
const resourceOf = (name: string, context: Context.Context<never>): string => {
  const labels = seenIn(Context.get(context, Metric.MetricRegistry))
  return labels.of(Context.get(context, CurrentResource) ?? name)
}

const show = (resource: string, isOnFallback: boolean): Effect.Effect<void> =>
  resource === others
    ? Effect.void
    : Metric.update(Metric.withAttributes(fallback, { resource }), isOnFallback ? 1 : 0)

const log = decisionLog("retry quota", " and decides", "the local fallback decides")

/** The store over a connection that exists, or may come to exist. */
export const opened = ({ name, terms }: Valid, connect: Connect, tokens?: number) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    const resource = resourceOf(name, context)
    const onChange = (reason: string | undefined, isNews: boolean) =>
      Effect.andThen(show(resource, reason !== undefined), isNews ? log(name, reason) : Effect.void)
    const exchanges = yield* Exchanges.make({ connect, onChange })
    /** It starts over: retries that were paid for may be made again. */
    const lost = () => {
      const message = `Redis has lost the retry quota ${JSON.stringify(name)}: it starts over`
      warn({ context, clock: Context.get(context, Clock.Clock) }, message)
    }
    const client = new QuotaClient(terms, exchanges, lost, tokens)
    const isConnected = connect.isConnected()
    if (!isConnected) exchanges.decideAlone()
    yield* show(resource, !isConnected)
    yield* Effect.addFinalizer(() => show(resource, false))
    yield* exchanges.start()
    yield* Effect.addFinalizer(() => exchanges.finish(() => client.outbox.isEmpty))
    return new RedisStore(terms, client, context, resource)
  }).pipe(Effect.uninterruptible)

/** Makes a shared quota. */
export const over = (valid: Valid, connect: Connect) => Effect.map(opened(valid, connect), RetryQuota.fromStore)
