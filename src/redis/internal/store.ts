import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import type { Ask, Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { StoreOptions } from "../../state/memoryStore.ts"
import type { Client } from "./client.ts"

/** Who decided, for the metrics. */
export type Decider = "redis" | "fallback"

type Hold = Parameters<Ask>[1]

/** Tokens that were taken, to be settled once. */
const reservation = (cost: number, giveBack: () => void, spend: () => void): Reservation => {
  let isSettled = false
  const once = (settle: () => void) => () => {
    if (isSettled) return false
    isSettled = true
    settle()
    return true
  }
  return { cost, giveBack: once(giveBack), spend: once(spend) }
}

/** The bucket in Redis, and the local one for as long as Redis does not answer. */
export class RedisStore implements RetryQuotaStore {
  readonly capacity: number
  readonly successIncrement: number
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
  readonly refresh: Effect.Effect<void>
  private readonly client: Client
  private readonly decided: (by: Decider) => void

  constructor(options: StoreOptions, client: Client, decided: (by: Decider) => void) {
    this.capacity = options.capacity
    this.successIncrement = options.successIncrement
    this.firstAttemptCost = options.firstAttemptCost
    this.whenExhausted = options.whenExhausted
    this.refresh = client.refresh
    this.client = client
    this.decided = decided
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    if (cost === 0) return reservation(0, constVoid, constVoid)
    const { isLineFull, local } = this.client
    if (local !== undefined) return this.reserveLocally(local, cost, clock)
    if (!isLineFull) return (patience, hold) => this.ask(cost, clock, Duration.toMillis(patience), hold)
    this.decided("redis")
    return undefined
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

  /** Asks Redis. A lease ends by itself when nothing more is known of it. */
  private ask(cost: number, clock: Clock.Clock, patienceMillis: number, hold: Hold): Effect.Effect<void> {
    if (cost > this.capacity || patienceMillis <= 0) return Effect.void
    const { client } = this
    const granted = (lease: string) =>
      hold(reservation(cost, () => client.outbox.giveBack(lease), () => client.outbox.spend(lease)))
    return Effect.suspend(() => {
      const untilMillis = client.nowMillis + patienceMillis
      return Effect.flatMap(client.ask(cost, untilMillis, granted), (answer) => {
        if (answer === "local") return this.askLocally(cost, clock, untilMillis - client.nowMillis, hold)
        this.decided("redis")
        return Effect.void
      })
    })
  }

  private askLocally(cost: number, clock: Clock.Clock, patienceMillis: number, hold: Hold): Effect.Effect<void> {
    const { local } = this.client
    // Redis may have come back before the one who was sent here has got this far.
    if (local === undefined) return this.ask(cost, clock, patienceMillis, hold)
    const answer = this.reserveLocally(local, cost, clock)
    if (typeof answer === "function") return answer(Duration.millis(Math.max(0, patienceMillis)), hold)
    if (answer !== undefined) hold(answer)
    return Effect.void
  }

  private reserveLocally(local: RetryQuotaStore, cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    this.decided("fallback")
    return local.reserve(cost, clock)
  }
}
