/** What a client has to tell Redis, in one piece: applied once, or not at all. */
export interface Section {
  readonly sequence: number
  /** Tokens that successes and deposits put in. */
  readonly deposit: number
  /** Leases whose tokens go back; those of which it is unknown whether Redis granted them, too. */
  readonly returned: ReadonlySet<number>
  /** Leases that are taken whatever is there, with their cost. */
  readonly taken: ReadonlyMap<number, number>
  /** Leases whose tokens stay taken. */
  readonly spent: ReadonlySet<number>
}

class Draft implements Section {
  sequence = 0
  closedAtMillis = 0
  deposit = 0
  readonly returned = new Set<number>()
  readonly taken = new Map<number, number>()
  readonly spent = new Set<number>()

  get isEmpty(): boolean {
    return this.deposit === 0 && this.returned.size + this.taken.size + this.spent.size === 0
  }
}

/**
 * What has to be told to Redis and has not been heard there for sure. However many calls succeed, a deposit is one
 * number; beside it there is at most one entry for each lease that is out.
 */
export class Outbox {
  private open = new Draft()
  private closed: Array<Draft> = []
  private sequence = 0
  private ids = 0
  private readonly capacity: number
  private readonly keptMillis: number
  private readonly changed: () => void

  /** Calls `changed` when there is something to tell. Gives up what could not be told for `keptMillis`. */
  constructor(capacity: number, keptMillis: number, changed: () => void) {
    this.capacity = capacity
    this.keptMillis = keptMillis
    this.changed = changed
  }

  /** An id that no lease of this client has had. */
  nextId(): number {
    return ++this.ids
  }

  get isEmpty(): boolean {
    return this.open.isEmpty && this.closed.length === 0
  }

  deposit(tokens: number): void {
    if (tokens === 0) return
    this.open.deposit = Math.min(this.capacity, this.open.deposit + tokens)
    this.changed()
  }

  giveBack(id: number): void {
    if (this.open.taken.delete(id)) return
    this.open.returned.add(id)
    this.changed()
  }

  spend(id: number): void {
    this.open.spent.add(id)
    this.changed()
  }

  /** Takes what went back again, under the id that it answers. */
  takeAgain(id: number, cost: number): number {
    if (this.open.returned.delete(id)) return id
    const next = this.nextId()
    this.open.taken.set(next, cost)
    this.changed()
    return next
  }

  /** Closes what is open: the number of the next exchange, and all that it has to tell. */
  close(nowMillis: number): { readonly sequence: number; readonly sections: ReadonlyArray<Section> } {
    const draft = this.open
    draft.sequence = ++this.sequence
    draft.closedAtMillis = nowMillis
    this.open = new Draft()
    this.closed = this.closed.filter(({ closedAtMillis }) => nowMillis - closedAtMillis < this.keptMillis)
    if (!draft.isEmpty) this.closed.push(draft)
    return { sequence: this.sequence, sections: [...this.closed] }
  }

  /** Redis has heard all up to this exchange. */
  heard(sequence: number): void {
    this.closed = this.closed.filter((section) => section.sequence > sequence)
  }
}
