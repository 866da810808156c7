import { type Linked, List } from "./list.ts"

/** What is kept for a key. */
export abstract class Entry implements Linked<Entry> {
  list: List<any> | undefined = undefined
  previous: Entry | undefined = undefined
  next: Entry | undefined = undefined
  /** How many use it. */
  users = 0
  /** When its last use began, or ended if nobody uses it. Whole: that takes half the memory. */
  sinceMillis = 0
  readonly key: string

  constructor(key: string) {
    this.key = key
  }

  /** It is forgotten, and nobody uses it any more. */
  abstract dropped(): void
}

/** How much is kept, and how long. */
export interface Bounds {
  readonly idleMillis: number
  readonly maxEntries: number
}

/** Whoever comes clears away more than it can add, and not so much that it takes long. */
const swept = 8

/**
 * Entries by key: made when they are first used, forgotten when nobody has used them for some time. When there are too
 * many, the one that has been idle longest goes; when all are in use, the one whose last use began first. Those who use
 * it keep it.
 */
export class Keyed<A extends Entry> {
  private readonly entries = new Map<string, A>()
  private readonly idle = new List<Entry>()
  private readonly busy = new List<Entry>()
  private readonly bounds: Bounds
  private readonly make: (key: string, nowMillis: number) => A

  constructor(bounds: Bounds, make: (key: string, nowMillis: number) => A) {
    this.bounds = bounds
    this.make = make
  }

  /** Begins a use. */
  enter(key: string, nowMillis: number): A {
    this.sweep(nowMillis, swept)
    const known = this.entries.get(key)
    const entry = known === undefined || this.isOver(known, nowMillis) ? this.added(key, nowMillis) : known
    entry.users++
    entry.sinceMillis = Math.floor(nowMillis)
    entry.list?.remove(entry)
    this.busy.append(entry)
    return entry
  }

  /** Ends a use. */
  leave(entry: A, nowMillis: number): void {
    if (--entry.users > 0) return
    if (!this.busy.remove(entry)) return entry.dropped()
    entry.sinceMillis = Math.floor(nowMillis)
    this.idle.append(entry)
  }

  /** Forgets what has been idle for its time, at most so many. Answers when the next one will have been. */
  sweep(nowMillis: number, atMost = Infinity): number | undefined {
    for (let n = 0; n < atMost; n++) {
      const { first } = this.idle
      if (first === undefined) return undefined
      if (!this.isOver(first, nowMillis)) return first.sinceMillis + this.bounds.idleMillis
      this.forget(first)
    }
    return nowMillis
  }

  /** How many there are. */
  count(nowMillis: number): number {
    this.sweep(nowMillis)
    return this.entries.size
  }

  /** All that are kept. */
  get all(): Iterable<A> {
    return this.entries.values()
  }

  private added(key: string, nowMillis: number): A {
    const entry = this.make(key, nowMillis)
    const known = this.entries.get(key)
    if (known !== undefined) this.forget(known)
    this.entries.set(key, entry)
    if (this.entries.size > this.bounds.maxEntries) this.forget(this.idle.first ?? this.busy.first!)
    return entry
  }

  private isOver(entry: Entry, nowMillis: number): boolean {
    return entry.users === 0 && nowMillis - entry.sinceMillis >= this.bounds.idleMillis
  }

  private forget(entry: Entry): void {
    this.entries.delete(entry.key)
    entry.list!.remove(entry)
    if (entry.users === 0) entry.dropped()
  }
}
