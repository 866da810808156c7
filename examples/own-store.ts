/**
 * Your own store: retries are paid for by the successes of the last ten
 * seconds, and by nothing older.
 *
 * The bucket of `RetryQuota.layer` keeps its tokens forever, and starts
 * full. Here each success earns a tenth of a retry, which expires: so
 * retries never exceed a tenth of the recent successes, and in an
 * outage they end after at most ten seconds. The quota, the policies
 * and the testing kit use it like our own stores, and the kit's suite
 * tests it: `RetryQuotaStoreSuite.laws(Effect.sync(() => new
 * RecentShare()))`.
 */
import { type Clock, Effect } from "effect"
import {
  Backoff,
  RetryPolicy,
  RetryQuota,
  type RetryQuotaStore,
  withRetry
} from "effect-retry"
import { TestClock } from "effect/testing"
import { main, show, Unavailable } from "./support/program.ts"

/** What was earned in one second. */
interface Earned {
  readonly second: number
  tokens: number
}

export class RecentShare implements RetryQuotaStore.RetryQuotaStore {
  readonly capacity = 100
  readonly successIncrement = 0.1
  readonly firstAttemptCost = 0
  readonly onExceeded = "stop"
  /** One entry per second, oldest first: at most ten. */
  private earned: Array<Earned> = []
  private latest = 0

  /** Takes the oldest tokens: the others can still be used later. */
  reserve(
    cost: number,
    clock: Clock.Clock
  ): RetryQuotaStore.Reservation | undefined {
    if (this.balance(clock) + 1e-9 < cost) return undefined
    let missing = cost
    for (const earned of this.earned) {
      const taken = Math.min(earned.tokens, missing)
      earned.tokens -= taken
      missing -= taken
    }
    let isSettled = false
    const settle = () => !isSettled && (isSettled = true)
    return {
      cost,
      spend: settle,
      giveBack: () => {
        if (!settle()) return false
        this.deposit(cost, clock)
        return true
      }
    }
  }

  deposit(tokens: number, clock: Clock.Clock): void {
    const room = this.capacity - this.balance(clock)
    const second = this.now(clock)
    const last = this.earned.at(-1)
    if (last?.second === second) last.tokens += Math.min(tokens, room)
    else this.earned.push({ second, tokens: Math.min(tokens, room) })
  }

  balance(clock: Clock.Clock): number {
    const now = this.now(clock)
    this.earned = this.earned.filter(({ second }) => second > now - 10)
    return this.earned.reduce((sum, { tokens }) => sum + tokens, 0)
  }

  /**
   * The second, by the monotonic clock. Never goes backwards, even if
   * the clock does.
   */
  private now(clock: Clock.Clock): number {
    return this.latest = Math.max(
      this.latest,
      Math.floor(Number(clock.monotonicTimeNanosUnsafe()) / 1e9)
    )
  }
}

/**
 * A quota over it, as a layer: provided once, where the program runs.
 */
export const layer = RetryQuota.layerStore(
  Effect.sync(() => new RecentShare())
)

/** Each retry costs one token: what ten successes have earned. */
export const policy = Backoff.exponential("100 millis").pipe(
  RetryPolicy.jittered("full"),
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 1 })
)

export const load = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(withRetry(policy))

const down = [new Unavailable()]

main(
  import.meta.url,
  Effect.gen(function*() {
    yield* show("before any success", [...down, ...down], load)
    yield* Effect.replicateEffect(load(Effect.void), 20)
    yield* show("after 20 successes", down, load)
    yield* show(
      "11 seconds later",
      down,
      (send) => Effect.delay(load(send), "11 seconds")
    )
  }).pipe(Effect.provide([layer, TestClock.layer()]))
)
