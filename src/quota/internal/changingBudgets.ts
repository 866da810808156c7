import type * as Clock from "effect/Clock"
import { monotonicMillis } from "../../internal/clock.ts"
import type { Ask, Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { SendGate } from "../../SendGate.ts"
import { DelegatingStore } from "./delegatingStore.ts"
import { type GrpcThrottleOptions, GrpcThrottleStore } from "./grpcBudget.ts"
import { InFlightStore } from "./inFlightBudget.ts"
import { feeGate, JoinedStore } from "./joinedStore.ts"
import { budgetGate } from "./reservation.ts"
import { type ShareOptions, ShareStore } from "./shareBudget.ts"

/** The budgets next to a bucket, if any. */
export interface BudgetOptions {
  readonly share: ShareOptions | undefined
  readonly inFlight: ConstructorParameters<typeof InFlightStore>[0] | undefined
  readonly grpc: GrpcThrottleOptions | undefined
}

type Budget = RetryQuotaStore & { readonly change: (options: any, clock: Clock.Clock) => void }

type Name = keyof BudgetOptions

/** The class of each, and where its gate is among the others. */
const kinds: Record<Name, { readonly order: number; readonly Store: new(options: any, nowMillis: number) => Budget }> =
  {
    share: { order: 1000, Store: ShareStore },
    inFlight: { order: 0, Store: InFlightStore },
    grpc: { order: 1000, Store: GrpcThrottleStore }
  }

const names = Object.keys(kinds) as ReadonlyArray<Name>

/** A bucket and the budgets next to it, which can be added, changed and removed while in use. */
export class ChangingBudgets extends DelegatingStore {
  /** The bucket. Deposits go to it; the budgets count sends themselves. */
  readonly store: RetryQuotaStore
  private readonly ownGates: ReadonlyArray<SendGate>
  private joined: JoinedStore
  /** Kept when they are removed: their sends in progress end. */
  private readonly budgets: Partial<Record<Name, Budget>> = {}
  private options: Partial<BudgetOptions> = {}

  constructor(bucket: RetryQuotaStore, private readonly refused: (cost: number, balance: number) => unknown) {
    super()
    this.store = bucket
    this.joined = new JoinedStore([bucket], refused)
    const gate = (order: number, gateOf: () => SendGate | undefined) =>
      budgetGate(order, (send) => gateOf()?.enter(send))
    const fee = feeGate(bucket, refused)
    this.ownGates = [
      gate(fee.order, () => bucket.firstAttemptCost > 0 ? fee : undefined),
      ...names.map((name) => gate(kinds[name].order, () => this.options[name] && this.budgets[name]?.gates?.[0]))
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
    this.options = options
    const budgets = names.flatMap((name) => {
      if (options[name] === undefined) return []
      const budget = this.budgets[name] ??= new kinds[name].Store(options[name], monotonicMillis(clock))
      budget.change(options[name], clock)
      return budget
    })
    this.joined = new JoinedStore([this.store, ...budgets], this.refused)
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    return this.joined.reserve(cost, clock)
  }

  override balance(clock: Clock.Clock): number {
    return this.joined.balance(clock)
  }
}
