import type { Actor } from "../../src/simulator/agenda.ts"
import { Arrivals, type RatePoint } from "../../src/simulator/arrivals.ts"
import { Environment } from "../../src/simulator/environment.ts"
import type { Failure } from "../../src/simulator/failure.ts"
import { isAnswered, type Request } from "../../src/simulator/request.ts"
import type { ServiceSettings } from "../../src/simulator/scenario.ts"
import { Service } from "../../src/simulator/service.ts"

/** A response of a service of the simulator. */
export interface Answered {
  readonly startMillis: number
  readonly endMillis: number
  readonly status: number
  /** From 1. */
  readonly attempt: number
  readonly call: number
}

export interface Traffic {
  readonly seed?: number
  readonly seconds: number
  readonly rate: ReadonlyArray<RatePoint>
  readonly service: Partial<ServiceSettings>
  /** The attempts of a call, the first included, 100 milliseconds apart. Default 1. */
  readonly attempts?: number
}

const statusOf = (failure: Failure | undefined): number => {
  if (failure === undefined) return 200
  if (failure.kind === "throttled") return 429
  return failure.kind === "overloaded" || failure.kind === "unavailable" ? 503 : 500
}

/** A Tuesday. */
export const beginMillis = Date.UTC(2026, 2, 3, 12)

/** Has the simulator's own service answer requests that come at random, in the order of its answers. */
export const generate = (
  { attempts = 1, rate, seconds, seed = 1, service: settings }: Traffic,
  onAnswer: (answered: Answered) => void
): void => {
  const environment = new Environment(seed, 0)
  const { time } = environment
  const service = new Service(environment, {
    name: "service",
    instances: 1,
    balancer: { choice: "round-robin", slowStart: 0 },
    costs: { connecting: 0, refusing: 0, abandoning: 0 },
    earlyFailureRate: 0,
    latency: 0,
    slowdown: 0,
    dropsAbandoned: false,
    failureRate: 0,
    outages: [],
    calls: [],
    ...settings
  }, [])
  let calls = 0
  const send = (call: number, attempt: number): void => {
    const startMillis = time.nowMillis
    const request: Request = {
      settled: false,
      ticket: -1,
      asked: 0,
      server: 0,
      turnMillis: -1,
      fresh: false,
      outcome: undefined,
      act: (what) => what === isAnswered ? request.answer(request.outcome) : service.goesOn(request, what),
      answer: (failure) => {
        const status = statusOf(failure)
        const endMillis = beginMillis + time.nowMillis
        onAnswer({ startMillis: beginMillis + startMillis, endMillis, status, attempt, call })
        if (status === 200 || attempt >= attempts) return
        time.plan(time.nowMillis + 100, { act: () => send(call, attempt + 1) }, 0)
      }
    }
    service.receive(request)
  }
  const chance = environment.chance("arrivals")
  const arrivals = new Arrivals(rate, () => chance.exponential(), 0)
  const source: Actor = {
    act: () => {
      send(calls++, 1)
      plan()
    }
  }
  const plan = (): void => {
    const next = arrivals.next()
    if (next < seconds * 1000) time.plan(next, source, 0)
  }
  plan()
  while (time.pass(Infinity, 1_000_000) === "paused");
}

export const steady = (perSecond: number): ReadonlyArray<RatePoint> => [{ atMillis: 0, perSecond, ramp: false }]

const thousandths = (millis: number): string => (Math.floor(millis) / 1000).toFixed(3)
const twoDigits = (value: number): string => String(value).padStart(2, "0")
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** nginx takes both ends in whole milliseconds, and writes their difference. */
const requestTime = ({ endMillis, startMillis }: Answered): string =>
  thousandths(Math.floor(endMillis) - Math.floor(startMillis))

const common = (millis: number): string => {
  const date = new Date(millis)
  const day = `${twoDigits(date.getUTCDate())}/${months[date.getUTCMonth()]}/${date.getUTCFullYear()}`
  return `${day}:${date.toISOString().slice(11, 19)} +0000`
}

const seconds6 = (millis: number): string => (millis / 1000).toFixed(6)

/** A line of each format. */
export const writers = {
  nginx: (of: Answered): string =>
    `203.0.113.7 - - [${common(of.endMillis)}] "GET /items/1 HTTP/1.1" ${of.status} 512 "-" "agent/1 \\"x\\"" ${
      requestTime(of)
    } attempt=${of.attempt}`,
  alb: (of: Answered): string =>
    `h2 ${new Date(of.endMillis).toISOString().replace("Z", "000Z")} app/lb/1 203.0.113.7:2817 10.0.0.1:80 0.000 ${
      seconds6(of.endMillis - of.startMillis)
    } 0.000 ${of.status} ${of.status} 34 366 "GET https://example.com:443/ HTTP/2.0" "agent/1" - - arn:tg "Root=1-${of.call}" "-" "-" 0 ${
      new Date(of.startMillis).toISOString()
    } "forward" "-" "-" "10.0.0.1:80" "${of.status}" "-" "-"`,
  envoy: (of: Answered): string =>
    `[${new Date(of.startMillis).toISOString()}] "GET /items HTTP/1.1" ${of.status} - 0 512 ${
      Math.floor(of.endMillis - of.startMillis)
    } 3 "-" "agent/1" "id-${of.call}" "service" "10.0.0.1:80"`,
  json: (of: Answered): string =>
    JSON.stringify({
      time: new Date(of.endMillis).toISOString(),
      duration_ms: of.endMillis - of.startMillis,
      res: { statusCode: of.status },
      attempt: of.attempt
    }),
  csv: (of: Answered): string =>
    `${
      of.endMillis.toFixed(0)
    },"GET /items/1?fields=name,price HTTP/1.1","Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101",${of.status},${
      ((of.endMillis - of.startMillis) / 1000).toFixed(6)
    },${of.attempt - 1}`,
  otlp: (of: Answered): string => {
    const nanos = (millis: number) => String(BigInt(Math.round(millis * 1e3)) * 1000n)
    return JSON.stringify({
      resourceSpans: [{
        scopeSpans: [{
          spans: [{
            kind: 2,
            startTimeUnixNano: nanos(of.startMillis),
            endTimeUnixNano: nanos(of.endMillis),
            attributes: [
              { key: "http.response.status_code", value: { intValue: String(of.status) } },
              { key: "http.request.resend_count", value: { intValue: String(of.attempt - 1) } }
            ]
          }, { kind: 3, startTimeUnixNano: "1", endTimeUnixNano: "2" }]
        }]
      }]
    })
  }
} as const

/** What is above the lines. */
export const heads: { readonly [format in keyof typeof writers]?: string } = {
  csv: "time,request,agent,status,request_time,retries\n"
}

/** A log of two minutes, in which a service is overloaded for twenty seconds: the example of the documentation. */
export const written = (format: keyof typeof writers): string => {
  const lines: Array<string> = []
  generate({
    seconds: 120,
    rate: [
      { atMillis: 0, perSecond: 40, ramp: false },
      { atMillis: 60_000, perSecond: 200, ramp: false },
      { atMillis: 80_000, perSecond: 40, ramp: false }
    ],
    service: { capacity: 100, latency: { exponential: 20 }, failureRate: 0.02 }
  }, (answered) => lines.push(writers[format](answered)))
  return `${heads[format] ?? ""}${lines.join("\n")}\n`
}
