import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Bucket from "../math/bucket.ts"
import { type CallFiber, clockOf, monotonicMillis } from "./clock.ts"
import { Waiters } from "./waiters.ts"

/** What is wanted of a store that cannot give it at once. */
export interface Request {
  readonly cost: number
  readonly clock: Clock.Clock
  /** How long it is worth waiting for; `Infinity` for as long as it takes. */
  readonly patienceMillis: number
}

/** What is done with tokens that were taken, or with the news (`undefined`) that they cannot be had. */
export type Use<A> = (held: Held | undefined) => A

/** A first attempt that has been paid for. */
export interface FirstAttempt {
  /** It leaves: until then, what was paid goes back when the effect ends. */
  readonly sends: () => void
  /** It never left after all: puts back what was paid. */
  readonly undo: () => void
}

/**
 * The bucket under the service. Each synchronous member is one atomic step.
 */
export interface Store {
  /** What a call that succeeds without a retry puts in. */
  readonly successIncrement: number
  /** What a first attempt takes. */
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
  /** It has to be asked: what `take` does not give at once may still be had from `reserve`. */
  readonly isRemote: boolean
  /** Takes tokens at once, unless there are too few, others wait for them, or the store has to be asked. */
  readonly take: (cost: number, clock: Clock.Clock) => Held | undefined
  readonly put: (tokens: number, clock: Clock.Clock) => void
  /** Nothing can be put in. */
  readonly isFull: boolean
  /** The tokens there are, as far as is known without asking. */
  readonly balance: (clock: Clock.Clock) => number
  /** The tokens there are. */
  readonly look: Effect.Effect<number>
  /** Takes as many tokens as there are, at most `cost`, and tells how many. */
  readonly takeUpTo: (cost: number, clock: Clock.Clock) => number
  /** Asks, or waits, for tokens and hands them to `use`. What was taken and not handed over goes back. */
  readonly reserve: <A>(request: Request, use: Use<A>) => Effect.Effect<A>
  /** Runs `use` once a first attempt has been paid for; `refused` is the error of one that cannot be, and may not wait. */
  readonly afterFirstCost: <A, E, R, E2>(
    clock: Clock.Clock,
    use: (paid: FirstAttempt) => Effect.Effect<A, E, R>,
    refused: () => E2
  ) => Effect.Effect<A, E | E2, R>
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
  readonly isRemote = false
  readonly waiters = new Waiters()
  readonly successIncrement: number
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
  private readonly config: Bucket.BucketConfig
  private bucket: Bucket.Bucket
  private latestMillis: number
  /** How far the time of the bucket is ahead of the clock, which has gone back by as much. */
  private aheadMillis = 0

  constructor(options: StoreOptions, updatedAtMillis: number) {
    this.config = { capacity: options.capacity, refillPerMilli: options.refillPerSecond / 1000 }
    this.bucket = { tokens: options.initial, updatedAtMillis }
    this.latestMillis = updatedAtMillis
    this.successIncrement = options.successIncrement
    this.firstAttemptCost = options.firstAttemptCost
    this.whenExhausted = options.whenExhausted
  }

  /** Never goes back: else nothing would flow in until a clock that did so has caught up. */
  private now(clock: Clock.Clock): number {
    if (this.config.refillPerMilli === 0) return 0
    const millis = monotonicMillis(clock)
    this.aheadMillis = Math.max(this.aheadMillis, this.latestMillis - millis)
    return this.latestMillis = Math.max(this.latestMillis, millis + this.aheadMillis)
  }

  private refilled(clock: Clock.Clock): Bucket.Bucket {
    return Bucket.refill(this.bucket, this.config, this.now(clock))
  }

  /** The tokens that were taken, for whoever settles them. */
  protected hold(cost: number, clock: Clock.Clock): Held {
    return new Held(this, cost, clock)
  }

  take(cost: number, clock: Clock.Clock): Held | undefined {
    if (this.waiters.size > 0) return undefined
    const taken = Bucket.take(this.refilled(clock), cost)
    if (taken === undefined) return undefined
    this.bucket = taken
    return this.hold(cost, clock)
  }

  /** Takes the tokens and answers 0, or answers as `millisUntil`. */
  private takeOrWait(cost: number, clock: Clock.Clock): number {
    const taken = Bucket.takeWhenDue(this.bucket, this.config, cost, this.now(clock))
    if (taken === undefined) return this.millisUntil(cost, clock)
    this.bucket = taken
    return 0
  }

  /** Milliseconds until the tokens are there if nobody else takes them. */
  private millisUntil(cost: number, clock: Clock.Clock): number {
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

  get isFull(): boolean {
    return this.bucket.tokens >= this.config.capacity && this.waiters.size === 0
  }

  balance(clock: Clock.Clock): number {
    return this.refilled(clock).tokens
  }

  get look(): Effect.Effect<number> {
    return Effect.withFiber((fiber) => Effect.succeed(this.balance(clockOf(fiber))))
  }

  /** Waits, first come, first served, unless the store is one to stop. */
  reserve<A>(request: Request, use: Use<A>): Effect.Effect<A> {
    const { clock, cost, patienceMillis } = request
    if (this.whenExhausted === "stop") return Effect.sync(() => use(this.take(cost, clock)))
    return Effect.suspend(() => {
      const hopeless = cost > this.config.capacity || this.millisUntil(cost, clock) >= patienceMillis
      return hopeless ? Effect.succeed(use(undefined)) : withPatience(request, use, (handOver) => {
        const grant = { take: () => this.takeOrWait(cost, clock), undo: () => this.put(cost, clock) }
        return this.waiters.run(grant, (used) =>
          Effect.sync(() => {
            used()
            return handOver(this.hold(cost, clock))
          }))
      })
    })
  }

  afterFirstCost<A, E, R, E2>(
    clock: Clock.Clock,
    use: (paid: FirstAttempt) => Effect.Effect<A, E, R>,
    refused: () => E2
  ): Effect.Effect<A, E | E2, R> {
    const undo = () => this.put(this.firstAttemptCost, clock)
    return this.waiters.run(
      { take: () => this.takeOrWait(this.firstAttemptCost, clock), undo },
      (sends) => use({ sends, undo }),
      { refuses: () => this.whenExhausted === "stop" ? refused() : undefined }
    )
  }
}

/** Reserves, and gives up when the patience ends. */
export const withPatience = <A>(
  { patienceMillis }: Request,
  use: Use<A>,
  reserve: (use: Use<A>) => Effect.Effect<A>
): Effect.Effect<A> => {
  if (patienceMillis === Infinity) return reserve(use)
  return Effect.suspend(() => {
    let handedOver: Held | undefined = undefined
    const reserved = reserve((held) => {
      handedOver = held
      return use(held)
    })
    return Effect.timeoutOrElse(reserved, {
      duration: patienceMillis,
      orElse: () =>
        Effect.sync(() => {
          // The tokens may have come in the very moment in which the time was over.
          handedOver?.cancelUnsafe()
          return use(undefined)
        })
    })
  })
}

/** Tokens taken for one retry, which go back or are spent. */
export class Held {
  cost: number
  readonly store: Store
  protected readonly clock: Clock.Clock
  private state: "held" | "returned" | "spent" | "void" = "held"

  constructor(store: Store, cost: number, clock: Clock.Clock) {
    this.store = store
    this.cost = cost
    this.clock = clock
  }

  protected putBack(): void {
    this.store.put(this.cost, this.clock)
  }

  /** Takes back what went back, as far as it is there. */
  protected takeAgain(): void {
    this.cost = this.store.takeUpTo(this.cost, this.clock)
  }

  /** A bucket in memory has nothing to note when tokens are spent. */
  protected keepTaken(): void {}

  /** The retry is sent, in this fiber. What ends it unsettled leaves the tokens taken: nothing to note in memory. */
  sentUnsafe(_fiber: CallFiber): void {}

  /** Puts the tokens back: the retry has succeeded, or seems never to leave. */
  giveBackUnsafe(): boolean {
    if (this.state !== "held") return false
    this.state = "returned"
    this.putBack()
    return true
  }

  /** Leaves the tokens taken: the retry has failed. */
  spendUnsafe(): boolean {
    if (this.state !== "held") return false
    this.state = "spent"
    this.keepTaken()
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
    this.takeAgain()
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
