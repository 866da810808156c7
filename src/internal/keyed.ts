import { type Linked, List } from "./linkedList.ts"

/** The value kept for a key. */
export abstract class Entry implements Linked<Entry> {
  list: List<any> | undefined = undefined
  previous: Entry | undefined = undefined
  next: Entry | undefined = undefined
  /** How many are using it. */
  users = 0
  /** When its last use began, or ended if unused. A whole number: that takes half the memory. */
  sinceMillis = 0

  constructor(readonly key: string) {}

  /** Whether it is as a new one would be, so that nothing is lost with it. Read when its last use ends. */
  abstract get isBlank(): boolean

  /** Whether it is kept beyond the bounds: then it is in no list. */
  get isPinned(): boolean {
    return false
  }

  /** It is forgotten, and no longer used. */
  abstract dropped(): void
}

/** How much is kept, and how long. */
export interface Bounds {
  readonly idleMillis: number
  readonly maxEntries: number
}

/** Each use clears away more entries than it can add, but few enough to be fast. */
const swept = 8

/**
 * Entries by key: made on first use, forgotten after being unused for some time. If there are too many, the one idle
 * longest goes, of the blank ones if there are any: invented keys wipe out no outage. If all are in use, the one whose
 * last use began first goes. Current users keep it.
 */
export class Keyed<A extends Entry> {
  private readonly entries = new Map<string, A>()
  private readonly blank = new List<Entry>()
  private readonly idle = new List<Entry>()
  private readonly busy = new List<Entry>()

  constructor(private readonly bounds: Bounds, private readonly make: (key: string, nowMillis: number) => A) {}

  /** Begins a use. */
  enter(key: string, nowMillis: number): A {
    this.sweep(nowMillis, swept)
    const existing = this.entries.get(key)
    const entry = existing === undefined || this.isOver(existing, nowMillis) ? this.added(key, nowMillis) : existing
    entry.users++
    entry.sinceMillis = Math.floor(nowMillis)
    entry.list?.remove(entry)
    if (!entry.isPinned) this.busy.append(entry)
    this.trim()
    return entry
  }

  /** Ends a use. */
  release(entry: A, nowMillis: number): void {
    if (--entry.users > 0) return
    if (this.busy.remove(entry)) this.rest(entry, nowMillis)
    else if (this.entries.get(entry.key) !== entry) entry.dropped()
  }

  /** Sees which entries are pinned now. */
  refile(nowMillis: number): void {
    for (const entry of this.entries.values()) {
      if (entry.isPinned) entry.list?.remove(entry)
      else if (entry.list !== undefined) continue
      else if (entry.users > 0) this.busy.append(entry)
      else this.rest(entry, nowMillis)
      this.trim()
    }
  }

  /** Forgets entries idle long enough, at most `atMost`. Returns when the next one will be. */
  sweep(nowMillis: number, atMost = Infinity): number | undefined {
    for (let n = 0; n < atMost; n++) {
      const first = this.longestIdle
      if (first === undefined) return undefined
      if (!this.isOver(first, nowMillis)) return first.sinceMillis + this.bounds.idleMillis
      this.forget(first)
    }
    return nowMillis
  }

  /** The number of entries. */
  count(nowMillis: number): number {
    this.sweep(nowMillis)
    return this.entries.size
  }

  /** All entries kept. */
  get all(): Iterable<A> {
    return this.entries.values()
  }

  private added(key: string, nowMillis: number): A {
    const entry = this.make(key, nowMillis)
    const existing = this.entries.get(key)
    if (existing !== undefined) this.forget(existing)
    this.entries.set(key, entry)
    return entry
  }

  private rest(entry: A, nowMillis: number): void {
    entry.sinceMillis = Math.floor(nowMillis)
    ;(entry.isBlank ? this.blank : this.idle).append(entry)
  }

  private trim(): void {
    const size = this.blank.size + this.idle.size + this.busy.size
    if (size > this.bounds.maxEntries) this.forget(this.blank.first ?? this.idle.first ?? this.busy.first!)
  }

  private get longestIdle(): Entry | undefined {
    const [blank, idle] = [this.blank.first, this.idle.first]
    if (blank === undefined || idle === undefined) return blank ?? idle
    return blank.sinceMillis <= idle.sinceMillis ? blank : idle
  }

  private isOver(entry: Entry, nowMillis: number): boolean {
    return entry.users === 0 && entry.list !== undefined && nowMillis - entry.sinceMillis >= this.bounds.idleMillis
  }

  private forget(entry: Entry): void {
    this.entries.delete(entry.key)
    entry.list!.remove(entry)
    if (entry.users === 0) entry.dropped()
  }
}
