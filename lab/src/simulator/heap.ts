/** Something that happens at a time. Of two at the same time the first to be planned is the first to happen. */
export class Timer {
  readonly atMillis: number
  readonly order: number
  readonly run: () => void
  /** Its place in the heap; -1 when it is in none. */
  place = -1

  constructor(atMillis: number, order: number, run: () => void) {
    this.atMillis = atMillis
    this.order = order
    this.run = run
  }
}

const isBefore = (a: Timer, b: Timer): boolean =>
  a.atMillis < b.atMillis || (a.atMillis === b.atMillis && a.order < b.order)

/** A binary heap of timers. Each knows its place, so that one that is cancelled leaves nothing behind. */
export class Heap {
  private readonly timers: Array<Timer> = []

  get size(): number {
    return this.timers.length
  }

  get first(): Timer | undefined {
    return this.timers[0]
  }

  push(timer: Timer): void {
    this.timers.push(timer)
    this.rise(timer, this.timers.length - 1)
  }

  /** Takes a timer out; one that is in no heap is left alone. */
  remove(timer: Timer): void {
    const { place } = timer
    if (place < 0) return
    timer.place = -1
    const last = this.timers.pop()!
    if (last === timer) return
    const parent = (place - 1) >> 1
    if (place > 0 && isBefore(last, this.timers[parent]!)) this.rise(last, place)
    else this.sink(last, place)
  }

  private rise(timer: Timer, from: number): void {
    const timers = this.timers
    let place = from
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = timers[parent]!
      if (!isBefore(timer, above)) break
      timers[place] = above
      above.place = place
      place = parent
    }
    timers[place] = timer
    timer.place = place
  }

  private sink(timer: Timer, from: number): void {
    const timers = this.timers
    const half = timers.length >> 1
    let place = from
    while (place < half) {
      const child = this.earlierChild(place)
      const below = timers[child]!
      if (!isBefore(below, timer)) break
      timers[place] = below
      below.place = place
      place = child
    }
    timers[place] = timer
    timer.place = place
  }

  private earlierChild(place: number): number {
    const left = 2 * place + 1
    const right = left + 1
    return right < this.timers.length && isBefore(this.timers[right]!, this.timers[left]!) ? right : left
  }
}
