import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Checks, checks, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import { isObject } from "../../internal/invalidField.ts"
import * as Bucket from "../../internal/math/tokenBucket.ts"
import { Stateful } from "../../internal/savedState.ts"
import { Waiters } from "../../internal/tokenLine.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"

/** Valid options of a store. */
export interface StoreOptions extends Bucket.BucketConfig {
  readonly initial: number
  readonly refillPerSecond: number
  readonly successIncrement: number
  readonly firstAttemptCost: number
  readonly onExceeded: "stop" | "wait"
  readonly maxWaiters: number
}

/** Options before they are checked: those of `RetryQuota`. */
type StoreInput = { readonly [Option in keyof StoreOptions]?: StoreOptions[Option] | undefined } & {
  readonly restore?: { readonly tokens: number; readonly capacity: number } | undefined
}

/** The tokens that a saved state begins with, if there is one. */
const restored = (check: Checks, restore: StoreInput["restore"], initial: number, capacity: number): number => {
  check.names.add("restore")
  if (restore === undefined) return initial
  if (!isObject(restore)) return check.reject("restore", restore, "an object")
  const own = checks(check.tag, "restore.")
  const before = own.positive("capacity", restore.capacity)
  const tokens = own.between("tokens", restore.tokens, 0, before)
  return rejectUnknown(own, restore, Math.min(capacity, tokens * (capacity / before)))
}

/** Options of a quota, with their defaults, checked. `check` may know others. */
export const validStore = (options: StoreInput, check: Checks = checksOf("RetryQuota.make", options)): StoreOptions => {
  const capacity = check.positive("capacity", options.capacity, 500)
  const upToCapacity = (field: "initial" | "successIncrement" | "firstAttemptCost", otherwise: number): number => {
    const { [field]: tokens = otherwise } = options
    return check.between(field, tokens, 0, capacity)
  }
  const initial = restored(check, options.restore, upToCapacity("initial", capacity), capacity)
  const refillPerSecond = check.amount("refillPerSecond", options.refillPerSecond, 0)
  const valid = {
    capacity,
    initial,
    refillPerSecond,
    refillPerMilli: refillPerSecond / 1000,
    successIncrement: upToCapacity("successIncrement", Math.min(1, capacity)),
    firstAttemptCost: upToCapacity("firstAttemptCost", 0),
    onExceeded: check.oneOf("onExceeded", options.onExceeded, ["stop", "wait"], "stop"),
    maxWaiters: check.count("maxWaiters", options.maxWaiters, 0, 100_000)
  }
  rejectUnknown(check, options)
  return valid.onExceeded === "wait" && refillPerSecond === 0
    ? check.reject("refillPerSecond", refillPerSecond, `above 0 when onExceeded is "wait"`)
    : valid
}

const refused = /* @__PURE__ */ Effect.succeed("refused" as const)

/** The bucket in the memory of this process. There may be very many, most of them idle. */
export class MemoryStore extends Stateful<Bucket.Bucket> implements RetryQuotaStore {
  /** Read before every send, so it is its own field. */
  firstAttemptCost: number
  /** The waiters for tokens, created for the first. */
  private waiters: Waiters | undefined = undefined
  private latestMillis: number
  /** How far the bucket's time is ahead of the clock, if the clock went backwards. */
  private aheadMillis = 0

  constructor(protected options: StoreOptions, updatedAtMillis: number) {
    const latestMillis = options.refillPerMilli === 0 ? 0 : updatedAtMillis
    super({ tokens: options.initial, updatedAtMillis: latestMillis })
    this.firstAttemptCost = options.firstAttemptCost
    this.latestMillis = latestMillis
  }

  get capacity(): number {
    return this.options.capacity
  }

  /** The tokens it began with. */
  get initial(): number {
    return this.options.initial
  }

  get successIncrement(): number {
    return this.options.successIncrement
  }

  get onExceeded(): "stop" | "wait" {
    return this.options.onExceeded
  }

  /** Takes tokens immediately, unless there are too few or others wait for them. */
  reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    if (this.take(cost, clock)) return new Held(this, cost, clock)
    if (this.onExceeded === "stop" || this.isCrowded) return undefined
    // Waits, first come, first served.
    return (patience, hold) =>
      Effect.suspend((): Effect.Effect<Shortage> => {
        if (cost > this.capacity || this.isCrowded) return refused
        if (this.millisUntil(cost, clock) >= Duration.toMillis(patience)) return Effect.void
        return (this.waiters ??= new Waiters()).wait({
          take: () => this.takeOrWait(cost, clock),
          granted: () => hold(new Held(this, cost, clock))
        })
      })
  }

  /** Takes the difference or returns it. Returns whether it could. */
  resize(from: number, to: number, clock: Clock.Clock): boolean {
    if (to < from) this.deposit(from - to, clock)
    return to <= from || (to <= this.capacity && this.take(to - from, clock))
  }

  deposit(tokens: number, clock: Clock.Clock): void {
    this.state = Bucket.put(this.refilled(clock), this.options, tokens)
    this.waiters?.wakeHead()
  }

  get isFull(): boolean {
    return this.state.tokens >= this.options.capacity && this.waiting === 0
  }

  /** Whether it has no fewer tokens than a new one. */
  get isBlank(): boolean {
    return this.state.tokens >= this.options.initial
  }

  balance(clock: Clock.Clock): number {
    return this.refilled(clock).tokens
  }

  set(tokens: number, clock: Clock.Clock): void {
    this.state = { tokens, updatedAtMillis: this.refilled(clock).updatedAtMillis }
    this.waiters?.wakeHead()
  }

  /** How many wait for tokens. */
  get waiting(): number {
    return this.waiters?.size ?? 0
  }

  private get isCrowded(): boolean {
    return this.waiting >= this.options.maxWaiters
  }

  /** Takes tokens, unless there are too few or others wait for them. */
  private take(cost: number, clock: Clock.Clock): boolean {
    const taken = this.waiting > 0 ? undefined : Bucket.take(this.refilled(clock), cost)
    if (taken !== undefined) this.state = taken
    return taken !== undefined
  }

  /** Takes the tokens and returns 0, or returns the same as `millisUntil`. */
  private takeOrWait(cost: number, clock: Clock.Clock): number {
    const taken = Bucket.takeWhenDue(this.state, this.options, cost, this.now(clock))
    if (taken === undefined) return this.millisUntil(cost, clock)
    this.state = taken
    return 0
  }

  /** Milliseconds until the tokens are available if no other caller takes them. */
  private millisUntil(cost: number, clock: Clock.Clock): number {
    return Bucket.millisUntil(this.refilled(clock), this.options, cost)
  }

  /** Never goes backwards: otherwise nothing would be refilled until such a clock had caught up. */
  private now(clock: Clock.Clock): number {
    if (this.options.refillPerMilli === 0) return 0
    const millis = monotonicMillis(clock)
    this.aheadMillis = Math.max(this.aheadMillis, this.latestMillis - millis)
    return this.latestMillis = Math.max(this.latestMillis, millis + this.aheadMillis)
  }

  private refilled(clock: Clock.Clock): Bucket.Bucket {
    return this.options.refillPerMilli === 0 ? this.state : Bucket.refill(this.state, this.options, this.now(clock))
  }
}

/** Tokens that were taken, to be settled once. */
class Held implements Reservation {
  private isSettled = false

  constructor(private readonly store: MemoryStore, public cost: number, private readonly clock: Clock.Clock) {}

  resize(cost: number): boolean {
    if (this.isSettled || !this.store.resize(this.cost, cost, this.clock)) return false
    this.cost = cost
    return true
  }

  giveBack(): boolean {
    if (!this.spend()) return false
    this.store.deposit(this.cost, this.clock)
    return true
  }

  spend(): boolean {
    if (this.isSettled) return false
    return this.isSettled = true
  }
}

/** A bucket in memory whose options can change while in use. */
export class ResizableStore extends MemoryStore {
  /** Keeps its share of tokens: half full stays half full. */
  change(options: StoreOptions, clock: Clock.Clock): void {
    const share = this.balance(clock) / this.capacity
    this.options = options
    this.firstAttemptCost = options.firstAttemptCost
    this.set(share * options.capacity, clock)
  }
}
