import { type Actor, type Agenda, type Front, fronts } from "./agenda.ts"

/**
 * Events that are all planned the same time ahead: the first to be planned is the first to come due, so only that one
 * is in the agenda. Made for timeouts, nearly all of which are canceled.
 */
export class Lane implements Front {
  private at = new Float64Array(64)
  private order = new Float64Array(64)
  private who: Array<Actor | undefined> = []
  private head = 0
  private tail = 0
  private isPlanned = false

  constructor(private readonly agenda: Agenda, private readonly what: number) {}

  /** Plans; returns a ticket that can cancel it. */
  add(atMillis: number, who: Actor): number {
    if (this.tail - this.head === this.at.length) this.grow()
    const ticket = this.tail++
    const place = ticket & (this.at.length - 1)
    this.at[place] = atMillis
    this.order[place] = this.agenda.nextOrder()
    this.who[place] = who
    if (!this.isPlanned) this.plan()
    return ticket
  }

  cancel(ticket: number): void {
    if (ticket >= this.head) this.who[ticket & (this.at.length - 1)] = undefined
  }

  isStale(): boolean {
    return this.who[this.head & (this.at.length - 1)] === undefined
  }

  act(): void {
    const place = this.head++ & (this.at.length - 1)
    const who = this.who[place]
    this.who[place] = undefined
    this.plan()
    who?.act(this.what)
  }

  /** The first that is not canceled goes into the agenda. */
  private plan(): void {
    const mask = this.at.length - 1
    while (this.head < this.tail && this.who[this.head & mask] === undefined) this.head++
    this.isPlanned = this.head < this.tail
    if (this.isPlanned) this.agenda.add(this.at[this.head & mask]!, this.order[this.head & mask]!, this, fronts)
  }

  private grow(): void {
    const length = this.at.length * 2
    const [at, order, who] = [new Float64Array(length), new Float64Array(length), [] as Array<Actor | undefined>]
    for (let ticket = this.head; ticket < this.tail; ticket++) {
      const from = ticket & (this.at.length - 1)
      const to = ticket & (length - 1)
      at[to] = this.at[from]!
      order[to] = this.order[from]!
      who[to] = this.who[from]
    }
    this.at = at
    this.order = order
    this.who = who
  }
}
