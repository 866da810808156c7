import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Bucket from "../internal/bucket.ts"
import { monotonicMillis } from "./clock.ts"
import { Waiters } from "./waiters.ts"

/**
 * The bucket under the service. Each member is one atomic step.
 */
export interface Store {
  /** What a call that succeeds without a retry puts in. */
  readonly successIncrement: number
  /** What a first attempt takes. */
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
  readonly waiters: Waiters
  /** Takes tokens, unless there are too few or others wait for them. */
  readonly take: (cost: number, clock: Clock.Clock) => boolean
  readonly put: (tokens: number, clock: Clock.Clock) => void
  readonly balance: (clock: Clock.Clock) => number
  /** Takes as many tokens as there are, at most `cost`, and tells how many. */
  readonly takeUpTo: (cost: number, clock: Clock.Clock) => number
  /** Milliseconds until the tokens are there if nobody else takes them. */
  readonly millisUntil: (cost: number, clock: Clock.Clock) => number
  /** Takes the tokens and answers 0, or answers as `millisUntil`. */
  readonly takeOrWait: (cost: number, clock: Clock.Clock) => number
}

/** What a store is made of, valid. */
export interface StoreOptions {
  readonly capacity: number
  readonly initial: number
  readonly refillPerSecond: number
  readonly successIncrement: number
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
}

/** The bucket in the memory of this process. */
export class MemoryStore implements Store {
  readonly waiters = new Waiters()
  readonly successIncrement: number
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
  private readonly config: Bucket.BucketConfig
  private bucket: Bucket.Bucket

  constructor(options: StoreOptions, updatedAtMillis: number) {
    this.config = { capacity: options.capacity, refillPerMilli: options.refillPerSecond / 1000 }
    this.bucket = { tokens: options.initial, updatedAtMillis }
    this.successIncrement = options.successIncrement
    this.firstAttemptCost = options.firstAttemptCost
    this.whenExhausted = options.whenExhausted
  }

  private now(clock: Clock.Clock): number {
    return this.config.refillPerMilli === 0 ? 0 : monotonicMillis(clock)
  }

  private refilled(clock: Clock.Clock): Bucket.Bucket {
    return Bucket.refill(this.bucket, this.config, this.now(clock))
  }

  take(cost: number, clock: Clock.Clock): boolean {
    if (this.waiters.size > 0) return false
    const taken = Bucket.take(this.refilled(clock), cost)
    if (taken !== undefined) this.bucket = taken
    return taken !== undefined
  }

  takeOrWait(cost: number, clock: Clock.Clock): number {
    const taken = Bucket.takeWhenDue(this.bucket, this.config, cost, this.now(clock))
    if (taken === undefined) return this.millisUntil(cost, clock)
    this.bucket = taken
    return 0
  }

  millisUntil(cost: number, clock: Clock.Clock): number {
    return Bucket.millisUntil(this.refilled(clock), this.config, cost)
  }

  takeUpTo(cost: number, clock: Clock.Clock): number {
    const bucket = this.refilled(clock)
    const taken = Math.min(cost, bucket.tokens)
    this.bucket = { tokens: bucket.tokens - taken, updatedAtMillis: bucket.updatedAtMillis }
    return taken
  }

  put(tokens: number, clock: Clock.Clock): void {
    this.bucket = Bucket.put(this.refilled(clock), this.config, tokens)
    if (this.waiters.size > 0) this.waiters.wakeHead()
  }

  balance(clock: Clock.Clock): number {
    return this.refilled(clock).tokens
  }
}

/** Tokens taken for one retry, which go back or are spent. */
export class Held {
  cost: number
  readonly store: Store
  private readonly clock: Clock.Clock
  private state: "held" | "returned" | "spent" | "void" = "held"

  constructor(store: Store, cost: number, clock: Clock.Clock) {
    this.store = store
    this.cost = cost
    this.clock = clock
  }

  /** Puts the tokens back: the retry has succeeded, or seems never to leave. */
  giveBackUnsafe(): boolean {
    if (this.state !== "held") return false
    this.state = "returned"
    this.store.put(this.cost, this.clock)
    return true
  }

  /** Leaves the tokens taken: the retry has failed. */
  spendUnsafe(): boolean {
    if (this.state !== "held") return false
    this.state = "spent"
    return true
  }

  /** Puts the tokens back for good: the retry was refused before it left. */
  cancelUnsafe(): void {
    this.giveBackUnsafe()
    this.state = "void"
  }

  /** The retry leaves after all: takes back what went back, as far as it is there. */
  resumeUnsafe(): void {
    if (this.state !== "returned") return
    this.state = "held"
    this.cost = this.store.takeUpTo(this.cost, this.clock)
  }

  /** The retry has failed as a whole, whatever an attempt inside it reported: the tokens are spent after all. */
  failUnsafe(): void {
    this.resumeUnsafe()
    this.spendUnsafe()
  }

  get giveBack(): Effect.Effect<boolean> {
    return Effect.sync(() => this.giveBackUnsafe())
  }

  get spend(): Effect.Effect<boolean> {
    return Effect.sync(() => this.spendUnsafe())
  }
}

/** Gives the tokens to `use` once they have been taken for it, first come, first served. */
export const waitFor = <A>(
  store: Store,
  cost: number,
  clock: Clock.Clock,
  use: (held: Held) => A
): Effect.Effect<A> =>
  store.waiters.run({
    take: () => store.takeOrWait(cost, clock),
    undo: () => store.put(cost, clock)
  }, (used) =>
    Effect.sync(() => {
      used()
      return use(new Held(store, cost, clock))
    }))

/** Runs `use` once a first attempt has been paid for; `refused` is the error of one that cannot be, and may not wait. */
export const afterFirstCost = <A, E, R, E2>(
  store: Store,
  clock: Clock.Clock,
  use: (sends: () => void) => Effect.Effect<A, E, R>,
  refused: () => E2
): Effect.Effect<A, E | E2, R> =>
  store.waiters.run(
    {
      take: () => store.takeOrWait(store.firstAttemptCost, clock),
      undo: () => store.put(store.firstAttemptCost, clock)
    },
    use,
    { refuses: () => store.whenExhausted === "stop" ? refused() : undefined }
  )
