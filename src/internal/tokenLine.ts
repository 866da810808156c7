import * as Effect from "effect/Effect"
import { type Linked, List, untilWoken } from "./linkedList.ts"

/** What a waiter waits for. */
export interface Grant {
  /** Takes the amount and returns 0, or returns the milliseconds (at least 1) until it could be available. */
  readonly take: () => number
  /** The amount has been taken: hands it over, in the same step. */
  readonly granted: () => void
}

class Entry implements Linked<Entry> {
  list: List<any> | undefined = undefined
  previous: Entry | undefined = undefined
  next: Entry | undefined = undefined
  signalled = false
  wake: (() => void) | undefined = undefined
  constructor(readonly grant: Grant) {}
}

/**
 * A first come, first served queue. Only the head has a timer; it hands its place on when it leaves, whether granted or
 * interrupted.
 */
export class Waiters extends List<Entry> {
  /**
   * Lets the head check again: what it waits for may be available earlier than expected. It does so in its own turn, so
   * waiters that are served wake one another in turn instead of nesting, and if all are interrupted at the same time,
   * none sets a useless timer.
   */
  wakeHead(): void {
    const head = this.first
    if (head?.wake) head.wake()
    else if (head) head.signalled = true
  }

  /**
   * Waits until it is granted. `refuses` may refuse to wait at all, given how long it could take if the waiter is the
   * first.
   */
  wait<E = never>(grant: Grant, refuses?: (millis: number) => E | undefined): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      const waiter = new Entry(grant)
      return Effect.onError(this.turn(waiter, refuses), () => Effect.sync(() => this.leave(waiter)))
    })
  }

  private turn<E>(waiter: Entry, refuses?: (millis: number) => E | undefined): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      waiter.signalled = false
      const first = this.first === undefined || this.first === waiter
      const millis = first ? waiter.grant.take() : 0
      if (first && millis === 0) {
        this.remove(waiter)
        waiter.grant.granted()
        this.wakeHead()
        return Effect.void
      }
      if (waiter.list === undefined) {
        const refusal = refuses?.(millis)
        if (refusal !== undefined) return Effect.fail(refusal)
        this.append(waiter)
      }
      const woken = untilWoken(waiter, () => waiter.signalled)
      return Effect.flatMap(
        first ? Effect.raceFirst(Effect.sleep(millis), woken) : woken,
        () => this.turn(waiter, refuses)
      )
    })
  }

  private leave(waiter: Entry): void {
    const wasHead = this.first === waiter
    this.remove(waiter)
    if (wasHead) this.wakeHead()
  }
}
