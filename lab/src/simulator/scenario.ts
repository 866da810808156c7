import * as Schema from "effect/Schema"
import {
  Amount,
  Count,
  Distribution,
  expecting,
  maybe,
  Name,
  Positive,
  required,
  Share,
  Time,
  unlessSaid,
  upTo,
  Whole
} from "./fields.ts"
import { Policy } from "./policySchema.ts"

const Rate = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1_000_000 }, expecting("a number from 0 to 1000000"))
)

const RatePoint = Schema.Struct({
  at: required(Time, "From when on."),
  rate: required(Rate, "Calls per second."),
  ramp: unlessSaid(Schema.Boolean, false, "Whether it is reached in a straight line from the point before.")
})

const clientKeys = {
  to: required(Name, "The service that is called."),
  policy: unlessSaid(Policy, "none", "How calls are retried."),
  timeout: maybe(Time, "How long one attempt waits for its answer. Default: for ever."),
  network: unlessSaid(Distribution, 0, "How long a request or an answer travels, each way.")
}

const Fleet = Schema.Struct({
  name: required(Name, "What the fleet is called in results."),
  ...clientKeys,
  processes: unlessSaid(Count, 1, "Processes, each with a quota, a limiter and a budget of its own."),
  rate: maybe(
    Schema.Union([Rate, Schema.NonEmptyArray(RatePoint).check(upTo(10_000))]),
    "An open loop: calls per second of the whole fleet, whatever becomes of the calls before; or how that changes."
  ),
  arrivals: unlessSaid(
    Schema.Literals(["poisson", "even"]),
    "poisson",
    "Whether the calls of an open loop come by chance or in equal steps."
  ),
  clients: maybe(Count, "A closed loop: clients, each of which makes one call after the other."),
  think: maybe(Distribution, "How long a client of a closed loop waits after a call. Default 0."),
  pace: maybe(Distribution, "How long at least a client of a closed loop takes from one call to the next. Default 0."),
  calls: maybe(Count, "The most calls of the whole fleet. Default: no limit.")
}).annotate({ identifier: "Fleet", title: "Clients with the same policy" })

const window = {
  from: required(Time, "When it begins."),
  to: required(Time, "When it ends.")
}

const share = unlessSaid(Share, 1, "The share of the requests that it hits.")

const Outage = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("fail"), ...window, share }),
  Schema.Struct({ kind: Schema.Literal("drop"), ...window, share }),
  Schema.Struct({ kind: Schema.Literal("hold"), ...window }),
  Schema.Struct({
    kind: Schema.Literal("slow"),
    ...window,
    factor: required(Positive, "How many times as long the work takes.")
  })
]).annotate({
  identifier: "Outage",
  title: "While it lasts, requests fail at once, are never answered, are held and delivered at its end, or take longer"
})

const Service = Schema.Struct({
  name: required(Name, "What the service is called."),
  capacity: maybe(Positive, "Requests per second that its one queue is worked off with. Not together with workers."),
  workers: maybe(Count, "Requests that are worked on at one time. Default: any number."),
  latency: unlessSaid(
    Distribution,
    0,
    "How long the work on a request takes; with a capacity, what it takes beyond its turn in the queue."
  ),
  slowdown: unlessSaid(
    Time,
    0,
    "What the work takes more for each request that is there when it begins, itself included."
  ),
  queue: maybe(
    Whole,
    "Requests that may wait; those beyond are refused at once. Default: any number."
  ),
  queueTimeout: maybe(Time, "How long a request may wait in the queue; then it is refused. Default: for ever."),
  dropsAbandoned: unlessSaid(
    Schema.Boolean,
    false,
    "Whether a request whose client has given up is dropped when its turn comes. Most services work on it in vain."
  ),
  failureRate: unlessSaid(Share, 0, "The share of the requests that fail after the work."),
  limit: maybe(
    Schema.Struct({
      requests: required(Amount, "Requests that pass in each stretch of time."),
      burst: maybe(
        Amount,
        "Requests that may run ahead of an even flow, as in a token or leaky bucket. Default: none may; stretches are counted."
      ),
      per: unlessSaid(Time, "1 second", "How long a stretch is; stretches follow each other from time 0."),
      retryAfter: maybe(Time, "The hint that the others are given. Default: none.")
    }),
    "Requests beyond it are throttled. Default: none."
  ),
  outages: unlessSaid(Schema.Array(Outage).check(upTo(1000)), [], "What goes wrong, and when."),
  calls: unlessSaid(
    Schema.Array(Schema.Struct(clientKeys)).check(upTo(100)),
    [],
    "Services that it calls for each request, one after the other, as a client with a policy of its own. Meanwhile the request keeps its worker; with a capacity it keeps nobody waiting."
  )
}).annotate({ identifier: "Service", title: "A service: what it bears, and what goes wrong with it" })

/** What is simulated. */
export const Scenario = Schema.Struct({
  $schema: maybe(Schema.String, "The JSON Schema that editors use; nothing reads it."),
  name: required(Name, "What the scenario is called."),
  description: unlessSaid(Schema.String, "", "What it shows."),
  seed: unlessSaid(
    Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    1,
    "What decides chance: the same seed gives the same run."
  ),
  duration: unlessSaid(Time, "1 minute", "For how long calls begin."),
  drain: unlessSaid(Time, "1 minute", "How long after that calls may still go on."),
  bucket: unlessSaid(Time, "1 second", "The width of a bucket of the time series."),
  fleets: required(Schema.NonEmptyArray(Fleet).check(upTo(100)), "Who calls."),
  services: required(Schema.NonEmptyArray(Service).check(upTo(100)), "Who is called.")
}).annotate({
  identifier: "Scenario",
  title: "A scenario of effect-retry",
  description: "Fleets of clients with retry policies, and the services that they call."
})

export type Scenario = typeof Scenario.Type
export type ScenarioInput = typeof Scenario.Encoded
export type Fleet = Scenario["fleets"][number]
export type ServiceSettings = Scenario["services"][number]
export type Edge = ServiceSettings["calls"][number]
export type Outage = ServiceSettings["outages"][number]
