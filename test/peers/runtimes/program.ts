import { Backoff, RetryPolicy, retryPromise, RetryQuota, withRetry } from "effect-retry"
import { retryFetch } from "effect-retry/fetch"
import * as Effect from "effect/Effect"

/** Where a server listens that fails as its path says, and where nobody does. */
export interface Addresses {
  readonly server: string
  readonly nobody: string
}

/** How often something was sent, by what went wrong. */
export type Sends = Readonly<Record<string, number>>

const policy = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)

/** How often a request is sent whose every attempt fails. */
const sendsOf = (request: () => Promise<unknown>): Promise<number> => {
  let sends = 0
  const counted = () => {
    sends++
    return request()
  }
  return retryPromise(counted, policy).then(() => sends, () => sends)
}

const failures = ({ nobody, server }: Addresses): Readonly<Record<string, () => Promise<unknown>>> => ({
  "nobody listens": () => fetch(nobody),
  "nobody listens to a POST": () => fetch(nobody, { method: "POST", body: "x" }),
  "the server resets": () => fetch(`${server}/reset`),
  "the server closes": () => fetch(`${server}/close`),
  "the body ends too early": () => fetch(`${server}/short`).then((response) => response.text()),
  "the body is reset": () => fetch(`${server}/broken`).then((response) => response.text()),
  "no answer in time": () => fetch(`${server}/silent`, { signal: AbortSignal.timeout(50) }),
  "the caller aborts": () => {
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 50)
    return fetch(`${server}/silent`, { signal: controller.signal })
  },
  "a defect of the program": () => Promise.resolve().then(() => (undefined as any).f())
})

/** How often `retryFetch` sends a request whose connection is closed. */
const fetchesOf = ({ server }: Addresses, init?: RequestInit): Promise<number> => {
  let sends = 0
  const counted = retryFetch({
    policy,
    fetch: (input, init) => {
      sends++
      return fetch(input, init)
    }
  })
  return counted(new Request(`${server}/close`, init)).then(() => sends, () => sends)
}

/** 8 tokens pay for one retry of three calls. */
const quota = Effect.suspend(() => {
  let sends = 0
  const call = Effect.suspend(() => Effect.fail({ status: sends++ < 0 ? 200 : 503 }))
  const gated = policy.pipe(RetryPolicy.quotaGated({ cost: 5 }))
  const calls = [
    Effect.exit(withRetry(call, gated)),
    Effect.exit(Effect.retry(call, gated)),
    Effect.exit(withRetry(call, gated))
  ]
  return Effect.map(Effect.all(calls), () => sends)
}).pipe(Effect.provide(RetryQuota.layer({ capacity: 8 })))

/** What this runtime does. */
export const run = async (addresses: Addresses): Promise<Sends> => {
  const sends: Record<string, number> = {}
  for (const [name, request] of Object.entries(failures(addresses))) sends[name] = await sendsOf(request)
  sends["retryFetch"] = await fetchesOf(addresses)
  sends["retryFetch, a PUT"] = await fetchesOf(addresses, { method: "PUT", body: "x" })
  sends["retryFetch, a POST"] = await fetchesOf(addresses, { method: "POST", body: "x" })
  sends["three calls on 8 tokens"] = await Effect.runPromise(quota)
  return sends
}
