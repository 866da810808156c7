import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type Criticality, CurrentCriticality } from "../Criticality.ts"
import { monotonicMillis } from "./clock.ts"
import { type Linked, List, untilWoken } from "./linkedList.ts"
import type { AnyContext } from "./shared.ts"

const ranks: ReadonlyMap<Criticality, 0 | 1 | 2> = new Map([["critical", 0], ["normal", 1], ["sheddable", 2]])

/** A waiting send, and how much it waits for. */
class Waiter<Size> implements Linked<Waiter<Size>> {
  list: List<any> | undefined = undefined
  previous: Waiter<Size> | undefined = undefined
  next: Waiter<Size> | undefined = undefined
  /** How the wait ended; `undefined` while it waits. */
  end: "granted" | "displaced" | undefined = undefined
  wake: (() => void) | undefined = undefined

  constructor(
    readonly rank: 0 | 1 | 2,
    readonly untilMillis: number,
    readonly size: Size,
    readonly granted: (at: Moment) => void
  ) {}
}

/** A moment of the monotonic clock, in milliseconds, possibly read on first use. */
export interface Moment {
  readonly nowMillis: number
}

/** Options of a line. */
export interface LineOptions<E, Size> {
  readonly order: "fifo" | "lifo"
  readonly maxWaiters: number
  /**
   * Asked when a wait begins. The first to arrive is the first to give up, so one timer is enough: one that would give up
   * before those ahead of it does so with them.
   */
  readonly maxWaitMillis: () => number
  /** Milliseconds until the next may pass even if no send ends before; `Infinity` if unknown. */
  readonly opensInMillis: (nowMillis: number, size: Size) => number
  /** Whether there is room for one more of this size. */
  readonly isOpen: (at: Moment, size: Size) => boolean
  readonly refused: (reason: "full" | "queue-full", nowMillis: number, size: Size) => E
}

/**
 * A waiting line for a resource with limited room: the most critical are served first, among equals the first to arrive
 * (or the last). Each waits for a limited time. Only the one that has waited longest has a timer. Waiters may differ in
 * size: none passes before the one whose turn it is, however small.
 */
export class Line<E, Size = void> {
  private readonly ranks = [new List<Waiter<Size>>(), new List<Waiter<Size>>(), new List<Waiter<Size>>()] as const
  /** How many wait. */
  size = 0

  constructor(private options: LineOptions<E, Size>) {}

  /** Changes the options. Current waiters keep their original maximum wait. */
  change(options: Partial<LineOptions<E, Size>>): void {
    this.options = { ...this.options, ...options }
    this.signal()
  }

  /**
   * Waits until `granted` is called, with the moment at which there was room, which hands over in the same step. `gone` is
   * called if the wait is interrupted: it was neither granted nor refused.
   */
  wait(context: AnyContext, granted: (at: Moment) => void, size: Size, gone?: () => void): Effect.Effect<void, E> {
    const clock = Context.get(context, Clock.Clock)
    // It may come from elsewhere, such as a header: an unknown one is normal.
    const rank = ranks.get(Context.get(context, CurrentCriticality)) ?? 1
    return Effect.suspend(() => {
      let waiter: Waiter<Size> | undefined
      const waited = Effect.suspend(() => {
        const now = monotonicMillis(clock)
        if (this.size >= this.options.maxWaiters && !this.displaces(rank)) return this.refusal("queue-full", now, size)
        waiter = new Waiter(rank, now + this.options.maxWaitMillis(), size, granted)
        this.ranks[rank].append(waiter)
        this.size++
        // One that goes before the one with the timer may need less than the timer waits for.
        if (this.next === waiter && this.first!.rank > rank) this.signal()
        return this.turn(waiter, clock)
      })
      return Effect.onExit(waited, () =>
        Effect.sync(() => {
          if (waiter !== undefined && this.leave(waiter)) gone?.()
        }))
    })
  }

  /** Lets waiters pass as long as there is room. */
  admit(at: Moment): void {
    for (let next = this.next; next !== undefined && this.options.isOpen(at, next.size); next = this.next) {
      next.end = "granted"
      next.granted(at)
      this.leave(next)
    }
  }

  /** Something changed for the one with the timer: it checks again, in its own turn. */
  signal(): void {
    this.first?.wake?.()
  }

  /** The one that has waited longest, and has the timer. */
  private get first(): Waiter<Size> | undefined {
    let first: Waiter<Size> | undefined
    for (const { first: one } of this.ranks) {
      if (one !== undefined && !(first !== undefined && first.untilMillis <= one.untilMillis)) first = one
    }
    return first
  }

  /** The one whose turn it is. */
  private get next(): Waiter<Size> | undefined {
    if (this.size === 0) return undefined
    const rank = this.ranks.find(({ size }) => size > 0)
    return this.options.order === "fifo" ? rank?.first : rank?.last
  }

  private turn(waiter: Waiter<Size>, clock: Clock.Clock): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      if (waiter.end === "granted") return Effect.void
      const now = monotonicMillis(clock)
      if (waiter.end === "displaced") return this.refusal("queue-full", now, waiter.size)
      const isFirst = this.first === waiter
      const woken = untilWoken(waiter, () => waiter.end !== undefined || isFirst !== (this.first === waiter))
      if (!isFirst) return Effect.flatMap(woken, () => this.turn(waiter, clock))
      if (now >= waiter.untilMillis) {
        this.leave(waiter)
        return this.refusal("full", now, waiter.size)
      }
      const millis = Math.min(waiter.untilMillis - now, Math.max(1, this.options.opensInMillis(now, this.next!.size)))
      return Effect.flatMap(Effect.raceFirst(Effect.sleep(Math.ceil(millis)), woken), () => {
        this.admit({ nowMillis: monotonicMillis(clock) })
        return this.turn(waiter, clock)
      })
    })
  }

  /** Makes room for a send more critical than some waiter: displaces the last of the least critical. */
  private displaces(rank: number): boolean {
    const last = this.ranks.slice(rank + 1).reverse().find(({ size }) => size > 0)?.last
    if (last === undefined) return false
    last.end = "displaced"
    this.leave(last)
    return true
  }

  private refusal(reason: "full" | "queue-full", nowMillis: number, size: Size): Effect.Effect<never, E> {
    return Effect.fail(this.options.refused(reason, nowMillis, size))
  }

  /** Returns `false` if it had already left. */
  private leave(waiter: Waiter<Size>): boolean {
    const hadTimer = this.first === waiter
    if (!this.ranks[waiter.rank].remove(waiter)) return false
    this.size--
    waiter.wake?.()
    if (hadTimer) this.signal()
    return true
  }
}
