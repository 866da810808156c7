import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { StoreOptions } from "../../quota/internal/memoryStore.ts"
import { Taken, uncounted } from "../../quota/internal/reservation.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import type { Client } from "./quotaClient.ts"

/** Which side decided, for the metrics. */
export type Decider = "redis" | "fallback"

/** The options of a bucket in Redis, and the most tokens that the local one holds. */
interface RedisStoreOptions extends StoreOptions {
  readonly fallbackCapacity: number
}

/** A retry costs more than the local bucket ever holds. */
type TooSmall = (cost: number, capacity: number, clock: Clock.Clock) => void

type Hold = Parameters<Ask>[1]

/** The bucket in Redis, and the local one while Redis does not respond. */
export class RedisStore implements RetryQuotaStore {
  capacity = 0
  successIncrement = 0
  firstAttemptCost = 0
  onExceeded: "stop" | "wait" = "stop"
  readonly refresh: Effect.Effect<void>
  private fallbackCapacity = 0
  /** Leases that are not settled yet. */
  private leases = 0
  private settled: (() => void) | undefined = undefined

  constructor(
    options: RedisStoreOptions,
    private readonly client: Client,
    private readonly decided: (by: Decider) => void,
    private readonly tooSmall: TooSmall
  ) {
    this.change(options)
    this.refresh = client.refresh
  }

  change(options: RedisStoreOptions): void {
    this.capacity = options.capacity
    this.successIncrement = options.successIncrement
    this.firstAttemptCost = options.firstAttemptCost
    this.onExceeded = options.onExceeded
    this.fallbackCapacity = options.fallbackCapacity
  }

  /** Calls back once all that was taken is settled, when no more is taken. */
  whenSettled(callback: () => void): void {
    if (this.leases === 0) callback()
    else this.settled = callback
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    if (cost === 0) return uncounted(cost)
    const { fallbackCapacity } = this
    if (cost > fallbackCapacity && cost <= this.capacity) this.tooSmall(cost, fallbackCapacity, clock)
    const { isLineFull, local } = this.client
    if (local !== undefined) return this.reserveLocally(local, cost, clock)
    if (!isLineFull) return (patience, hold) => this.ask(cost, clock, Duration.toMillis(patience), hold)
    this.decided("redis")
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
        if (answer === "local") return this.askLocally(cost, clock, untilMillis - client.nowMillis, hold)
        this.decided("redis")
        return Effect.succeed(answer === "refused" ? answer : undefined)
      })
    })
  }

  private askLocally(cost: number, clock: Clock.Clock, patienceMillis: number, hold: Hold): Effect.Effect<Shortage> {
    const { local } = this.client
    // Redis may have come back before the caller sent here got this far.
    if (local === undefined) return this.ask(cost, clock, patienceMillis, hold)
    const answer = this.reserveLocally(local, cost, clock)
    if (typeof answer === "function") return answer(Duration.millis(Math.max(0, patienceMillis)), hold)
    if (answer === undefined) return Effect.succeed("refused")
    hold(answer)
    return Effect.void
  }

  private reserveLocally(local: RetryQuotaStore, cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    this.decided("fallback")
    return local.reserve(cost, clock)
  }
}
