import type * as Duration from "effect/Duration"
import { toMillis } from "effect/Duration"
import type { Policy, ScenarioInput } from "../Simulator.ts"
import { log } from "../simulator/portable.ts"

type Outage = NonNullable<ScenarioInput["services"][number]["outages"]>[number]

/** What a brownout may be. */
export const kinds = ["fail", "slow", "drop", "hold"] as const

/** What the user knows about a service in trouble. */
export interface Question {
  readonly rate: number
  readonly clients: number
  readonly capacity: number | undefined
  readonly p50: Duration.Duration | undefined
  readonly p99: Duration.Duration | undefined
  readonly timeout: Duration.Duration | undefined
  readonly brownout: Duration.Duration | undefined
  readonly kind: (typeof kinds)[number]
  /** How many times as long the work takes while it is slow. */
  readonly factor: number
  readonly queue: number | undefined
  readonly policy: Policy
}

/** Between the quantiles of an exponential distribution. */
const p50OfP99 = Math.LN2 / log(100)

/** Milliseconds as people write them. */
const short = (millis: number): string => millis % 1000 === 0 ? `${millis / 1000}s` : `${Number(millis.toFixed(3))}ms`

const beforeMillis = 20_000
const usualOutageMillis = 10_000
const leastAfterMillis = 90_000
const leastTimeoutMillis = 1000
const headroom = 1.5

/** What goes wrong, in words and in a scenario. Without a brownout there is a short outage. */
const troubleOf = ({ brownout, factor, kind }: Question) => {
  const lengthMillis = brownout === undefined ? usualOutageMillis : toMillis(brownout)
  const window = { from: short(beforeMillis), to: short(beforeMillis + lengthMillis) }
  const problem = (what: string, outage: Outage) => ({
    lengthMillis,
    what: `For ${short(lengthMillis)} ${what}.`,
    outage
  })
  if (brownout === undefined) return problem("every request fails immediately", { kind: "fail", ...window })
  switch (kind) {
    case "fail":
      return problem("half of the requests fail immediately", { kind, ...window, share: 0.5 })
    case "slow":
      return problem(`the work takes ${factor} times as long`, { kind, ...window, factor })
    case "drop":
      return problem("half of the requests are never answered", { kind, ...window, share: 0.5 })
    case "hold":
      return problem("requests are held and delivered at its end", { kind, ...window })
  }
}

/** One quantile makes the other, as an exponential distribution has them. */
const latencyOf = ({ p50, p99 }: Question) => {
  if (p50 === undefined && p99 === undefined) return { exponential: "20ms" }
  const p99Millis = p99 === undefined ? toMillis(p50!) / p50OfP99 : toMillis(p99)
  const p50Millis = p50 === undefined ? p99Millis * p50OfP99 : toMillis(p50)
  return { p50: short(Number(p50Millis.toPrecision(3))), p99: short(Number(p99Millis.toPrecision(3))) }
}

/** The scenario of a question: what the user gave, and guesses for the rest. */
export const scenarioOf = (question: Question, schema: string): ScenarioInput => {
  const { capacity, clients, p50, p99, policy, queue, rate, timeout } = question
  const { lengthMillis, outage, what } = troubleOf(question)
  const guesses = [
    ...capacity === undefined ? ["the capacity"] : [],
    ...p50 === undefined || p99 === undefined ? ["the latency that was not given"] : [],
    ...timeout === undefined ? ["the timeout"] : []
  ]
  const timeoutMillis = Math.max(leastTimeoutMillis, p99 === undefined ? 0 : 3 * toMillis(p99))
  return {
    $schema: schema,
    name: "my-service",
    description: guesses.length === 0
      ? what
      : `${what} Guesses, to replace with measurements: ${guesses.join(", ")}.`,
    seed: 1,
    duration: short(beforeMillis + lengthMillis + Math.max(leastAfterMillis, 3 * lengthMillis)),
    fleets: [
      {
        name: "application",
        to: "service",
        processes: clients,
        rate,
        timeout: short(timeout === undefined ? timeoutMillis : toMillis(timeout)),
        network: "5ms",
        policy
      }
    ],
    services: [
      {
        name: "service",
        capacity: capacity ?? headroom * rate,
        ...queue === undefined ? {} : { queue },
        latency: latencyOf(question),
        outages: [outage]
      }
    ]
  }
}
