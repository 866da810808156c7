import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "../../internal/clock.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import { DelegatingStore } from "./delegatingStore.ts"

type Hold = Parameters<Ask>[1]

/** What a retry asks for, and until when it would wait. */
interface Wish {
  readonly cost: number
  readonly clock: Clock.Clock
  readonly untilMillis: number
  readonly hold: Hold
}

/** A quota whose tokens can move to another place while in use. What was taken goes back to where it was taken. */
export class ReplaceableStore extends DelegatingStore {
  /** Done when those who wait have to ask again. */
  private changed = Deferred.makeUnsafe<"changed">()
  private readonly refreshing = Effect.suspend(() => this.store.refresh ?? Effect.void)

  constructor(
    /** Where the tokens are. */
    public store: RetryQuotaStore
  ) {
    super()
  }

  override get refresh(): Effect.Effect<void> {
    return this.refreshing
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    const answer = this.store.reserve(cost, clock)
    if (typeof answer !== "function") return answer
    return (patience, hold) =>
      Effect.suspend(() => {
        const untilMillis = monotonicMillis(clock) + Duration.toMillis(patience)
        return this.wait(answer, { cost, clock, untilMillis, hold })
      })
  }

  /** The tokens are elsewhere from now on, or options have changed: those who wait ask again, in their order. */
  moveTo(store: RetryQuotaStore): void {
    const { changed } = this
    this.store = store
    this.changed = Deferred.makeUnsafe<"changed">()
    Deferred.doneUnsafe(changed, Effect.succeed("changed"))
  }

  private wait(ask: Ask, wish: Wish): Effect.Effect<Shortage> {
    return Effect.suspend(() => {
      let isHeld = false
      const asked = ask(Duration.millis(Math.max(0, wish.untilMillis - monotonicMillis(wish.clock))), (reservation) => {
        isHeld = true
        wish.hold(reservation)
      })
      return Effect.flatMap(
        Effect.raceFirst(asked, Deferred.await(this.changed)),
        (shortage) => shortage !== "changed" ? Effect.succeed(shortage) : isHeld ? Effect.void : this.again(wish)
      )
    })
  }

  private again(wish: Wish): Effect.Effect<Shortage> {
    const answer = this.store.reserve(wish.cost, wish.clock)
    if (typeof answer === "function") return this.wait(answer, wish)
    if (answer === undefined) return Effect.succeed("refused")
    wish.hold(answer)
    return Effect.void
  }
}
