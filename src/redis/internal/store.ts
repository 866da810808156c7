import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import type { StoreOptions } from "../../state/memoryStore.ts"
import { Taken, uncounted } from "../../state/taken.ts"
import type { Client } from "./client.ts"

/** Which side decided, for the metrics. */
export type Decider = "redis" | "fallback"

/** The quota that decides while Redis does not respond. */
interface Fallback {
  readonly capacity: number
  /** A retry costs more than it ever holds. */
  readonly tooSmall: (cost: number, clock: Clock.Clock) => void
}

type Hold = Parameters<Ask>[1]

/** The bucket in Redis, and the local one while Redis does not respond. */
export class RedisStore implements RetryQuotaStore {
  readonly capacity: number
  readonly successIncrement: number
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
  readonly refresh: Effect.Effect<void>
  private readonly client: Client
  private readonly decided: (by: Decider) => void
  private readonly fallback: Fallback

  constructor(options: StoreOptions, client: Client, decided: (by: Decider) => void, fallback: Fallback) {
    this.capacity = options.capacity
    this.successIncrement = options.successIncrement
    this.firstAttemptCost = options.firstAttemptCost
    this.whenExhausted = options.whenExhausted
    this.refresh = client.refresh
    this.client = client
    this.decided = decided
    this.fallback = fallback
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    if (cost === 0) return uncounted(cost)
    const { capacity, tooSmall } = this.fallback
    if (cost > capacity && cost <= this.capacity) tooSmall(cost, clock)
    const { isLineFull, local } = this.client
    if (local !== undefined) return this.reserveLocally(local, cost, clock)
    const lease = this.client.takeAhead(cost)
    if (lease !== undefined) {
      this.decided("redis")
      return this.taken(cost, lease)
    }
    if (!isLineFull) return (patience, hold) => this.ask(cost, clock, Duration.toMillis(patience), hold)
    this.decided("redis")
    return undefined
  }

  private taken(cost: number, lease: string): Reservation {
    const { outbox } = this.client
    return new Taken(cost, (isBack) => isBack ? outbox.giveBack(lease) : outbox.spend(lease))
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
