/**
 * LLM services: who retries, how long a hint is kept, and what is final.
 *
 * A call is a POST that takes long and costs money. The service says in headers when to come back, and in the body that
 * there is no money left. The SDKs retry by themselves: switch that off, or both retry.
 */
import { Effect } from "effect"
import { awsStandard2026, RetryPolicy, withRetry } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import { retryPromise } from "effect-retry/RetryPromise"
import { LanguageModel } from "effect/ai"
import { HttpBody, HttpClient } from "effect/http"
import type OpenAI from "openai"

/** A hint is kept up to a minute; where the service asks for more, the call fails immediately. No retry after five minutes. */
export const policy = awsStandard2026.pipe(
  RetryPolicy.honorRetryAfter({ atMost: "1 minute", beyond: "stop" }),
  RetryPolicy.deadline("5 minutes")
)

/** An SDK, without its own retries. With `stream: true` too: the promise is kept when the answer begins. */
export const ask = (openai: OpenAI, text: string, signal?: AbortSignal) =>
  retryPromise(
    (attempt) =>
      openai.chat.completions.create(
        { model: "gpt-5", messages: [{ role: "user", content: text }] },
        { maxRetries: 0, signal: attempt.signal }
      ),
    policy,
    { signal }
  )

/** Effect's client. The body of a 429 says whether there is no money, and then it is not repeated. */
export const complete = (body: object) =>
  Effect.gen(function*() {
    const client = HttpClient.filterStatusOk(RetryHttp.retry(yield* HttpClient.HttpClient, policy))
    const response = yield* client.post("https://llm.example/v1/responses", { body: HttpBody.jsonUnsafe(body) })
    return yield* response.json
  }).pipe(RetryHttp.repeatable)

/** A model of `effect/ai`: its errors say themselves what is retried. */
export const write = (prompt: string) => LanguageModel.generateText({ prompt }).pipe(withRetry(policy))
