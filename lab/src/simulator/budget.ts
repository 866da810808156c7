import * as RetryBudget from "effect-retry/RetryBudget"
import type { Reservation, RetryQuotaStore } from "effect-retry/RetryQuotaStore"
import type { Outcome, Pass, SendGate } from "effect-retry/SendGate"
import * as Effect from "effect/Effect"

/** A shortfall below this counts as none. */
const epsilon = 1e-9

/** The settings of a budget. Rates and shares as published; times are milliseconds. */
export type BudgetOptions =
  | {
    readonly kind: "bucket"
    readonly capacity: number
    readonly perCall: number
    readonly perSuccess: number
    readonly above: number
  }
  | { readonly kind: "finagle"; readonly ttlMillis: number; readonly minPerSecond: number; readonly share: number }
  | { readonly kind: "ratio"; readonly share: number; readonly of: "calls" | "attempts"; readonly windowMillis: number }
  | { readonly kind: "grpc"; readonly maxTokens: number; readonly tokenRatio: number }
  | { readonly kind: "envoy"; readonly share: number; readonly minConcurrency: number }
  | { readonly kind: "breaker"; readonly threshold: number }

type OptionsOf<Kind extends BudgetOptions["kind"]> = Extract<BudgetOptions, { readonly kind: Kind }>

/** A retry that has been granted, or refused. */
class Taken implements Reservation {
  private undo: (() => void) | undefined
  private isSettled = false

  constructor(readonly cost: number, undo?: () => void) {
    this.undo = undo
  }

  sent(): void {
    this.undo = undefined
  }

  giveBack(): boolean {
    return this.settle(this.undo)
  }

  spend(): boolean {
    return this.settle(undefined)
  }

  private settle(undo: (() => void) | undefined): boolean {
    if (this.isSettled) return false
    this.isSettled = true
    undo?.()
    return true
  }
}

/** What a budget observes: that a call makes its first send, and how each send ends. */
interface Ears {
  readonly called: () => void
  /** The first send of a call was never made. */
  readonly uncalled: () => void
  readonly ended: (succeeded: boolean) => void
}

/** The last of the gates: what others hold back is not a send. */
const listening = ({ called, ended, uncalled }: Ears): SendGate => {
  const settle = ({ _tag }: Outcome) => {
    if (_tag !== "Unknown") ended(_tag === "Success")
  }
  const first: Pass = { settle, cancel: uncalled }
  const later: Pass = { settle, cancel: () => undefined }
  return {
    name: "RetryBudget",
    order: 1000,
    enter: (send) => {
      if (send.attempt > 1) return send.hold(later)
      called()
      send.hold(first)
    }
  }
}

/** A store that counts retries, and changes only with what is reported to it. */
abstract class HearingStore implements RetryQuotaStore {
  readonly capacity = Infinity
  readonly successIncrement = 0
  readonly firstAttemptCost = 0
  readonly onExceeded = "stop"
  readonly gates: ReadonlyArray<SendGate> = [listening({
    called: () => this.called(1),
    uncalled: () => this.called(-1),
    ended: (succeeded) => this.ended(succeeded)
  })]

  abstract balance(): number
  protected abstract called(calls: 1 | -1): void
  protected abstract ended(succeeded: boolean): void
  /** Takes one retry, if there is one; returns how to put it back. */
  protected abstract take(): (() => void) | undefined

  reserve(cost: number): Reservation | undefined {
    if (cost === 0) return new Taken(cost)
    const undo = this.take()
    return undo && new Taken(cost, undo)
  }

  deposit(): void {}
}

/**
 * A bucket that starts full, into which calls or successes put a share of a retry. A retry takes 1, and needs more than
 * `above` before it takes: Brooker's simulator asks for more than 1. Unlike the bucket of the library it gets nothing
 * back for a retry that succeeds.
 * Source: Brooker, "Fixing retries with token buckets and circuit breakers", 2022, and its simulator.
 */
class BucketStore extends HearingStore {
  private tokens: number

  constructor(private readonly options: OptionsOf<"bucket">) {
    super()
    this.tokens = options.capacity
  }

  balance(): number {
    return this.tokens
  }

  protected called(calls: 1 | -1): void {
    this.put(calls * this.options.perCall)
  }

  protected ended(succeeded: boolean): void {
    if (succeeded) this.put(this.options.perSuccess)
  }

  protected take(): (() => void) | undefined {
    if (this.tokens + epsilon < 1 || this.tokens <= this.options.above + epsilon) return undefined
    this.tokens--
    return () => this.put(1)
  }

  private put(amount: number): void {
    this.tokens = Math.max(0, Math.min(this.options.capacity, this.tokens + amount))
  }
}

/** No retries while there have ever been more failed attempts than a share of the calls. Source: Brooker, as above. */
class BreakerStore extends HearingStore {
  private calls = 0
  private failures = 0
  private readonly threshold: number

  constructor({ threshold }: OptionsOf<"breaker">) {
    super()
    this.threshold = threshold
  }

  balance(): number {
    return this.threshold - this.failures / Math.max(1, this.calls)
  }

  protected called(calls: 1 | -1): void {
    this.calls += calls
  }

  protected ended(succeeded: boolean): void {
    if (!succeeded) this.failures++
  }

  protected take(): (() => void) | undefined {
    return this.balance() >= 0 ? () => undefined : undefined
  }
}

/** Every failure takes a token of gRPC's throttle: the simulator has no failure that says nothing about the service. */
const isFailure = () => true

/** The budget of one process. Throws `InvalidOption` when its options do not go together. */
export const storeOf = (options: BudgetOptions): Effect.Effect<RetryQuotaStore> => {
  switch (options.kind) {
    case "bucket":
      return Effect.sync(() => new BucketStore(options))
    case "finagle":
      return RetryBudget.share({
        share: options.share,
        minPerSecond: options.minPerSecond,
        window: options.ttlMillis
      })
    case "ratio": {
      const { of, share, windowMillis } = options
      // A share of all attempts, retries included, is a larger one of the calls.
      return RetryBudget.share({
        share: of === "calls" ? share : share / (1 - share),
        minPerSecond: 0,
        window: windowMillis
      })
    }
    case "grpc":
      return RetryBudget.grpc({ maxTokens: options.maxTokens, tokenRatio: options.tokenRatio, isFailure })
    case "envoy":
      return RetryBudget.inFlight({ share: options.share, atLeast: options.minConcurrency })
    case "breaker":
      return Effect.sync(() => new BreakerStore(options))
  }
}
