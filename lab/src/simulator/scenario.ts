import * as Schema from "effect/Schema"
import { Arrivals } from "./arrivalsSchema.ts"
import { clientKeys } from "./clientSchema.ts"
import { Expectations } from "./expectations.ts"
import { Count, Distribution, expecting, maybe, Name, required, Time, upTo, withDefault } from "./fields.ts"
import { Service } from "./serviceSchema.ts"

const Rate = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1_000_000 }, expecting("a number from 0 to 1000000"))
)

const RatePoint = Schema.Struct({
  at: required(Time, "When it takes effect."),
  rate: required(Rate, "Calls per second."),
  ramp: withDefault(Schema.Boolean, false, "Whether it is reached linearly from the previous point.")
})

const Fleet = Schema.Struct({
  name: required(Name, "The fleet's name in results."),
  ...clientKeys,
  processes: withDefault(Count, 1, "Processes, each with its own quota, limiter and budget."),
  rate: maybe(
    Schema.Union([Rate, Schema.NonEmptyArray(RatePoint).check(upTo(10_000))]),
    "Open loop: calls per second of the whole fleet, whatever happens to earlier calls; or how that changes."
  ),
  arrivals: withDefault(
    Arrivals,
    "poisson",
    "How the calls of an open loop arrive: at random (poisson) or evenly; or, in place of a rate, the recorded calls: one by one, counted, or in a file."
  ),
  clients: maybe(Count, "Closed loop: clients, each making one call after the other."),
  think: maybe(Distribution, "How long a client of a closed loop waits after a call. Default 0."),
  pace: maybe(Distribution, "The minimum time between the starts of a closed-loop client's calls. Default 0."),
  calls: maybe(Count, "The most calls of the whole fleet. Default: no limit."),
  processesOf: maybe(
    Name,
    "The fleet whose processes make the calls, with its policy, quotas and gates. Default: its own processes."
  ),
  criticality: withDefault(
    Schema.Literals(["critical", "normal", "sheddable"]),
    "normal",
    "How important the calls are: which go first when a concurrency limit is reached."
  )
}).annotate({ identifier: "Fleet", title: "Clients with the same policy" })

/** What is simulated. */
export const Scenario = Schema.Struct({
  $schema: maybe(Schema.String, "The JSON Schema, for editors only."),
  name: required(Name, "The scenario's name."),
  description: withDefault(Schema.String, "", "What it shows."),
  notes: maybe(
    Schema.Array(Schema.String).check(upTo(100)),
    "What its figures rest on, and what they cannot show: each command that reads it repeats them as warnings."
  ),
  seed: withDefault(
    Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    1,
    "The random seed: the same seed gives the same run."
  ),
  duration: withDefault(Time, "1 minute", "How long calls keep starting."),
  drain: withDefault(Time, "1 minute", "How long calls may still run after that."),
  bucket: withDefault(Time, "1 second", "The width of a bucket of the time series."),
  fleets: required(Schema.NonEmptyArray(Fleet).check(upTo(100)), "The callers."),
  services: required(Schema.NonEmptyArray(Service).check(upTo(100)), "The services called."),
  expect: maybe(Expectations, "What must hold: effect-retry check verifies it.")
}).annotate({
  identifier: "Scenario",
  title: "A scenario of effect-retry",
  description: "Fleets of clients with retry policies, and the services they call."
})

export type Scenario = typeof Scenario.Type
export type ScenarioInput = typeof Scenario.Encoded
export type Fleet = Scenario["fleets"][number]
export type ServiceSettings = Scenario["services"][number]
export type Edge = ServiceSettings["calls"][number]
export type Outage = ServiceSettings["outages"][number]
type LimitOrPoints = NonNullable<ServiceSettings["limit"]>
/** A limit, from a time on. */
export type LimitSettings = Extract<LimitOrPoints, { readonly requests: number }> & { readonly at?: Time }
