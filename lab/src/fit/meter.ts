import type { Entry } from "./entry.ts"
import { Levels } from "./levels.ts"
import { Repeats } from "./repeats.ts"
import { type Second, Seconds } from "./seconds.ts"
import { Series } from "./series.ts"

export const isRefusal = (status: number): boolean => status === 429 || status === 503
/** Statuses of abandoned requests: none, nginx's 499 (the client has left), 408 and 504 (the wait was given up). */
export const isAbandoned = (status: number): boolean =>
  status === 0 || status === 408 || status === 499 || status === 504
const isFailure = (status: number): boolean => status >= 500 || status === 429 || isAbandoned(status)

/** More instances than a scenario may have are not counted. */
const mostUpstreams = 1000

const anHour = 3_600_000
const aDay = 24 * anHour

/** Whether its times can be right: no request takes more than a day. */
const isPlausible = ({ durationMillis = 0, endMillis }: Entry): boolean =>
  Number.isFinite(endMillis) && durationMillis >= 0 && durationMillis <= aDay

/** From 0 to below 1, evenly: multiples of the golden section. */
const spread = (n: number): number => n * 0.6180339887498949 % 1

/** Most logs have whole milliseconds: each is spread over the values that round to it. */
const unrounded = (millis: number, n: number): number =>
  Number.isInteger(2 * millis) ? Math.max(0, millis - 0.5 + spread(n)) : millis

/** Many logs have whole seconds: each is spread over the second that it was cut from. */
const uncut = (millis: number, n: number): number => millis % 1000 === 0 ? millis + 1000 * spread(n) : millis

/** Two digits of twice its value: a timeout that people set is in the middle of what rounds to it. */
const coarse = (millis: number): number => Number((2 * millis).toPrecision(2)) / 2

/** The requests of an instance, or of a file, and when they were answered. */
export class Span {
  requests = 0
  firstMillis = Infinity
  lastMillis = -Infinity

  add(millis: number): void {
    this.requests++
    this.firstMillis = Math.min(this.firstMillis, millis)
    this.lastMillis = Math.max(this.lastMillis, millis)
  }

  get millis(): number {
    return this.lastMillis - this.firstMillis
  }

  /** Files of one machine follow each other: theirs overlap by what was buffered, at most. */
  overlaps({ firstMillis, lastMillis, millis }: Span): boolean {
    const both = Math.min(this.lastMillis, lastMillis) - Math.max(this.firstMillis, firstMillis)
    return both > Math.min(60_000, this.millis / 2, millis / 2)
  }
}

/** Counts the requests of a log. What it keeps does not grow with them. */
export class Meter {
  requests = 0
  failed = 0
  firstMillis = Infinity
  lastMillis = -Infinity
  /** Requests without a duration. */
  untimed = 0
  /** Requests that came more than a minute late: they count, but not for latency and capacity. */
  late = 0
  /** Requests that carry their attempt's number, and those of them that are retries. */
  numbered = 0
  retriesByNumber = 0
  /** Requests that name their call, and those of them whose call was seen before. */
  named = 0
  retriesByName = 0
  readonly statuses = new Map<number, number>()
  /** How long abandoned requests took, in milliseconds, and how many of them. */
  readonly waits = new Map<number, number>()
  /** The instances, by their addresses, where the log names them. */
  readonly upstreams = new Map<string, Span>()
  /** Requests that an instance refused, less those that a proxy did. */
  refusedInside = 0
  readonly series = new Series()
  readonly levels = new Levels()
  /** Requests whose time does not belong to this log: more than an hour from those before and after. */
  strays = 0
  /** Whether files overlap in time. */
  overlaps = false
  private readonly files: Array<Span> = []
  private file = new Span()
  private newestMillis: number | undefined = undefined
  private strayMillis = -Infinity
  private readonly repeats = new Repeats()
  private readonly seconds = new Seconds((second) => this.levels.add(second))

  /** Counts a request; `false` where its times cannot be right. */
  add(entry: Entry): boolean {
    if (!isPlausible(entry)) return false
    if (!this.isStray(entry.endMillis)) this.count(entry)
    return true
  }

  private count(entry: Entry): void {
    const { durationMillis, status } = entry
    this.requests++
    const endMillis = uncut(entry.endMillis, this.requests)
    const startMillis = endMillis - (durationMillis ?? 0)
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    this.firstMillis = Math.min(this.firstMillis, startMillis)
    this.lastMillis = Math.max(this.lastMillis, startMillis)
    const bucket = this.series.at(startMillis)
    bucket.requests++
    if (!this.isRetry(entry)) bucket.calls++
    if (isFailure(status)) {
      bucket.failed++
      this.failed++
    }
    if (isRefusal(status)) bucket.refused++
    if (isAbandoned(status)) {
      bucket.abandoned++
      if (durationMillis !== undefined) {
        this.waits.set(coarse(durationMillis), (this.waits.get(coarse(durationMillis)) ?? 0) + 1)
      }
    }
    this.file.add(endMillis)
    this.countUpstream(entry, endMillis)
    const last = this.seconds.leave(endMillis)
    if (last === undefined) this.late++
    else this.addTo(last, this.seconds.arrive(startMillis), entry)
  }

  /** One wrong clock must not stretch the log over a century: a jump counts when the next line agrees. */
  private isStray(endMillis: number): boolean {
    const isNear = (millis: number) => Math.abs(endMillis - millis) <= anHour
    const jumps = isNear(this.strayMillis)
    if (jumps) this.seconds.end()
    if (this.newestMillis === undefined || isNear(this.newestMillis) || jumps) {
      this.newestMillis = endMillis
      this.strayMillis = -Infinity
      return false
    }
    this.strayMillis = endMillis
    this.strays++
    return true
  }

  private isRetry({ attempt, call }: Entry): boolean {
    const isRepeated = call !== undefined && this.repeats.add(call)
    if (call !== undefined) this.named++
    if (isRepeated) this.retriesByName++
    if (attempt === undefined) return isRepeated
    this.numbered++
    if (attempt > 1) this.retriesByNumber++
    return attempt > 1
  }

  private countUpstream({ status, upstream }: Entry, endMillis: number): void {
    if (upstream === undefined) return
    if (isRefusal(status)) this.refusedInside += upstream === "" ? -1 : 1
    if (upstream === "") return
    const span = this.upstreams.get(upstream) ?? new Span()
    if (span.requests === 0 && this.upstreams.size < mostUpstreams) this.upstreams.set(upstream, span)
    span.add(endMillis)
  }

  private addTo(last: Second, first: Second, { durationMillis, status }: Entry): void {
    if (isAbandoned(status)) last.abandoned++
    else if (isRefusal(status)) last.refused++
    else {
      last.served++
      if (durationMillis === undefined) this.untimed++
      else {
        const millis = unrounded(durationMillis, this.requests)
        first.began.add(millis)
        last.ended.add(millis)
      }
    }
  }

  /** Call it at the end of a file: the next one may be from any time. */
  endOfFile(): void {
    this.seconds.end()
    this.newestMillis = undefined
    this.overlaps ||= this.files.some((file) => file.overlaps(this.file))
    this.files.push(this.file)
    this.file = new Span()
  }
}
