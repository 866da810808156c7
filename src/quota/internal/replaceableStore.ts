import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "../../internal/clock.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import { DelegatingStore } from "./delegatingStore.ts"
import { askOf, patienceUntil } from "./reservation.ts"

/** A quota whose tokens can move to another place while in use. What was taken goes back to where it was taken. */
export class ReplaceableStore extends DelegatingStore {
  /** Done when those who wait have to ask again. */
  private changed = Deferred.makeUnsafe<"changed">()

  constructor(
    /** Where the tokens are. */
    public store: RetryQuotaStore
  ) {
    super()
  }

  override get refresh(): Effect.Effect<void> {
    return Effect.suspend(() => this.store.refresh ?? Effect.void)
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    const first = this.store.reserve(cost, clock)
    if (typeof first !== "function") return first
    return (patience, hold) =>
      Effect.suspend(() => {
        const untilMillis = monotonicMillis(clock) + Duration.toMillis(patience)
        let isHeld = false
        const held = (reservation: Reservation) => {
          isHeld = true
          hold(reservation)
        }
        const asking = (ask: Ask): Effect.Effect<Shortage> =>
          Effect.flatMap(
            Effect.raceFirst(ask(patienceUntil(untilMillis, clock), held), Deferred.await(this.changed)),
            (shortage) => {
              if (shortage !== "changed") return Effect.succeed(shortage)
              return isHeld ? Effect.void : asking(askOf(this.store.reserve(cost, clock)))
            }
          )
        return asking(first)
      })
  }

  /** The tokens are elsewhere from now on, or options have changed: those who wait ask again, in their order. */
  moveTo(store: RetryQuotaStore): void {
    const { changed } = this
    this.store = store
    this.changed = Deferred.makeUnsafe<"changed">()
    Deferred.doneUnsafe(changed, Effect.succeed("changed"))
  }
}
