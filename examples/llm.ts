/**
 * LLM services: which layer retries, how long a hint is followed, and
 * what is final.
 *
 * A call is a POST that takes long and costs money. The service says in
 * headers when to come back, and in the body that there is no credit
 * left. The SDKs retry on their own: switch that off, or both retry.
 */
import { Effect } from "effect"
import { awsStandard2026, RetryPolicy, withRetry } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import { retryPromise } from "effect-retry/RetryPromise"
import { LanguageModel } from "effect/ai"
import { HttpBody, HttpClient, HttpClientResponse } from "effect/http"
import type OpenAI from "openai"
import { ended, inVirtualTime, main, print } from "./support/program.ts"

/**
 * A hint is followed up to a minute; if the service asks for more, the
 * call fails immediately. No retry after five minutes.
 */
export const policy = awsStandard2026.pipe(
  RetryPolicy.honorRetryAfter({ atMost: "1 minute", beyond: "stop" }),
  RetryPolicy.deadline("5 minutes")
)

/** An SDK without its own retries. For streams: `answers.ts`. */
export const ask = (
  openai: OpenAI,
  text: string,
  signal?: AbortSignal
) =>
  retryPromise(
    (attempt) =>
      openai.chat.completions.create(
        { model: "gpt-5", messages: [{ role: "user", content: text }] },
        { maxRetries: 0, signal: attempt.signal }
      ),
    policy,
    { signal }
  )

/**
 * Effect's client. The body of a 429 says if there is no credit, and
 * then it is not retried.
 */
export const complete = (body: object) =>
  Effect.gen(function*() {
    const client = HttpClient.filterStatusOk(
      RetryHttp.retry(yield* HttpClient.HttpClient, policy)
    )
    const response = yield* client.post(
      "https://llm.example/v1/responses",
      { body: HttpBody.jsonUnsafe(body) }
    )
    return yield* response.json
  }).pipe(RetryHttp.repeatable)

/**
 * A model of `effect/ai`: its errors say themselves what is retried.
 */
export const write = (prompt: string) =>
  LanguageModel.generateText({ prompt }).pipe(withRetry(policy))

/**
 * Calls to a service that answers like this at first, and succeeds the
 * second time.
 */
const requestsOf = (
  title: string,
  status: number,
  body: object,
  headers: Record<string, string> = {}
) =>
  Effect.gen(function*() {
    let requests = 0
    const service = HttpClient.make((request) =>
      Effect.sync(() => {
        const response = ++requests > 1
          ? Response.json({ text: "Aye." })
          : Response.json(body, { status, headers })
        return HttpClientResponse.fromWeb(request, response)
      })
    )
    const exit = yield* inVirtualTime(
      Effect.exit(complete({ input: "Is it so?" }))
    ).pipe(
      Effect.provideService(HttpClient.HttpClient, service)
    )
    yield* print(`${title}: requests ${requests}; ${ended(exit)}`)
  })

main(
  import.meta.url,
  requestsOf("overloaded", 529, {}),
  requestsOf("a hint of 20 seconds", 429, {}, { "retry-after": "20" }),
  requestsOf("a hint of an hour", 429, {}, { "retry-after": "3600" }),
  requestsOf("no credit left", 429, {
    error: { type: "insufficient_quota", code: "insufficient_quota" }
  })
)
