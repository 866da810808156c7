/**
 * Metrics for Prometheus: a server that calls a service which often
 * fails, and shows at `/metrics` how retrying behaves.
 *
 * Run it, and look: `npx tsx examples/metrics.ts`, then `curl
 * http://127.0.0.1:9464/metrics`. The dashboard and the alerts in the
 * package's `grafana` folder read these metrics.
 */
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import {
  awsStandard,
  ResourceLimiters,
  RetryInfo,
  RetryMetrics,
  withRetry
} from "effect-retry"
import * as HttpRouter from "effect/http/HttpRouter"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { createServer } from "node:http"
import { isStarted } from "./support/program.ts"

class Overloaded
  extends RetryInfo.TaggedError("Overloaded", { throttling: true })
{}

/** A service that throttles every third send. */
let sends = 0
const send = Effect.suspend(() =>
  ++sends % 3 === 0
    ? Effect.fail(new Overloaded())
    : Effect.succeed("sold")
)

/** A call. Its resource, `orders`, is on all of its metrics. */
export const order = send.pipe(
  withRetry(awsStandard),
  Effect.provide(ResourceLimiters.quota("orders"))
)

/** The metrics, for at most 50 resources, and what the calls share. */
export const observed = Layer.merge(
  RetryMetrics.layer({ capacity: 50 }),
  ResourceLimiters.layer()
)

/** Effect's exporter, at `/metrics`. */
export const exported = (port: number) =>
  PrometheusMetrics.layerHttp().pipe(
    HttpRouter.serve,
    Layer.provide(
      NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })
    )
  )

/** Orders all day long. */
const orders = Effect.forkScoped(
  Effect.forever(
    Effect.andThen(Effect.ignore(order), Effect.sleep("100 millis"))
  )
)

export const server = (port: number) =>
  Layer.effectDiscard(orders).pipe(
    Layer.provide(observed),
    Layer.merge(exported(port))
  )

if (isStarted(import.meta.url)) {
  NodeRuntime.runMain(Layer.launch(server(9464)))
}
