import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import axios from "axios"
import { awsStandard2026, Backoff, RetryClassifier, RetryPolicy } from "effect-retry"
import { retryPromise } from "effect-retry/RetryPromise"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import got from "got"
import ky from "ky"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import OpenAI from "openai"
import * as undici from "undici"
import { afterAll, beforeAll } from "vitest"

interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

let answer: Answer = { status: 500 }
let sends = 0

const server = http.createServer((request, response) => {
  sends++
  request.resume()
  response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers })
  response.end(JSON.stringify(answer.body ?? { error: { message: "no" } }))
})

/** Never answers. What is sent to it may arrive when its client has given up. */
const silent = http.createServer(() => {})

const urlOf = async (server: http.Server) => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

let url = ""
let silentUrl = ""
beforeAll(async () => {
  url = await urlOf(server)
  silentUrl = await urlOf(silent)
})
afterAll(() => {
  for (const each of [server, silent]) {
    each.closeAllConnections()
    each.close()
  }
})

const openai = (baseURL = url, timeout?: number) =>
  new OpenAI({ apiKey: "k", baseURL, maxRetries: 0, timeout }).chat.completions.create({
    model: "m",
    messages: [{ role: "user", content: "hi" }]
  })

const anthropic = (baseURL = url, timeout?: number) =>
  new Anthropic({ apiKey: "k", baseURL, maxRetries: 0, timeout }).messages.create({
    model: "m",
    max_tokens: 1,
    messages: [{ role: "user", content: "hi" }]
  })

const clients: Readonly<Record<string, () => Promise<unknown>>> = {
  openai: () => openai(),
  anthropic: () => anthropic(),
  axios: () => axios.put(url, {}),
  got: () => got.put(url, { json: {}, retry: { limit: 0 } }).json(),
  ky: () => ky.put(url, { json: {}, retry: 0, timeout: false }).json(),
  undici: () =>
    undici.request(url, {
      method: "POST",
      dispatcher: new undici.Agent().compose(undici.interceptors.responseError())
    }),
  fetch: async () => {
    const response = await fetch(url)
    if (!response.ok) throw response
  }
}

/** Three attempts without a delay, whatever the hint. */
const threeTimes = Backoff.fixed(0).pipe(RetryPolicy.whileRetryable, RetryPolicy.maxAttempts(3))

/** The facts of the client's error, how often it is called, and how often it sends. */
const outcomeOf = async (call: () => Promise<unknown>, answers = answer) => {
  answer = answers
  sends = 0
  let calls = 0
  const counted = () => {
    calls++
    return call()
  }
  const error = await retryPromise(counted, threeTimes).then(
    () => assert.fail("it succeeds"),
    (error: unknown) => error
  )
  const info = Option.getOrUndefined(RetryClassifier.defaultClassifier(error))
  return {
    calls,
    sends,
    millis: info?.retryAfter === undefined ? undefined : Duration.toMillis(info.retryAfter),
    throttling: info?.throttling,
    timeout: info?.timeout
  }
}

const quota = {
  error: { message: "You exceeded your current quota", type: "insufficient_quota", code: "insufficient_quota" }
}
const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }

const rows: ReadonlyArray<readonly [name: string, answer: Answer, sends: number, millis?: number | undefined]> = [
  ["529", { status: 529, body: overloaded }, 3],
  ["529 with retry-after", { status: 529, body: overloaded, headers: { "retry-after": "1" } }, 3, 1000],
  ["429 with retry-after-ms", { status: 429, headers: { "retry-after-ms": "120" } }, 3, 120],
  ["429 with x-should-retry: false", { status: 429, headers: { "x-should-retry": "false" } }, 1],
  ["409 with x-should-retry: true", { status: 409, headers: { "x-should-retry": "true" } }, 3],
  ["429 with x-ratelimit-reset-tokens", { status: 429, headers: { "x-ratelimit-reset-tokens": "1s" } }, 3, 1000],
  [
    "429 with anthropic-ratelimit-requests-reset",
    {
      status: 429,
      headers: {
        date: "Mon, 05 Aug 2019 09:27:00 GMT",
        "anthropic-ratelimit-requests-reset": "2019-08-05T09:27:01Z"
      }
    },
    3,
    1000
  ],
  ["520", { status: 520 }, 3],
  ["400", { status: 400 }, 1],
  ["501", { status: 501 }, 1]
]

describe.each(Object.entries(clients))("%s", (client, call) => {
  it.each(rows.map(([name, ...row]) => ({ name, row })))("$name", async ({ row: [answer, expectedSends, millis] }) => {
    const outcome = await outcomeOf(call, answer)
    assert.strictEqual(outcome.sends, expectedSends)
    assert.strictEqual(outcome.millis, millis)
    if (expectedSends === 3) assert.strictEqual(outcome.throttling, answer.status === 429)
  })

  it("429 insufficient_quota is final if the error has the body", async () => {
    const isUnread = client === "ky" || client === "fetch"
    assert.strictEqual((await outcomeOf(call, { status: 429, body: quota })).sends, isUnread ? 3 : 1)
  })
})

describe("the SDKs' own failures", () => {
  it.each([["openai", openai], ["anthropic", anthropic]] as const)("a timeout of %s counts as one", async (_, call) => {
    const outcome = await outcomeOf(() => call(silentUrl, 200))
    assert.strictEqual(outcome.calls, 3)
    assert.isTrue(outcome.timeout)
  })

  it("a timeout of axios counts as one", async () => {
    const outcome = await outcomeOf(() => axios.put(silentUrl, {}, { timeout: 20 }))
    assert.strictEqual(outcome.calls, 3)
    assert.isTrue(outcome.timeout)
  })

  it.each(["openai", "anthropic"])("a refused connection of %s is transient", async (name) => {
    const closed = http.createServer()
    const options = { apiKey: "k", baseURL: await urlOf(closed), maxRetries: 0 }
    await new Promise((resolve) => closed.close(resolve))
    const { models } = name === "openai" ? new OpenAI(options) : new Anthropic(options)
    const error = await Promise.resolve(models.list()).then(() => undefined, (error: unknown) => error)
    assert.strictEqual(Option.getOrThrow(RetryClassifier.defaultClassifier(error)).safety, "Yes")
  })
})

it("a retry waits for the hint in milliseconds if the policy's own delay is shorter", async () => {
  answer = { status: 429, headers: { "retry-after-ms": "120" } }
  const delays: Array<unknown> = []
  const policy = Backoff.fixed(0).pipe(
    RetryPolicy.whileRetryable,
    RetryPolicy.honorRetryAfter(),
    RetryPolicy.maxAttempts(2)
  )
  await retryPromise(() => openai(), policy, { onRetry: (_, { delayMillis }) => delays.push(delayMillis) }).catch(() =>
    undefined
  )
  assert.deepStrictEqual(delays, [120])
})

it("awsStandard2026 sends a call without credit once", async () => {
  answer = { status: 429, body: quota }
  sends = 0
  await retryPromise(() => openai(), awsStandard2026).catch(() => undefined)
  assert.strictEqual(sends, 1)
})
