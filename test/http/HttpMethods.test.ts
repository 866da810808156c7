/**
 * Nothing unsafe is sent twice: real clients, methods and failures, with a real server. Of each client its own way to retry
 * is run too, and what may have run is never sent more often than that way sends it.
 */
import { assert, describe, it } from "@effect/vitest"
import axios from "axios"
import axiosRetry from "axios-retry"
import { Backoff, RetryClassifier, RetryInfo, RetryPolicy } from "effect-retry"
import { retryPromise } from "effect-retry/RetryPromise"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import got from "got"
import ky from "ky"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as undici from "undici"
import { afterAll, beforeAll, vi } from "vitest"
import { fetched, placeOrder } from "../../examples/promises.ts"

type Method = "GET" | "HEAD" | "PUT" | "DELETE" | "POST" | "PATCH"
type Headers = Readonly<Record<string, string>>

/** A status; or the connection is broken when the request has been read, or no answer comes. */
type Failure = number | "broken" | "silent"

let failure: Failure = 500
let headers: Headers = {}
/** Where requests are redirected to, if they are. */
let location = ""
let sends = 0
/** Each run has its path: what an earlier one has left may still arrive. */
let path = "/0"

const server = http.createServer((request, response) => {
  if (request.url === path) sends++
  request.resume().on("end", () => {
    if (location !== "" && request.url === path) response.writeHead(303, { location }).end()
    else if (failure === "broken") request.socket.destroy()
    else if (failure !== "silent") response.writeHead(failure, headers).end("{}")
  })
})

let origin = ""
const url = () => `${origin}${path}`
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** For a server that does not answer, a client gives up at once; otherwise not before the test does. */
const patience = () => failure === "silent" ? 50 : 600_000

const bodyOf = (method: Method) => method === "GET" || method === "HEAD" ? undefined : "{}"

interface Client {
  /** One request without retries of its own. */
  readonly once: (method: Method, headers: Headers) => Promise<unknown>
  /** The same with its own retries: two, without a delay. */
  readonly own: (method: Method, headers: Headers) => Promise<unknown>
}

const withRetries = axios.create()
axiosRetry(withRetries, { retries: 2, retryDelay: () => 0 })

const ofAxios = (instance: typeof axios, adapter: "http" | "fetch") => (method: Method, headers: Headers) =>
  instance.request({ url: url(), method, headers: { ...headers }, data: bodyOf(method), timeout: patience(), adapter })

const ofGot = (limit: number) => (method: Method, headers: Headers) => {
  const body = bodyOf(method)
  const retry = { limit, calculateDelay: ({ computedValue }: { readonly computedValue: number }) => computedValue && 1 }
  return got(url(), {
    method,
    headers: { ...headers },
    ...(body === undefined ? {} : { body }),
    timeout: { request: patience() },
    retry
  })
}

const ofKy = (limit: number) => (method: Method, headers: Headers) => {
  const body = bodyOf(method)
  return ky(url(), {
    method,
    headers: { ...headers },
    ...(body === undefined ? {} : { body }),
    timeout: failure === "silent" ? patience() : false,
    retry: { limit, delay: () => 0 },
    // After a broken connection ky throws the error of `fetch`, without the request: docs/promises.md.
    fetch: (request) => fetched(request as Request)
  })
}

const agent = new undici.Agent()

const ofUndici = (dispatcher: undici.Dispatcher) => (method: Method, headers: Headers) =>
  undici.request(url(), {
    method,
    headers: { ...headers },
    body: bodyOf(method) ?? null,
    headersTimeout: patience(),
    dispatcher: dispatcher.compose(undici.interceptors.responseError())
  }).catch((error: object) => {
    // undici's errors do not show the request: docs/promises.md.
    throw Object.assign(error, { options: { method, headers } })
  })

const clients: Readonly<Record<string, Client>> = {
  axios: { once: ofAxios(axios, "http"), own: ofAxios(withRetries as typeof axios, "http") },
  "axios over fetch": { once: ofAxios(axios, "fetch"), own: ofAxios(withRetries as typeof axios, "fetch") },
  got: { once: ofGot(0), own: ofGot(2) },
  ky: { once: ofKy(0), own: ofKy(2) },
  undici: {
    once: ofUndici(agent),
    own: ofUndici(
      agent.compose(undici.interceptors.retry({ maxRetries: 2, minTimeout: 0, maxTimeout: 1 }))
    )
  },
  fetch: {
    once: async (method, headers) => {
      const signal = AbortSignal.timeout(patience())
      const response = await fetched(new Request(url(), { method, headers, body: bodyOf(method) ?? null, signal }))
      return response.ok ? response : Promise.reject(response)
    },
    // It has none.
    own: (method, headers) => fetch(url(), { method, headers, body: bodyOf(method) ?? null }).catch(() => {})
  }
}

const threeTimes = Backoff.fixed(0).pipe(RetryPolicy.whileRetryable, RetryPolicy.maxAttempts(3))

/** What gets through to the server, and the error. A client that gives up early may have sent nothing. */
const counted = async (failing: Failure, answer: Headers, call: () => Promise<unknown>) => {
  failure = failing
  headers = answer
  path = `/${Number(path.slice(1)) + 1}`
  sends = 0
  const error = await call().then(() => undefined, (error: unknown) => error)
  return { sends, error }
}

const key = { "Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324" }

/** RFC 9110, 9.2.2. */
const unsafe: ReadonlyArray<Method> = ["POST", "PATCH"]
const safe: ReadonlyArray<Method> = ["GET", "HEAD", "PUT", "DELETE"]

/** What a server may have done before it fails. */
const unsure: ReadonlyArray<Failure> = [408, 500, 502, 503, 504, "broken", "silent"]

/** undici gives up no earlier than after a second. */
const failuresOf = (client: string) => client === "undici" ? unsure.filter((failing) => failing !== "silent") : unsure

describe.each(Object.entries(clients))("%s", (name, { once, own }) => {
  const run = async (method: Method, failing: Failure, sent: Headers = {}, answer: Headers = {}) => {
    let calls = 0
    const { error, sends } = await counted(failing, answer, () =>
      retryPromise(() => {
        calls++
        return once(method, sent)
      }, threeTimes))
    if (failing !== "silent") assert.strictEqual(sends, calls)
    return { calls, error }
  }

  for (const failing of failuresOf(name)) {
    it.each(unsafe)(`sends a %s once after ${failing}, and no oftener than by itself`, async (method) => {
      const { calls, error } = await run(method, failing)
      assert.strictEqual(calls, 1)
      assert.strictEqual(Option.getOrThrow(RetryClassifier.defaultClassifier(error)).safety, "Maybe")
      if (failing === "silent" && name === "fetch") return
      assert.isAtLeast((await counted(failing, {}, () => own(method, {}))).sends, failing === "silent" ? 0 : calls)
    })

    it.each(safe)(`sends a %s again after ${failing}`, async (method) => {
      assert.strictEqual((await run(method, failing)).calls, 3)
    })

    it.each(unsafe)(`sends a %s with a key again after ${failing}`, async (method) => {
      assert.strictEqual((await run(method, failing, key)).calls, 3)
    })
  }

  it.each(unsafe)("sends a %s again where the server says that it did nothing", async (method) => {
    assert.strictEqual((await run(method, 429)).calls, 3)
    assert.strictEqual((await run(method, 425)).calls, 3)
    assert.strictEqual((await run(method, 500, {}, { "x-should-retry": "true" })).calls, 3)
  })

  it("calls a POST again that was never sent", async () => {
    const closed = http.createServer()
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve))
    const before = origin
    origin = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`
    await new Promise((resolve) => closed.close(resolve))
    let calls = 0
    try {
      await retryPromise(() => {
        calls++
        return once("POST", {})
      }, threeTimes).catch(() => {})
    } finally {
      origin = before
    }
    assert.strictEqual(calls, 3)
  })
})

describe("after a redirect, the request has been processed", () => {
  const redirected = async (
    target: string,
    failing: Failure,
    { headers = {}, method = "POST", own }: { headers?: Headers; method?: Method; own?: Headers },
    once: Client["once"]
  ) => {
    location = target
    try {
      return (await counted(failing, headers, () => retryPromise(() => once(method, own ?? {}), threeTimes))).sends
    } finally {
      location = ""
    }
  }

  const effects: Client["once"] = (method, headers) =>
    Effect.runPromise(
      HttpClient.HttpClient.use((client) =>
        HttpClient.filterStatusOk(client).execute(HttpClientRequest.make(method)(url(), { headers }))
      ).pipe(Effect.provide(FetchHttpClient.layer))
    )

  // axios over `fetch` shows no redirect, and undici follows none by itself.
  const following = { axios: clients["axios"]!.once, ky: clients["ky"]!.once, fetch: clients["fetch"]!.once, effects }

  for (const [name, once] of Object.entries({ ...following, got: clients["got"]!.once })) {
    it.each<[Failure, Headers?]>([
      [503],
      [429],
      [425],
      [500, { "x-should-retry": "true" }],
      [503, { "x-envoy-ratelimited": "1" }],
      ["broken"]
    ])(`${name} sends a POST once before %s %o`, async (failing, headers = {}) => {
      assert.strictEqual(await redirected("/next", failing, { headers }, once), 1)
    })

    it(`${name} sends it again with a key`, async () => {
      assert.strictEqual(await redirected("/next", 503, { own: key }, once), 3)
    })
  }

  it.each(Object.entries(following))("%s sends a GET again", async (_, once) => {
    assert.strictEqual(await redirected("/next", 503, { method: "GET" }, once), 3)
  })

  it("got does not show that a GET was one before the redirect", async () => {
    assert.strictEqual(await redirected("/next", 503, { method: "GET" }, clients["got"]!.once), 1)
  })

  it.each(["axios", "got"])("%s sends a POST once if it was redirected to a closed port", async (name) => {
    const closed = http.createServer()
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve))
    const target = `http://127.0.0.1:${(closed.address() as AddressInfo).port}/`
    await new Promise((resolve) => closed.close(resolve))
    assert.strictEqual(await redirected(target, 503, {}, clients[name]!.once), 1)
  })
})

describe("a status of an error that hides the request", () => {
  class Unavailable extends Error {
    readonly status: number
    constructor(status: number, cause: unknown) {
      super("orders", { cause })
      this.status = status
    }
  }

  it.each<[number, Method, number]>([[503, "POST", 1], [503, "GET", 3], [429, "POST", 3]])(
    "%d around that of a %s: %d sends",
    async (status, method, expected) => {
      const wrapped = () =>
        clients["axios"]!.once(method, {}).catch((cause) =>
          Promise.reject(new Unavailable(status, new Error("a", { cause })))
        )
      assert.strictEqual((await counted(503, {}, () => retryPromise(wrapped, threeTimes))).sends, expected)
    }
  )
})

describe("the code of the page", () => {
  const order = { product: 5 }

  it.each<[Failure, number]>([[503, 1], ["broken", 1], [201, 1], [429, 3]])(
    "places an order that meets %s with %d sends",
    async (failing, expected) => {
      const random = vi.spyOn(Math, "random").mockReturnValue(0)
      assert.strictEqual((await counted(failing, {}, () => placeOrder(url(), order))).sends, expected)
      random.mockRestore()
    }
  )

  it.each([503, "broken"] as const)("sends it again after %s where `classify` says so", async (failing) => {
    const call = () => fetched(new Request(url(), { method: "POST", body: "{}" }))
    const all = () => retryPromise(call, threeTimes, { classify: () => true })
    assert.strictEqual((await counted(failing, {}, all)).sends, 3)
  })
})

describe("the request that an error shows", () => {
  const safetyOf = (error: unknown) => Option.getOrThrow(RetryClassifier.defaultClassifier(error)).safety
  const broken = { code: "ECONNRESET" }

  it("counts wherever it is, for the causes too", () => {
    const request = { method: "post" }
    assert.deepStrictEqual(
      [
        { ...broken, config: request },
        { ...broken, options: request },
        { ...broken, request },
        { request, cause: broken },
        { cause: { request, cause: broken } },
        { status: 503, config: request },
        { status: 503, request: { method: "LOCK" } }
      ].map(safetyOf),
      Array.from({ length: 7 }, () => "Maybe")
    )
  })

  it("does not count without a method, with a key, or if it throws", () => {
    const thrower = Object.defineProperty({ ...broken }, "config", {
      get: () => {
        throw new Error("no")
      }
    })
    assert.deepStrictEqual(
      [
        broken,
        { ...broken, request: "http://a/" },
        { ...broken, config: { method: "get" } },
        { ...broken, config: { method: "post", headers: { "IDEMPOTENCY-KEY": "1" } } },
        thrower
      ].map(safetyOf),
      Array.from({ length: 5 }, () => "Yes")
    )
    assert.strictEqual(
      safetyOf({ ...broken, config: { method: "post", headers: { "idempotency-key": " " } } }),
      "Maybe"
    )
  })

  it("does not change facts that an error carries", () => {
    class Mine extends Error {
      readonly request = { method: "POST" }
    }
    const error = Object.assign(new Mine(), RetryInfo.annotation({ safety: "Yes" }))
    assert.strictEqual(safetyOf(error), "Yes")
  })
})
