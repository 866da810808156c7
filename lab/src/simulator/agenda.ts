/** An actor that does something at a planned time: a small number of its own, below {@link fronts}, says what. */
export interface Actor {
  act(what: number): void
}

/** An actor that stands for several, of which the first is in the agenda. */
export interface Front extends Actor {
  /** The first has been canceled: when it acts, it only plans the next one. */
  readonly isStale: () => boolean
}

/** What a front does. */
export const fronts = 255

/** Buckets per millisecond: enough that each holds few events even in a busy run. */
const perMilli = 8
/** Buckets, a power of 2: few for an agenda that plans little, and four seconds of them for any other. */
const fewBuckets = 64
const manyBuckets = 32_768
/** Places before the agenda plans more than little. */
const fewPlaces = 64
/** Canceled events are cleared when there are more than this, and more of them than of the others. */
const leastCleared = 1024

const doubled = <A extends Float64Array | Int32Array | Uint8Array>(from: A, to: A): A => {
  to.set(from)
  return to
}

/** A heap of places in an agenda, four children each: the earliest first, of those the first to be planned. */
class Heap {
  private places = new Int32Array(fewPlaces)
  size = 0

  get first(): number {
    return this.places[0]!
  }

  push(place: number, at: Float64Array, order: Float64Array): void {
    if (this.size === this.places.length) this.places = doubled(this.places, new Int32Array(this.size * 2))
    const { places } = this
    let hole = this.size++
    const time = at[place]!
    const rank = order[place]!
    while (hole > 0) {
      const parent = (hole - 1) >> 2
      const above = places[parent]!
      const aboveAt = at[above]!
      if (aboveAt < time || (aboveAt === time && order[above]! < rank)) break
      places[hole] = above
      hole = parent
    }
    places[hole] = place
  }

  shift(at: Float64Array, order: Float64Array): number {
    const { places } = this
    const first = places[0]!
    const size = --this.size
    if (size === 0) return first
    const last = places[size]!
    const time = at[last]!
    const rank = order[last]!
    let hole = 0
    for (let child = 1; child < size; child = 4 * hole + 1) {
      const least = this.leastFrom(child, at, order)
      const below = places[least]!
      if (at[below]! > time || (at[below]! === time && order[below]! > rank)) break
      places[hole] = below
      hole = least
    }
    places[hole] = last
    return first
  }

  /** The earliest of up to four children. */
  private leastFrom(child: number, at: Float64Array, order: Float64Array): number {
    const { places } = this
    const end = Math.min(this.size, child + 4)
    let least = child
    for (let next = child + 1; next < end; next++) {
      const one = places[next]!
      const other = places[least]!
      if (at[one]! < at[other]! || (at[one]! === at[other]! && order[one]! < order[other]!)) least = next
    }
    return least
  }
}

/**
 * What is planned, in the order of its time; of what is planned for the same time, the first to be planned comes first. The
 * next few seconds lie in narrow buckets, of which only the one that is due is sorted; what is later is
 * in a heap. Nothing is allocated for what is planned.
 */
export class Agenda {
  private at = new Float64Array(fewPlaces)
  private order = new Float64Array(fewPlaces)
  private what = new Uint8Array(fewPlaces)
  private who: Array<Actor | undefined> = []
  /** In a bucket, or among free places: the next one. */
  private link = new Int32Array(fewPlaces)
  private free = -1
  private used = 0
  private readonly due = new Heap()
  private readonly far = new Heap()
  private buckets = new Int32Array(fewBuckets).fill(-1)
  private inBuckets = 0
  /** The bucket that is due, counted from the beginning. */
  private tick = 0
  private canceled = 0
  private orders = 0
  /** What is planned and not canceled. */
  size = 0

  /** The rank among what is planned for the same time: the next one. */
  nextOrder(): number {
    return this.orders++
  }

  /** Plans; returns the place, which can cancel it until it is due. */
  add(atMillis: number, order: number, who: Actor, what: number): number {
    let place = this.free
    if (place < 0) {
      place = this.used++
      if (place === this.at.length) this.grow()
    } else {
      this.free = this.link[place]!
    }
    this.at[place] = atMillis
    this.order[place] = order
    this.what[place] = what
    this.who[place] = who
    this.size++
    this.put(place)
    return place
  }

  cancel(place: number): void {
    this.who[place] = undefined
    this.size--
    if (++this.canceled > leastCleared && this.canceled > this.size) this.clear()
  }

  /** The place of what comes next; -1 when nothing does. */
  peek(): number {
    while (true) {
      while (this.due.size > 0) {
        const place = this.due.first
        const who = this.who[place]
        if (who === undefined) {
          this.due.shift(this.at, this.order)
          this.canceled--
          this.release(place)
        } else if (this.what[place] === fronts && (who as Front).isStale()) {
          this.act(place)
        } else {
          return place
        }
      }
      if (!this.advance()) return -1
    }
  }

  atMillis(place: number): number {
    return this.at[place]!
  }

  /** Removes what {@link peek} found, and lets it act. */
  act(place: number): void {
    const who = this.who[place]!
    const what = this.what[place]!
    this.due.shift(this.at, this.order)
    this.size--
    this.release(place)
    who.act(what)
  }

  private release(place: number): void {
    this.who[place] = undefined
    this.link[place] = this.free
    this.free = place
  }

  private put(place: number): void {
    const tick = Math.floor(this.at[place]! * perMilli)
    if (tick <= this.tick) return this.due.push(place, this.at, this.order)
    if (tick >= this.tick + this.buckets.length) return this.far.push(place, this.at, this.order)
    const bucket = tick & (this.buckets.length - 1)
    this.link[place] = this.buckets[bucket]!
    this.buckets[bucket] = place
    this.inBuckets++
  }

  /** Moves to the next bucket in which something is planned. */
  private advance(): boolean {
    const { buckets, far } = this
    if (this.inBuckets > 0) {
      while (buckets[++this.tick & (buckets.length - 1)]! < 0);
    } else if (far.size > 0) {
      this.tick = Math.floor(this.at[far.first]! * perMilli)
    } else {
      return false
    }
    while (far.size > 0 && Math.floor(this.at[far.first]! * perMilli) < this.tick + buckets.length) {
      this.put(far.shift(this.at, this.order))
    }
    const bucket = this.tick & (buckets.length - 1)
    let place = buckets[bucket]!
    buckets[bucket] = -1
    while (place >= 0) {
      const next = this.link[place]!
      this.inBuckets--
      this.due.push(place, this.at, this.order)
      place = next
    }
    return true
  }

  /** Puts what is in few buckets into many. */
  private widen(): void {
    const few = this.buckets
    this.buckets = new Int32Array(manyBuckets).fill(-1)
    this.inBuckets = 0
    for (let place of few) {
      while (place >= 0) {
        const next = this.link[place]!
        this.put(place)
        place = next
      }
    }
  }

  /** Drops what is canceled, so that it takes no more room than the rest. */
  private clear(): void {
    this.canceled = 0
    this.free = -1
    this.due.size = this.far.size = this.inBuckets = 0
    this.buckets.fill(-1)
    for (let place = 0; place < this.used; place++) {
      if (this.who[place] === undefined) this.release(place)
      else this.put(place)
    }
  }

  private grow(): void {
    if (this.buckets.length === fewBuckets) this.widen()
    const length = Math.max(1024, this.at.length * 2)
    this.at = doubled(this.at, new Float64Array(length))
    this.order = doubled(this.order, new Float64Array(length))
    this.what = doubled(this.what, new Uint8Array(length))
    this.link = doubled(this.link, new Int32Array(length))
  }
}
