import type { Reader, Sink } from "./entry.ts"
import { numberOf, statusOf, timeOf, upstreamOf } from "./parts.ts"

/** Milliseconds in a unit. */
const units = { s: 1000, ms: 1, us: 1e-3, ns: 1e-6 } as const
type Unit = keyof typeof units
export const unitNames = ["s", "ms", "us", "ns"] as const satisfies ReadonlyArray<Unit>

/** The field names of JSON lines or CSV, where they are not among the {@link usual} ones. */
export interface FieldNames {
  readonly time?: string | undefined
  readonly duration?: string | undefined
  readonly unit?: Unit | undefined
  readonly status?: string | undefined
  readonly attempt?: string | undefined
}

/** The value of a line's field, by its name, where `null` is an empty one; dots reach inside. */
export type Get = (name: string) => unknown

/** A name and its meaning: a factor, or an offset. */
type Meanings = ReadonlyArray<readonly [name: string, means: number]>

const starts: Meanings = [
  "start_time",
  "startTime",
  "StartUTC",
  "request_creation_time",
  "startedAt",
  "started_at"
].map((name) => [name, 1])
const ends: Meanings = [
  "time",
  "timestamp",
  "@timestamp",
  "ts",
  "datetime",
  "time_iso8601",
  "time_local",
  "msec",
  "end_time",
  "endTime",
  "date"
].map((name) => [name, 0])

/** Names whose unit is in them, or known from the one program that writes them: nginx, pino-http, Traefik. */
const durations: Meanings = [
  ["request_time", 1000],
  ["responseTime", 1],
  ["Duration", 1e-6],
  ...["duration", "latency", "elapsed", "response_time", "took", "time_taken"].flatMap((name): Meanings => [
    [`${name}_ms`, 1],
    [`${name}_millis`, 1],
    [`${name}_s`, 1000],
    [`${name}_seconds`, 1000],
    [`${name}_us`, 1e-3],
    [`${name}_ns`, 1e-6]
  ]),
  ...["duration", "latency", "elapsed", "responseTime", "requestTime"].flatMap((name): Meanings => [
    [`${name}Ms`, 1],
    [`${name}Millis`, 1],
    [`${name}Seconds`, 1000]
  ])
]
/** Names whose unit is unclear unless the value or the user gives it. */
const unitless: Meanings = [
  "duration",
  "latency",
  "elapsed",
  "response_time",
  "took",
  "time_taken"
].map((name) => [name, NaN])

const statuses: Meanings = [
  "status",
  "status_code",
  "statusCode",
  "response_code",
  "responseCode",
  "http_status",
  "DownstreamStatus",
  "res.statusCode",
  "response.status",
  "http.response.status_code",
  "http.status_code",
  "code"
].map((name) => [name, 0])

/** 1 for what counts from 0. */
const attempts: Meanings = [
  ["attempt", 0],
  ["attempt_number", 0],
  ["attemptNumber", 0],
  ["retry_count", 1],
  ["retryCount", 1],
  ["retries", 1],
  ["resend_count", 1],
  ["http.request.resend_count", 1]
]
const ids: Meanings = ["request_id", "requestId", "req_id", "x_request_id", "req.id"].map((name) => [name, 0])
const paths: Meanings = ["request", "path", "uri", "url", "request_uri", "req.url"].map((name) => [name, 0])
const upstreams: Meanings = ["upstream_addr", "upstream_host", "upstream"].map((name) => [name, 0])

/** One of several names. The lines of a log use the same one: the last found is tried first. */
class Field {
  private last = 0
  name = ""
  means = 0

  constructor(private readonly names: Meanings) {}

  /** The first that is not empty; `null` where all that are there are. */
  of(get: Get): unknown {
    const { last, names } = this
    let empty: null | undefined
    for (let n = 0; n < names.length; n++) {
      const index = n === 0 ? last : n <= last ? n - 1 : n
      const value = get(names[index]![0])
      if (value === null) empty = value
      if (value === undefined || value === null) continue
      this.last = index
      ;[this.name, this.means] = names[index]!
      return value
    }
    return empty
  }
}

const written = /^(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)$/

/** Seconds as `0.020`, or with the unit as `20ms`. */
const durationOf = (value: unknown, unitMillis: number): number | undefined => {
  const [, number, unit] = typeof value === "string" ? written.exec(value) ?? [] : []
  const millis = unit === undefined
    ? (numberOf(value) ?? NaN) * unitMillis
    : Number(number) * units[unit === "µs" ? "us" : unit as Unit]
  return millis >= 0 ? millis : undefined
}

/** Finds the request among the fields of a line. */
export class Fields {
  private readonly time: Field
  private readonly duration: Field
  private readonly status: Field
  private readonly attempt: Field
  private readonly id = new Field(ids)
  private readonly path = new Field(paths)
  private readonly upstream = new Field(upstreams)
  /** A field that is a duration in an unknown unit. */
  unclear: string | undefined = undefined
  /** Why the last line could not be read. */
  problem = ""

  constructor(asked: FieldNames) {
    const unit = asked.unit === undefined ? undefined : units[asked.unit]
    const candidates = [...durations, ...unitless.map(([name]) => [name, unit ?? NaN] as const)]
    this.time = new Field(asked.time === undefined ? [...ends, ...starts] : [[asked.time, 0]])
    this.duration = new Field(
      asked.duration === undefined ? candidates : [[asked.duration, unit ?? meaningOf(asked.duration)]]
    )
    this.status = new Field(asked.status === undefined ? statuses : [[asked.status, 0]])
    this.attempt = new Field(asked.attempt === undefined ? attempts : [[asked.attempt, 0]])
  }

  private durationIn(get: Get): number | undefined {
    const value = this.duration.of(get) ?? undefined
    const millis = durationOf(value, this.duration.means)
    if (value !== undefined && Number.isNaN(this.duration.means) && millis === undefined) {
      this.unclear = this.duration.name
    }
    return millis
  }

  private callIn(get: Get): string | undefined {
    const id = this.id.of(get)
    return typeof id === "string" || typeof id === "number" ? `${id} ${String(this.path.of(get) ?? "")}` : undefined
  }

  read(get: Get, sink: Sink): boolean {
    const [when, what] = [this.time.of(get), this.status.of(get)]
    const [time, status] = [timeOf(when), statusOf(what)]
    if (time === undefined || status === undefined) {
      this.problem = time === undefined ? wrong("time", this.time, when) : wrong("status", this.status, what)
      return false
    }
    const durationMillis = this.durationIn(get)
    const attempt = numberOf(this.attempt.of(get))
    sink({
      endMillis: time + this.time.means * (durationMillis ?? 0),
      durationMillis,
      status,
      attempt: attempt === undefined ? undefined : attempt + this.attempt.means,
      call: this.callIn(get),
      upstream: upstreamOf(this.upstream.of(get))
    })
    return true
  }
}

const wrong = (what: string, { name }: Field, value: unknown): string =>
  value === undefined || value === null ? `no ${what}` : `${name} is ${JSON.stringify(value).slice(0, 60)}`

const meaningOf = (name: string): number => durations.find(([field]) => field === name)?.[1] ?? NaN

/** A reader of fields, and whether it has met a duration without a unit. */
export interface FieldReader extends Reader {
  readonly fields: Fields
}
