import type { ScenarioInput } from "../Simulator.ts"
import { isCsv } from "./arrivals.ts"
import { momentsOf } from "./estimate.ts"
import { type Fitted, workersFor } from "./fitted.ts"
import { type Made, notesOf } from "./notes.ts"
import type { Bucket } from "./series.ts"

/** What a scenario needs and no log records. */
export interface ScenarioOptions {
  readonly name: string
  /** How much of the log to replay at most, in milliseconds: the busiest stretch. */
  readonly takeMillis: number
  /** Requests per second that the service can handle, where the log does not show it. */
  readonly capacity?: number | undefined
  readonly schema?: string | undefined
  /** The file next to the scenario that has its calls, second by second, in place of a rate. */
  readonly arrivals?: string | undefined
}

type Fleet = ScenarioInput["fleets"][number]

/** A stretch of a log. */
interface Stretch {
  readonly buckets: ReadonlyArray<Bucket>
  readonly widthMillis: number
}

const callsOf = (buckets: ReadonlyArray<Bucket>): number => buckets.reduce((sum, { calls }) => sum + calls, 0)

/** The buckets in a row, at most as long as given, with the most calls; of an outage also what was before it. */
const busiest = ({ outages, series: { buckets, widthMillis } }: Fitted, takeMillis: number): Stretch => {
  const length = Math.max(1, Math.floor(takeMillis / widthMillis))
  if (buckets.length <= length) return { buckets, widthMillis }
  let calls = callsOf(buckets.slice(0, length))
  let [most, from] = [calls, 0]
  for (let end = length; end < buckets.length; end++) {
    calls += buckets[end]!.calls - buckets[end - length]!.calls
    if (calls <= most) continue
    most = calls
    from = end - length + 1
  }
  const { fromMillis } = buckets[from]!
  const outage = outages.find((one) => one.fromMillis <= fromMillis && fromMillis < one.toMillis)
  if (outage !== undefined) {
    from = Math.max(0, from - Math.ceil((fromMillis - outage.fromMillis) / widthMillis) - Math.ceil(length / 10))
  }
  return { buckets: buckets.slice(from, from + length), widthMillis }
}

const mostPoints = 60
/** What a scenario may have: of the buckets of its results, and as a rate. */
const mostBuckets = 9000
const highestRate = 1_000_000

/** Four digits: more than a log can show. */
const rounded = (value: number): number => Number(value.toPrecision(4))
const seconds = (millis: number): string =>
  `${Number((millis / 1000).toFixed(3))} ${millis === 1000 ? "second" : "seconds"}`

/** A stretch of counts that differ by no more than random variation. */
interface Step {
  readonly from: number
  counts: number
  sum: number
}

/** A deviation of this many standard deviations is not random. */
const surprising = 3.5

const belongs = ({ counts, sum }: Step, count: number): boolean => {
  const mean = sum / counts
  return Math.abs(count - mean) <= surprising * Math.sqrt(mean + mean / counts)
}

const stepsOf = (counts: ReadonlyArray<number>): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  counts.forEach((count, index) => {
    const last = steps.at(-1)
    if (last === undefined || !belongs(last, count)) {
      steps.push({ from: index, counts: 1, sum: count })
      return
    }
    last.counts++
    last.sum += count
  })
  return steps
}

/** One number where it stays the same, otherwise steps. The last bucket is seldom whole: it counts as those before. */
const rateOf = ({ buckets, widthMillis }: Stretch) => {
  const whole = buckets.length > 2 ? buckets.slice(0, -1) : buckets
  const each = Math.max(1, Math.ceil(whole.length / mostPoints))
  const counts: Array<number> = []
  for (let from = 0; from + each <= whole.length; from += each) counts.push(callsOf(whole.slice(from, from + each)))
  const perCount = each * widthMillis / 1000
  const points = stepsOf(counts).map((step) => ({
    at: seconds(step.from * perCount * 1000),
    rate: Math.min(highestRate, rounded(step.sum / step.counts / perCount))
  }))
  return points.length === 1 ? points[0]!.rate : points
}

/** With a capacity a request waits for its turn and takes it; the time beyond that is the scenario's latency. */
const waitMillis = (perSecond: number, capacity: number | undefined): number => {
  if (capacity === undefined) return 0
  const load = Math.min(0.9, perSecond / capacity)
  return 1000 / capacity * (1 + load / (2 * (1 - load)))
}

/** The service's quantiles, each changed. */
const quantilesOf = ({ latency }: Fitted, change: (millis: number) => number) => {
  const [first, ...others] = latency?.quantiles.map((
    { share, value }
  ): [share: number, millis: number] => [share, rounded(Math.max(0, change(value)))]) ?? []
  return first === undefined ? {} : { latency: { quantiles: [first, ...others] as const } }
}

/** The workers of an instance with that capacity in all, where the log shows any; otherwise requests are served in turns. */
const workersIn = (fitted: Fitted, capacity: number | undefined): number | undefined =>
  capacity === undefined || fitted.workers === undefined ? undefined : workersFor(capacity / fitted.instances, fitted)

/** What an instance bears: workers whose work is as long as the capacity says, or turns and what a request takes beyond its own. */
const bearingOf = (fitted: Fitted, capacity: number | undefined) => {
  const { instances, latency } = fitted
  if (capacity === undefined || latency === undefined) {
    return {
      ...capacity === undefined ? {} : { capacity },
      ...quantilesOf(fitted, (millis) => millis)
    }
  }
  const each = capacity / instances
  const workers = workersIn(fitted, capacity)
  if (workers !== undefined) {
    const times = workers * 1000 / each / momentsOf(latency.quantiles).mean
    return { workers, ...quantilesOf(fitted, (millis) => millis * times) }
  }
  const wait = waitMillis(latency.perSecond / instances, each)
  return { capacity: rounded(each), ...quantilesOf(fitted, (millis) => millis - wait) }
}

/** Whether a rate is what refuses: then the capacity is unknown, above it. */
const isLimit = ({ capacity }: Fitted): boolean => capacity.kind === "found" && capacity.by === "rate"

/** What refuses: the number of requests in flight, in a proxy or in the queues of the instances, or a rate. */
const refusingOf = (fitted: Fitted, asked: number | undefined) => {
  const { capacity, ceiling, instances, latency } = fitted
  if (ceiling?.by === "proxy") return { connections: ceiling.most }
  if (capacity.kind !== "found") return {}
  const perSecond = capacity.perSecond.value
  if (ceiling === undefined) return isLimit(fitted) ? { limit: { requests: rounded(perSecond) } } : {}
  const atWork = (asked ?? perSecond) * momentsOf(latency?.quantiles ?? []).mean / 1000
  return { queue: Math.max(0, Math.round((ceiling.most - atWork) / instances)) }
}

/** As the log shows it; otherwise assumed, well above what requests take. */
const timeoutOf = ({ latency, timeout }: Fitted): string => {
  const p99 = latency?.quantiles.find(({ share }) => share === 0.99)?.value ?? 0
  return seconds(timeout?.millis ?? Math.max(1000, Math.ceil(5 * p99 / 1000) * 1000))
}

const loadOf = (stretch: Stretch, arrivals: string | undefined): Pick<Fleet, "rate" | "arrivals"> => {
  if (arrivals !== undefined) return { arrivals: { file: arrivals, ...bucketOf(arrivals, stretch.widthMillis) } }
  const rate = rateOf(stretch)
  return { rate: typeof rate === "number" ? rate : [rate[0]!, ...rate.slice(1)] }
}

/** A file of comma-separated values has no place for it. */
const bucketOf = (file: string, widthMillis: number) => isCsv(file) ? { bucket: seconds(widthMillis) } : {}

const serviceOf = (fitted: Fitted, capacity: number | undefined): ScenarioInput["services"][number] => {
  const { errors, instances, unexplained } = fitted
  const failureRate = rounded(Math.min(1, errors + unexplained))
  return {
    name: "service",
    ...instances === 1 ? {} : { instances },
    ...bearingOf(fitted, capacity),
    ...refusingOf(fitted, capacity),
    ...failureRate === 0 ? {} : { failureRate }
  }
}

/** What a scenario that replays a stretch takes from the log, and what it assumes. */
const madeOf = (fitted: Fitted, { buckets, widthMillis }: Stretch, asked: number | undefined): Made => {
  const { capacity: found } = fitted
  const capacity = asked ?? (found.kind === "found" && !isLimit(fitted) ? found.perSecond.value : undefined)
  return {
    asked,
    capacity,
    timeout: timeoutOf(fitted),
    fromMillis: buckets[0]?.fromMillis ?? 0,
    durationMillis: buckets.length * widthMillis,
    workers: workersIn(fitted, capacity)
  }
}

/** The scenario fitted to a log, its assumptions, and the buckets that it replays. */
export const scenarioOf = (fitted: Fitted, options: ScenarioOptions) => {
  const { arrivals, name, schema, takeMillis } = options
  const stretch = busiest(fitted, takeMillis)
  const made = madeOf(fitted, stretch, options.capacity)
  const { capacity, durationMillis, fromMillis, timeout } = made
  const bucketMillis = 1000 * Math.ceil(durationMillis / 1000 / mostBuckets)
  const scenario: ScenarioInput & { readonly notes: ReadonlyArray<string> } = {
    ...schema === undefined ? {} : { $schema: schema },
    name,
    description: `Fitted to ${fitted.requests} requests of an access log. Not in the log, and to be set: policy${
      fitted.timeout === undefined ? ", timeout" : ""
    }.`,
    notes: notesOf(fitted, made),
    duration: seconds(durationMillis),
    ...bucketMillis === 1000 ? {} : { bucket: seconds(bucketMillis) },
    fleets: [
      {
        name: "clients",
        to: "service",
        processes: 4,
        ...loadOf(stretch, arrivals),
        timeout,
        policy: "none"
      }
    ],
    services: [serviceOf(fitted, capacity)]
  }
  return {
    scenario,
    fromMillis,
    buckets: stretch.buckets,
    bucket: seconds(stretch.widthMillis)
  }
}
