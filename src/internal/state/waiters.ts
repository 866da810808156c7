import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Linked, List } from "./list.ts"

/** What a waiter waits for. */
export interface Grant {
  /** Takes what is wanted and returns 0, or returns the milliseconds (at least 1) until it could be there. */
  readonly take: () => number
  /** What was wanted has been taken: hands it over, in the same step. */
  readonly granted: () => void
}

class Entry implements Linked<Entry> {
  list: List<any> | undefined = undefined
  previous: Entry | undefined = undefined
  next: Entry | undefined = undefined
  isNew = true
  signalled = false
  wake: (() => void) | undefined = undefined
  readonly grant: Grant
  constructor(grant: Grant) {
    this.grant = grant
  }
}

/**
 * A queue in which the first to come is the first to be served. Only the head has a timer; it hands its place on when it
 * leaves, granted or interrupted.
 */
export class Waiters extends List<Entry> {
  private waking = false
  private wakeAgain = false

  /** Lets the head look again: what it waits for may be there earlier than it thought. */
  wakeHead(): void {
    this.wakeAgain = true
    // A head that is woken runs at once, and wakes the next one: here in turn, not each inside the one before it.
    if (this.waking) return
    this.waking = true
    try {
      while (this.wakeAgain) {
        this.wakeAgain = false
        this.signalHead()
      }
    } finally {
      this.waking = false
    }
  }

  private signalHead(): void {
    const head = this.first
    if (head === undefined) return
    if (head.wake === undefined) {
      head.signalled = true
    } else {
      head.wake()
    }
  }

  /**
   * Waits until it is granted. `refuses` may refuse to wait at all, given how long it could take if the waiter is the
   * first.
   */
  wait<E = never>(grant: Grant, refuses?: (millis: number) => E | undefined): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      const waiter = new Entry(grant)
      return Effect.onExit(
        this.turn(waiter, refuses),
        (exit) => Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => this.leave(waiter))
      )
    })
  }

  private turn<E>(waiter: Entry, refuses?: (millis: number) => E | undefined): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      const first = this.first === undefined || this.first === waiter
      const millis = first ? waiter.grant.take() : 0
      if (first && millis === 0) {
        this.remove(waiter)
        waiter.grant.granted()
        this.wakeHead()
        return Effect.void
      }
      if (waiter.isNew) {
        const refusal = refuses?.(millis)
        if (refusal !== undefined) return Effect.fail(refusal)
        waiter.isNew = false
        this.append(waiter)
      }
      const signal = this.signal(waiter)
      return Effect.flatMap(
        first ? Effect.raceFirst(Effect.sleep(millis), signal) : signal,
        () => this.turn(waiter, refuses)
      )
    })
  }

  private signal(waiter: Entry): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (waiter.signalled) {
        waiter.signalled = false
        return resume(Effect.void)
      }
      waiter.wake = () => {
        waiter.wake = undefined
        resume(Effect.void)
      }
      return Effect.sync(() => {
        waiter.wake = undefined
      })
    })
  }

  private leave(waiter: Entry): void {
    const wasHead = this.first === waiter
    if (this.remove(waiter) && wasHead) this.wakeHead()
  }
}
