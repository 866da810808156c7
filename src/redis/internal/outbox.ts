/** A set of updates for Redis: applied once, or not at all. */
export interface Section {
  readonly sequence: number
  /** Tokens added by successes and deposits. */
  readonly deposit: number
  /** Leases whose tokens go back, including those that Redis may or may not have granted. */
  readonly returned: ReadonlyArray<string>
  /** Leases whose tokens stay taken. */
  readonly spent: ReadonlyArray<string>
}

class Draft implements Section {
  sequence = 0
  closedAtMillis = 0
  deposit = 0
  readonly returned: Array<string> = []
  readonly spent: Array<string> = []

  get hasLeases(): boolean {
    return this.returned.length + this.spent.length > 0
  }

  get isEmpty(): boolean {
    return this.deposit === 0 && !this.hasLeases
  }
}

/**
 * Updates that Redis is not known to have received. However many calls succeed, a deposit is one number; in addition,
 * there is one entry for each lease that has ended.
 */
export class Outbox {
  private open = new Draft()
  private closed: Array<Draft> = []
  private sequence = 0

  /**
   * Calls `changed` when there is an update: of a lease, or a deposit. Drops updates not delivered within `keptMillis`.
   */
  constructor(
    private capacity: number,
    private keptMillis: number,
    private readonly changed: (isLease: boolean) => void
  ) {}

  change(capacity: number, keptMillis: number): void {
    this.capacity = capacity
    this.keptMillis = keptMillis
  }

  get isEmpty(): boolean {
    return this.open.isEmpty && this.closed.length === 0
  }

  /** Whether there are updates other than deposits. */
  get hasLeases(): boolean {
    return this.open.hasLeases || this.closed.some((draft) => draft.hasLeases)
  }

  deposit(tokens: number): void {
    if (tokens === 0) return
    this.open.deposit = Math.min(this.capacity, this.open.deposit + tokens)
    this.changed(false)
  }

  giveBack(lease: string): void {
    this.open.returned.push(lease)
    this.changed(true)
  }

  spend(lease: string): void {
    this.open.spent.push(lease)
    this.changed(true)
  }

  /** Closes the open section: returns the number of the next exchange, and everything to send. */
  close(nowMillis: number): { readonly sequence: number; readonly sections: ReadonlyArray<Section> } {
    const draft = this.open
    draft.sequence = ++this.sequence
    draft.closedAtMillis = nowMillis
    this.open = new Draft()
    this.closed = this.closed.filter(({ closedAtMillis }) => nowMillis - closedAtMillis < this.keptMillis)
    if (!draft.isEmpty) this.closed.push(draft)
    return { sequence: this.sequence, sections: [...this.closed] }
  }

  /** Redis has applied everything up to this exchange. */
  arrived(sequence: number): void {
    this.closed = this.closed.filter((section) => section.sequence > sequence)
  }
}
