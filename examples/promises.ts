/**
 * Promises: the same policies for code outside Effect.
 *
 * The function is called for each attempt, with a new signal. The
 * promise rejects with the function's own error, or with the reason of
 * the caller's signal.
 */
import { Effect, type ManagedRuntime, Option } from "effect"
import {
  AwsModes,
  awsStandard,
  awsStandard2026,
  RetryClassifier,
  RetryObserver,
  RetryQuota
} from "effect-retry"
import {
  make,
  retryPromise,
  type Verdict
} from "effect-retry/RetryPromise"
import { main, print } from "./support/program.ts"
import { answering, withServer } from "./support/server.ts"

/**
 * A typical client: it has its own errors, and stops when its signal is
 * aborted.
 */
export interface Client {
  readonly get: (
    path: string,
    options: { readonly signal: AbortSignal }
  ) => Promise<string>
}

/**
 * `fetch`: a 503 is retried, and the last response is the result. The
 * attempt has a signal to pass to `fetch`.
 */
export const getOrders = async (url: string, signal?: AbortSignal) => {
  const response = await retryPromise(
    (attempt) => fetch(url, attempt),
    awsStandard2026,
    { signal }
  )
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
  return response.text()
}

/**
 * `fetch` that shows its request in a response and in an error: a POST
 * that may have run is not sent again.
 */
export const fetched = async (request: Request): Promise<Response> => {
  try {
    return Object.assign(await fetch(request), { request })
  } catch (error) {
    throw Object.assign(error as Error, { request })
  }
}

/**
 * A POST without a key: sent again after a 429, or if there was no
 * connection, but not after a 503.
 */
export const placeOrder = (url: string, order: object) =>
  retryPromise(
    ({ signal }) =>
      fetched(
        new Request(url, {
          method: "POST",
          body: JSON.stringify(order),
          signal
        })
      ),
    awsStandard2026
  )

/**
 * Errors of other drivers, by what each of them documents as a failure
 * that may pass.
 */
export const classifyDatabase = (
  error: { readonly code?: unknown; readonly message?: unknown }
): Verdict => {
  // Prisma: a write conflict or a deadlock, rolled back. mysql: lock
  // wait timeout, only the statement is rolled back.
  if (error.code === "P2034" || error.code === "ER_LOCK_WAIT_TIMEOUT") {
    return true
  }
  // Redis: it reads its data from disk, or a replica lost its primary.
  return /^(?:LOADING|MASTERDOWN|TRYAGAIN) /.test(String(error.message))
    ? { fault: "server" }
    : undefined
}

const writing = RetryClassifier.orElse(
  RetryClassifier.followingCause(RetryClassifier.database),
  (error) =>
    RetryClassifier.defaultClassifier({
      request: { method: "POST" },
      cause: error
    })
)

/**
 * `classify` for writes: what the database says counts. Else a write is
 * treated like a POST, which is not repeated once it may have run.
 */
export const classifyWrite = (error: unknown): Verdict =>
  Option.getOrUndefined(writing(error))

/**
 * A client that throws. All calls with the same policy object share a
 * quota.
 */
export const getPage = (
  client: Client,
  path: string,
  signal?: AbortSignal
) =>
  retryPromise((attempt) => client.get(path, attempt), awsStandard, {
    signal
  })

/**
 * One function for each resource that can fail on its own: an outage of
 * one leaves the other's retries alone.
 */
export const ordersAndCustomers = (client: Client) => {
  const retryOrders = make(AwsModes.standard({ maxAttempts: 5 }), {
    quota: { capacity: 100 }
  })
  const retryCustomers = make(awsStandard)
  return {
    order: (id: number) =>
      retryOrders((attempt) => client.get(`/orders/${id}`, attempt)),
    customer: (id: number) =>
      retryCustomers((attempt) =>
        client.get(`/customers/${id}`, attempt)
      )
  }
}

/**
 * Options in place of services: how often, which errors, what to
 * report.
 */
export const getPatiently = (
  client: Client,
  path: string,
  log: (line: string) => void
) =>
  retryPromise(
    (attempt) => client.get(path, attempt),
    awsStandard2026,
    {
      retries: 5,
      classify: (error) =>
        error instanceof SyntaxError ? false : undefined,
      onRetry: (error, { delay, retry }) => {
        const type = RetryObserver.errorType(error)
        log(`retry ${retry} in ${delay} after ${type}`)
      },
      onStop: (error, { attempts, reason }) => {
        const type = RetryObserver.errorType(error)
        log(`${reason} after ${attempts} attempts: ${type}`)
      }
    }
  )

/**
 * At most a second for each attempt. The default classifier knows
 * timeouts, and they are retried.
 */
export const getQuickly = (
  client: Client,
  path: string,
  caller: AbortSignal,
  millis = 1000
) =>
  retryPromise(
    ({ signal }) => {
      const either = AbortSignal.any([
        signal,
        AbortSignal.timeout(millis)
      ])
      return client.get(path, { signal: either })
    },
    awsStandard,
    { signal: caller }
  )

/**
 * A program that is half in Effect: promises and effects pay from the
 * same quota, that of the runtime.
 */
export const sharing = async (
  client: Client,
  runtime: ManagedRuntime.ManagedRuntime<RetryQuota.RetryQuota, never>
) => {
  const retry = make(awsStandard, { context: await runtime.context() })
  const page = await retry((attempt) => client.get("/", attempt))
  return { page, balance: await runtime.runPromise(RetryQuota.balance) }
}

/** A client that is unavailable once. */
const flaky = (): Client => {
  let sends = 0
  return {
    get: async (path) => {
      if (++sends === 1) {
        throw Object.assign(new Error("later"), { status: 503 })
      }
      return `the page ${path}`
    }
  }
}

main(
  import.meta.url,
  withServer(
    answering([503, 503], "two orders"),
    (url) => Effect.promise(() => getOrders(`${url}/orders`))
  ).pipe(
    Effect.flatMap(print)
  ),
  Effect.flatMap(
    Effect.promise(() => getPatiently(flaky(), "/", console.log)),
    print
  )
)
