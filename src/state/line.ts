import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type Criticality, CurrentCriticality } from "../Criticality.ts"
import { monotonicMillis } from "../internal/clock.ts"
import type { AnyContext } from "../internal/shared.ts"

const ranks: { readonly [Of in Criticality]: 0 | 1 | 2 } = { critical: 0, normal: 1, sheddable: 2 }

/** Who waits. It stands in two lists: of all, and of those that matter as much. */
class Waiter {
  readonly previous: Array<Waiter | undefined> = [undefined, undefined]
  readonly next: Array<Waiter | undefined> = [undefined, undefined]
  readonly rank: number
  readonly untilMillis: number
  readonly granted: () => void
  state: "new" | "waiting" | "granted" | "displaced" = "new"
  wake: (() => void) | undefined = undefined

  constructor(rank: number, untilMillis: number, granted: () => void) {
    this.rank = rank
    this.untilMillis = untilMillis
    this.granted = granted
  }
}

class List {
  first: Waiter | undefined = undefined
  last: Waiter | undefined = undefined
  private readonly links: 0 | 1

  constructor(links: 0 | 1) {
    this.links = links
  }

  append(waiter: Waiter): void {
    waiter.previous[this.links] = this.last
    if (this.last === undefined) this.first = waiter
    else this.last.next[this.links] = waiter
    this.last = waiter
  }

  remove(waiter: Waiter): void {
    const { links } = this
    const previous = waiter.previous[links]
    const next = waiter.next[links]
    if (previous === undefined) this.first = next
    else previous.next[links] = next
    if (next === undefined) this.last = previous
    else next.previous[links] = previous
    waiter.previous[links] = waiter.next[links] = undefined
  }
}

/** How a line is kept. */
export interface LineOptions<E> {
  readonly order: "fifo" | "lifo"
  readonly maxWaiters: number
  /** The same for all, so that the first to come is the first to give up: one timer does for all. */
  readonly maxWaitMillis: number
  /** Milliseconds from now until somebody may pass though nobody ends before; `Infinity` when that is not known. */
  readonly opensInMillis: (nowMillis: number) => number
  /** Lets pass whoever can. */
  readonly admit: (nowMillis: number) => void
  readonly refused: (reason: "full" | "queue-full", nowMillis: number) => E
}

/**
 * A line in front of something that has room for so many: those that matter most are served first, among equals the
 * first to come (or the last). Each waits only so long. Only the one that has waited longest has a timer.
 */
export class Line<E> {
  size = 0
  private readonly all = new List(0)
  private readonly ranks = [new List(1), new List(1), new List(1)] as const
  private readonly options: LineOptions<E>
  private signaling = false
  private signalAgain = false

  constructor(options: LineOptions<E>) {
    this.options = options
  }

  /** Waits until `granted` is called, which hands over in the same step. */
  wait(context: AnyContext, granted: () => void): Effect.Effect<void, E> {
    const clock = Context.get(context, Clock.Clock)
    const rank = ranks[Context.get(context, CurrentCriticality)]
    return Effect.suspend(() => {
      const now = monotonicMillis(clock)
      if (this.size >= this.options.maxWaiters && !this.displaces(rank)) return this.refusal("queue-full", now)
      const waiter = new Waiter(rank, now + this.options.maxWaitMillis, granted)
      const waited = Effect.suspend(() => {
        this.join(waiter)
        return this.turn(waiter, clock)
      })
      return Effect.onExit(waited, () => Effect.sync(() => this.leave(waiter)))
    })
  }

  /** Serves the next. */
  serve(): void {
    const rank = this.ranks.find(({ first }) => first !== undefined)
    const waiter = this.options.order === "fifo" ? rank?.first : rank?.last
    if (waiter === undefined) return
    waiter.state = "granted"
    waiter.granted()
    this.dismiss(waiter)
  }

  /** Something has changed for the one with the timer. */
  signal(): void {
    this.signalAgain = true
    // Who is woken runs immediately, and may wake the next one: here in turn, not each inside the one before it.
    if (this.signaling) return
    this.signaling = true
    try {
      while (this.signalAgain) {
        this.signalAgain = false
        this.all.first?.wake?.()
      }
    } finally {
      this.signaling = false
    }
  }

  private turn(waiter: Waiter, clock: Clock.Clock): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      if (waiter.state === "granted") return Effect.void
      const now = monotonicMillis(clock)
      if (waiter.state === "displaced") return this.refusal("queue-full", now)
      const isFirst = this.all.first === waiter
      const woken = this.woken(waiter, isFirst)
      if (!isFirst) return Effect.flatMap(woken, () => this.turn(waiter, clock))
      if (now >= waiter.untilMillis) return this.refusal("full", now)
      const millis = Math.min(waiter.untilMillis - now, Math.max(1, this.options.opensInMillis(now)))
      return Effect.flatMap(Effect.raceFirst(Effect.sleep(Math.ceil(millis)), woken), () => {
        this.options.admit(monotonicMillis(clock))
        return this.turn(waiter, clock)
      })
    })
  }

  private woken(waiter: Waiter, wasFirst: boolean): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (waiter.state !== "waiting" || wasFirst !== (this.all.first === waiter)) return resume(Effect.void)
      waiter.wake = () => {
        waiter.wake = undefined
        resume(Effect.void)
      }
      return Effect.sync(() => {
        waiter.wake = undefined
      })
    })
  }

  /** Makes room for one that matters more than somebody who waits: the last of the least. */
  private displaces(rank: number): boolean {
    for (let least = 2; least > rank; least--) {
      const { last } = this.ranks[least]!
      if (last !== undefined) {
        last.state = "displaced"
        this.dismiss(last)
        return true
      }
    }
    return false
  }

  private refusal(reason: "full" | "queue-full", nowMillis: number): Effect.Effect<never, E> {
    return Effect.fail(this.options.refused(reason, nowMillis))
  }

  private join(waiter: Waiter): void {
    waiter.state = "waiting"
    this.all.append(waiter)
    this.ranks[waiter.rank]!.append(waiter)
    this.size++
  }

  private leave(waiter: Waiter): void {
    if (waiter.state !== "waiting") return
    waiter.state = "displaced"
    this.dismiss(waiter)
  }

  private dismiss(waiter: Waiter): void {
    const hadTimer = this.all.first === waiter
    this.all.remove(waiter)
    this.ranks[waiter.rank]!.remove(waiter)
    this.size--
    waiter.wake?.()
    if (hadTimer) this.signal()
  }
}
