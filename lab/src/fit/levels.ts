import { Histogram } from "../simulator/histogram.ts"
import { exp, log } from "../simulator/portable.ts"
import { Ceiling } from "./ceiling.ts"
import { fewest } from "./estimate.ts"
import type { Second } from "./seconds.ts"

/** Seconds with about as much to do: requests in flight when they begin, and those that begin in them. */
export class Level {
  seconds = 0
  /** What there was to do, in all of them. */
  work = 0
  /** Requests that began. */
  requests = 0
  /** Requests that were refused, and those whose client left. */
  refused = 0
  abandoned = 0
  readonly latency = new Histogram()
}

/** Seconds in which equally many requests were served, and waited equally long. */
export interface Group {
  /** Requests that were served in each of them. */
  readonly served: number
  /** What nine of ten requests took or exceeded, in milliseconds. */
  readonly leastMillis: number
  /** Whether requests were refused: at least one of twenty. */
  readonly refusing: boolean
  /** Whether clients left. */
  readonly leaving: boolean
  seconds: number
  abandoned: number
  /** The sum of the differences between what arrived in a second and what was served. */
  imbalance: number
}

const perDoubling = 8
const waitsPerDoubling = 4

const doublings = (value: number): number => log(value) / Math.LN2

/** Three digits: finer than random variation, and few enough groups to keep. */
const rounded = (value: number): number => value < 1000 ? value : Number(value.toPrecision(3))

/** All seconds of a log, by what there was to do and by how long requests waited: its size does not depend on how many they are. */
export class Levels {
  private readonly levels = new Map<number, Level>()
  private readonly found = new Map<string, Group>()
  /** What nine of ten requests took or exceeded in each of the last seconds; `Infinity` where all clients left. */
  latestMillis: ReadonlyArray<number> = []
  readonly ceiling = new Ceiling()

  add(second: Second): void {
    this.ceiling.add(second)
    const { abandoned, arrived, began, ended, present, refused, served } = second
    const work = present + arrived
    if (arrived > 0) {
      const index = Math.round(doublings(work) * perDoubling)
      const level = this.levels.get(index) ?? new Level()
      level.seconds++
      level.work += work
      level.requests += arrived
      level.refused += refused
      level.abandoned += abandoned
      level.latency.merge(began)
      this.levels.set(index, level)
    }
    const least = ended.percentile(0.1)
    if (least !== null || abandoned > 0) this.latestMillis = [...this.latestMillis, least ?? Infinity].slice(-fewest)
    if (least === null) return
    const refusing = refused * 20 >= refused + served
    const wait = Math.round(doublings(Math.max(least, 0.01)) * waitsPerDoubling)
    const key = `${rounded(served)}/${wait}/${refusing}/${abandoned > 0}`
    const group = this.found.get(key) ??
      {
        served: rounded(served),
        leastMillis: exp(wait / waitsPerDoubling * Math.LN2),
        refusing,
        leaving: abandoned > 0,
        seconds: 0,
        abandoned: 0,
        imbalance: 0
      }
    group.seconds++
    group.abandoned += abandoned
    group.imbalance += Math.abs(arrived - served)
    this.found.set(key, group)
  }

  /** From the least to do to the most. */
  get byWork(): ReadonlyArray<Level> {
    return [...this.levels].sort(([a], [b]) => a - b).map(([, level]) => level)
  }

  get groups(): ReadonlyArray<Group> {
    return [...this.found.values()]
  }
}
