import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { type CallFiber, clockOf, monotonicMillis } from "../../internal/state/clock.ts"
import { type FirstAttempt, Held, MemoryStore, type StoreOptions } from "../../internal/state/store.ts"
import { checks, type InvalidOption } from "../../InvalidOption.ts"
import * as RetryQuota from "../../RetryQuota.ts"

/**
 * A quota at a moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface QuotaState {
  /** The tokens there are: from 0 to `capacity`. */
  readonly balance: number
  readonly capacity: number
  /** Tokens of retries in their back-off or in flight, and of reservations that are not settled. */
  readonly held: number
  /** Retries and first attempts that wait for tokens. */
  readonly waiting: number
}

/** Tokens that remember where they are. */
class Noted extends Held {
  place: "held" | "back" | "spent" = "held"
  /** Their retry may leave: only then they may be spent. */
  private claimed = false
  /** Their retry has left. */
  private left = false
  private readonly fiber: CallFiber | undefined = Fiber.getCurrent()
  /** The fiber in which the retry is sent, as long as it is known. */
  private sender: CallFiber | undefined = undefined

  protected override putBack(): void {
    this.place = "back"
    super.putBack()
  }

  protected override takeAgain(): void {
    this.place = "held"
    super.takeAgain()
  }

  protected override keepTaken(): void {
    this.place = "spent"
  }

  override resumeUnsafe(): void {
    this.claimed = true
    super.resumeUnsafe()
  }

  /** A token that outlives the fiber it was made in was handed on, as to a promise: no fiber tells how its retry ends. */
  override sentUnsafe(fiber: CallFiber): void {
    this.left = true
    if (this.fiber?.pollUnsafe() === undefined) this.sender = fiber
    super.sentUnsafe(fiber)
  }

  /** A reservation leaves when its owner says so. */
  override get spend(): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      this.claimed = true
      return super.spend
    })
  }

  /** A retry that was in flight when its fiber ended is spent, unless the fiber succeeded: then nothing is. */
  private get isLeftAlone(): boolean {
    const exit = (this.sender ?? this.fiber)?.pollUnsafe()
    return this.left && exit !== undefined && (this.sender === undefined || Exit.isFailure(exit))
  }

  get isHeld(): boolean {
    return this.place === "held" && !this.isLeftAlone
  }

  /** What is spent for a retry that never left is lost. */
  get isSpent(): boolean {
    return this.place === "spent" ? this.claimed : this.place === "held" && this.isLeftAlone
  }
}

/**
 * A bucket that keeps a ledger of what is taken from it.
 *
 * @internal
 */
export class Ledger extends MemoryStore {
  private readonly taken: Array<Noted> = []
  private spentOnFirst = 0
  /** Tokens come in that nobody has held: from calls that succeed, or with time. */
  readonly gains: boolean

  constructor(options: StoreOptions, nowMillis: number) {
    super(options, nowMillis)
    this.gains = options.successIncrement > 0 || options.refillPerSecond > 0
  }

  protected override hold(cost: number, clock: Clock.Clock): Held {
    const noted = new Noted(this, cost, clock)
    this.taken.push(noted)
    return noted
  }

  override afterFirstCost<A, E, R, E2>(
    clock: Clock.Clock,
    use: (paid: FirstAttempt) => Effect.Effect<A, E, R>,
    refused: () => E2
  ): Effect.Effect<A, E | E2, R> {
    const noted = ({ sends, undo }: FirstAttempt): FirstAttempt => {
      let spent = 0
      const spend = (tokens: number) => {
        this.spentOnFirst += tokens - spent
        spent = tokens
      }
      return {
        sends: () => {
          spend(this.firstAttemptCost)
          sends()
        },
        undo: () => {
          spend(0)
          undo()
        }
      }
    }
    return super.afterFirstCost(clock, (paid) => use(noted(paid)), refused)
  }

  private sum(counts: (noted: Noted) => boolean): number {
    return this.taken.reduce((sum, noted) => counts(noted) ? sum + noted.cost : sum, 0)
  }

  get held(): number {
    return this.sum(({ isHeld }) => isHeld)
  }

  /** Tokens of retries that were sent and did not succeed, of first attempts, and of reservations that were spent. */
  get spent(): number {
    return this.spentOnFirst + this.sum(({ isSpent }) => isSpent)
  }
}

/**
 * Makes a quota over a ledger.
 *
 * @internal
 */
export const makeQuota = (options: RetryQuota.Options) => {
  const valid = RetryQuota.validated(options, "testQuota")
  return Effect.clockWith((clock) =>
    Effect.sync(() => {
      const ledger = new Ledger(valid, monotonicMillis(clock))
      return { ledger, quota: RetryQuota.serviceOf(valid.capacity, ledger) }
    })
  )
}

/**
 * A quota of its own whose state can be read with {@link quotaState} and set with {@link setBalance}. It behaves as that
 * of `RetryQuota.layer`, and takes the same options: `initial` is the balance at the start. Throws `InvalidOption` when an
 * option is impossible.
 *
 * **Example** (An exhausted quota)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const call = outcomes([throttled])
 *   yield* Effect.exit(call.send.pipe(withRetry(awsStandard), runToEnd))
 *   assert.strictEqual((yield* quotaState).balance, 3)
 * }).pipe(Effect.provide(testQuota({ initial: 3 })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const testQuota = (options?: RetryQuota.Options): Layer.Layer<RetryQuota.RetryQuota> =>
  Layer.effect(RetryQuota.RetryQuota, Effect.map(makeQuota(options ?? {}), ({ quota }) => quota))

/**
 * The quota now. Of a quota that is not of {@link testQuota}, `held` is 0, for it keeps no such account.
 *
 * @category getters
 * @since 0.1.0
 */
export const quotaState: Effect.Effect<QuotaState, never, RetryQuota.RetryQuota> = RetryQuota.RetryQuota.use(
  ({ balance, capacity, store }) =>
    Effect.map(balance, (balance) => ({
      balance,
      capacity,
      held: store instanceof Ledger ? store.held : 0,
      waiting: store instanceof MemoryStore ? store.waiters.size : 0
    }))
)

/**
 * Sets the balance of the quota, as if others had used it: a number from 0 to its capacity. Fails for others.
 *
 * @category combinators
 * @since 0.1.0
 */
export const setBalance = (tokens: number): Effect.Effect<void, InvalidOption, RetryQuota.RetryQuota> =>
  RetryQuota.RetryQuota.use((quota) =>
    Effect.flatMap(
      Effect.try({
        try: () => checks("setBalance").between("tokens", tokens, 0, quota.capacity),
        catch: (error) => error as InvalidOption
      }),
      () =>
        Effect.withFiber((fiber) =>
          Effect.sync(() => {
            quota.store.takeUpTo(quota.capacity, clockOf(fiber))
            quota.store.put(tokens, clockOf(fiber))
          })
        )
    )
  )
