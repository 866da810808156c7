import * as Schema from "effect/Schema"
import { clientKeys } from "./clientSchema.ts"
import {
  Amount,
  Count,
  Distribution,
  maybe,
  Name,
  Positive,
  required,
  Share,
  Time,
  upTo,
  Whole,
  withDefault
} from "./fields.ts"

const window = {
  from: required(Time, "When it starts."),
  to: required(Time, "When it ends.")
}

const share = withDefault(Share, 1, "The share of the requests affected.")

const instance = maybe(Whole, "The instance affected, counted from 0. Default: all.")

const Outage = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("fail"),
    ...window,
    share,
    instance,
    behindLimit: withDefault(
      Schema.Boolean,
      false,
      "Whether the service's limit still throttles first, so that only what it admits fails."
    )
  }),
  Schema.Struct({ kind: Schema.Literal("drop"), ...window, share, instance }),
  Schema.Struct({
    kind: Schema.Literal("hold"),
    ...window,
    instance,
    backlog: maybe(
      Whole,
      "New connections held (the accept queue of a stopped process); requests on any more are never answered. Default: any number."
    )
  }),
  Schema.Struct({
    kind: Schema.Literal("slow"),
    ...window,
    factor: required(Positive, "How many times as long the work takes."),
    instance
  })
]).annotate({
  identifier: "Outage",
  title:
    "While it lasts, requests fail immediately, are never answered, are held and delivered at its end, or take longer"
})

const CapacityPoint = Schema.Struct({
  at: required(Time, "When it takes effect."),
  capacity: required(Positive, "Requests per second."),
  ramp: withDefault(Schema.Boolean, false, "Whether it is reached linearly from the previous point.")
})

const limitKeys = {
  requests: required(Amount, "Requests admitted per window."),
  burst: maybe(
    Amount,
    "Requests allowed ahead of an even flow, as in a token or leaky bucket. Default: none; fixed windows are counted."
  ),
  per: withDefault(Time, "1 second", "The length of a window; windows follow each other from time 0."),
  retryAfter: maybe(
    Schema.Union([Time, Schema.Literal("rest")]),
    "The hint given to the others; rest: the rest of the window. Default: none."
  )
}

const LimitPoint = Schema.Struct({ at: required(Time, "When it takes effect."), ...limitKeys })

const Costs = Schema.Struct({
  connecting: withDefault(
    Time,
    0,
    "Extra time for a request on a new connection. A connection is kept once its request is answered, and lost when its client gives up."
  ),
  refusing: withDefault(Time, 0, "Time taken by a request that is throttled, refused or failed before any work on it."),
  abandoning: withDefault(Time, 0, "Extra time for a request whose client has given up by its turn.")
}).annotate({ identifier: "Costs", title: "Overhead: what else keeps a turn or a worker busy" })

const Balancer = Schema.Struct({
  choice: withDefault(
    Schema.Literals(["round-robin", "least", "random"]),
    "round-robin",
    "Which instance gets a request: the next, the one with the fewest requests, or a random one."
  ),
  notices: maybe(
    Time,
    "How long after an instance's outage starts or ends the balancer removes it or puts it back. Default: never."
  ),
  slowStart: withDefault(
    Time,
    0,
    "How long a returning instance's share ramps up, linearly from zero to its full share."
  )
}).annotate({ identifier: "Balancer", title: "What distributes requests to the instances of a service" })

export const Service = Schema.Struct({
  name: required(Name, "The service's name."),
  instances: withDefault(
    Count.check(Schema.isLessThanOrEqualTo(1000, { expected: "at most 1000" })),
    1,
    "Instances behind a balancer. Capacity, workers, queue and costs are per instance; limit and connections are shared."
  ),
  balancer: withDefault(
    Balancer,
    { choice: "round-robin", slowStart: 0 },
    "How requests are distributed to instances."
  ),
  capacity: maybe(
    Schema.Union([Positive, Schema.NonEmptyArray(CapacityPoint).check(upTo(10_000))]),
    "Requests per second that its single queue is served at, or how that changes. Not together with workers."
  ),
  workers: maybe(Count, "Requests processed at the same time. Default: any number."),
  latency: withDefault(
    Distribution,
    0,
    "How long the work on a request takes; with a capacity, in addition to its turn in the queue."
  ),
  slowdown: withDefault(
    Time,
    0,
    "Extra time per request present when the work starts, itself included."
  ),
  queue: maybe(
    Whole,
    "Requests that may wait; any more are refused immediately. Default: any number."
  ),
  connections: maybe(
    Whole,
    "Requests that what is in front of all instances, such as a proxy, lets in at a time; any more are refused immediately. One whose client has given up leaves it, and may still wait in a queue behind it. Default: any number."
  ),
  queueTimeout: maybe(Time, "How long a request may wait in the queue; then it is refused. Default: forever."),
  admitWithin: maybe(
    Time,
    "A queue bounded in time, with a capacity: a request whose turn would end later than this from now is refused immediately. Its turn takes as long as one does on arrival. Default: none."
  ),
  dropsAbandoned: withDefault(
    Schema.Boolean,
    false,
    "Whether a request whose client has given up is dropped at its turn. Most services waste work on it."
  ),
  costs: withDefault(Costs, { connecting: 0, refusing: 0, abandoning: 0 }, "Overhead besides the work itself."),
  earlyFailureRate: withDefault(
    Share,
    0,
    "The share of the requests that fail immediately as in an outage, before they are queued, not counting what the limit throttles."
  ),
  failureRate: withDefault(Share, 0, "The share of the requests that fail after the work."),
  limit: maybe(
    Schema.Union([
      Schema.Struct(limitKeys),
      Schema.NonEmptyArray(LimitPoint).check(upTo(1000))
    ]),
    "Requests beyond it are throttled; a list says how it changes. Default: none."
  ),
  outages: withDefault(Schema.Array(Outage).check(upTo(1000)), [], "What goes wrong, and when."),
  calls: withDefault(
    Schema.Array(Schema.Struct(clientKeys)).check(upTo(100)),
    [],
    "Services that it calls for each request, one after the other, as a client with its own policy. Meanwhile the request holds its worker; with a capacity it blocks no other request."
  )
}).annotate({ identifier: "Service", title: "A service: what it can handle, and what goes wrong with it" })
