/**
 * `fetch` that retries: one line, in place of `fetch`.
 *
 * It sends again what may be sent twice, waits as long as the server
 * asks, and gives each host a quota and a cool-down, so that an outage
 * of one leaves the others alone.
 */
import { Effect, Layer, ManagedRuntime, References } from "effect"
import { RetryMetrics, RetryObserver } from "effect-retry"
import { retryFetch } from "effect-retry/fetch"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { main, print } from "./support/program.ts"
import { answering, withServer } from "./support/server.ts"

const fetch = retryFetch()

/** A 503 is retried. The last response is the result. */
export const getOrders = async (url: string, init?: RequestInit) => {
  const response = await fetch(`${url}/orders`, init)
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
  return response.text()
}

/**
 * A POST may have run after a 503, so it is not sent again, unless it
 * has a key.
 */
export const placeOrder = (url: string, order: object, key?: string) =>
  fetch(`${url}/orders`, {
    method: "POST",
    body: JSON.stringify(order),
    headers: key === undefined ? {} : { "Idempotency-Key": key }
  })

/**
 * Options, for a service that may take its time. Each error and each
 * response arrives unchanged, so it leads to why its call stopped.
 */
export const patientFetch = retryFetch({
  retries: 4,
  attemptTimeout: "2 minutes",
  onRetry: (error, { delay, retry }) => {
    const type = RetryObserver.errorType(error)
    console.log(`retry ${retry} in ${delay} after ${type}`)
  },
  onStop: (error, { reason }) => reasons.set(Object(error), reason)
})

const reasons = new WeakMap<object, string>()

/** Of a 503 or an error; a 404 is a result, and nothing stopped. */
export const reasonOf = (result: object) => reasons.get(result)

/** Logs, retries included, and metrics, without an Effect program. */
const context = ManagedRuntime.make(
  Layer.mergeAll(
    RetryObserver.layer(RetryObserver.logger),
    Layer.succeed(References.MinimumLogLevel, "Debug"),
    RetryMetrics.layer()
  )
).runSync(Effect.context<never>())

export const observedFetch = retryFetch({ context })

/** What Prometheus reads. */
export const metricsText = () => PrometheusMetrics.formatUnsafe(context)

/** What a server of this machine is asked. */
export const program = (url: string) =>
  Effect.promise(async () => {
    await getOrders(url)
    await placeOrder(url, { tea: 1 })
    await placeOrder(url, { tea: 1 }, "order-1")
  })

main(
  import.meta.url,
  withServer(answering([503, 503, 200, 503, 503, 200]), program),
  print("done")
)
