/**
 * `fetch` that retries: one line, in place of `fetch`.
 *
 * It sends again what may be sent twice, waits as long as the server
 * asks, and gives each host a quota and a cool-down, so that an outage
 * of one leaves the others alone.
 */
import { Effect } from "effect"
import { retryFetch } from "effect-retry/fetch"
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

/** Options, for a service that may take its time. */
export const patientFetch = retryFetch({
  retries: 4,
  attemptTimeout: "2 minutes",
  onRetry: (error, { delay, retry }) =>
    console.log(`retry ${retry} in ${delay} after ${error}`)
})

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
