import type * as Clock from "effect/Clock"
import { monotonicMillis } from "../../internal/clock.ts"
import type { Ask, Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { SendGate } from "../../SendGate.ts"
import { DelegatingStore } from "./delegatingStore.ts"
import { type GrpcThrottleOptions, GrpcThrottleStore } from "./grpcBudget.ts"
import { InFlightStore } from "./inFlightBudget.ts"
import { feeGate, JoinedStore } from "./joinedStore.ts"
import { type ShareOptions, ShareStore } from "./shareBudget.ts"

/** The budgets next to a bucket, if any. */
export interface BudgetOptions {
  readonly share: ShareOptions | undefined
  readonly inFlight: ConstructorParameters<typeof InFlightStore>[0] | undefined
  readonly grpc: GrpcThrottleOptions | undefined
}

/** A bucket and the budgets next to it, which can be added, changed and removed while in use. */
export class ChangingBudgets extends DelegatingStore {
  /** The bucket. Deposits go to it; the budgets count sends themselves. */
  readonly store: RetryQuotaStore
  private readonly ownGates: ReadonlyArray<SendGate>
  private joined: JoinedStore
  private share: ShareStore | undefined = undefined
  private inFlight: InFlightStore | undefined = undefined
  private grpc: GrpcThrottleStore | undefined = undefined
  private options: BudgetOptions = { share: undefined, inFlight: undefined, grpc: undefined }

  constructor(bucket: RetryQuotaStore, private readonly refused: (cost: number, balance: number) => unknown) {
    super()
    this.store = bucket
    this.joined = new JoinedStore([bucket], refused)
    const gate = (order: number, gateOf: () => SendGate | undefined): SendGate => ({
      name: "RetryBudget",
      order,
      enter: (send) => gateOf()?.enter(send)
    })
    const fee = feeGate(bucket, refused)
    this.ownGates = [
      gate(fee.order, () => bucket.firstAttemptCost > 0 ? fee : undefined),
      gate(0, () => this.options.inFlight && this.inFlight?.gates[0]),
      gate(1000, () => this.options.share && this.share?.gates[0]),
      gate(1000, () => this.options.grpc && this.grpc?.gates[0])
    ]
  }

  /** The bucket has its own, which a gate takes. */
  override get firstAttemptCost(): number {
    return 0
  }

  override get gates(): ReadonlyArray<SendGate> {
    return this.ownGates
  }

  /** A budget keeps its counts. */
  change(options: BudgetOptions, clock: Clock.Clock): void {
    const { grpc, inFlight, share } = this.options = options
    if (share !== undefined) {
      this.share ??= new ShareStore(share, monotonicMillis(clock))
      this.share.change(share, clock)
    }
    if (inFlight !== undefined) {
      this.inFlight ??= new InFlightStore(inFlight)
      this.inFlight.change(inFlight)
    }
    if (grpc !== undefined) {
      this.grpc ??= new GrpcThrottleStore(grpc)
      this.grpc.change(grpc)
    }
    const stores = [share && this.share, inFlight && this.inFlight, grpc && this.grpc]
    this.joined = new JoinedStore([this.store, ...stores.flatMap((store) => store ?? [])], this.refused)
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    return this.joined.reserve(cost, clock)
  }

  override balance(clock: Clock.Clock): number {
    return this.joined.balance(clock)
  }
}
