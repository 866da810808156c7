/**
 * LLM services: who retries, how long a hint is kept, and what is final.
 *
 * A call is a POST that takes long and costs money. The service says in headers when to come back, and in the body that
 * there is no money left. The SDKs retry by themselves: switch that off, or both retry.
 */
import { Data, Effect } from "effect"
import { awsStandard2026, RetryPolicy, withRetry } from "effect-retry"
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

/** Status, headers and body of a refusal: what the default classifier reads of any client's error. */
export class Refused extends Data.TaggedError("Refused")<{
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly data: unknown
}> {}

/** Effect's client. The body of a refusal is part of the attempt, so that a call without money is not repeated. */
export const complete = (body: object) =>
  Effect.gen(function*() {
    const client = yield* HttpClient.HttpClient
    const response = yield* client.post("https://llm.example/v1/responses", { body: HttpBody.jsonUnsafe(body) })
    if (response.status < 400) return yield* response.json
    const data = yield* Effect.orElseSucceed(response.json, () => undefined)
    return yield* new Refused({ status: response.status, headers: response.headers, data })
  }).pipe(withRetry(policy))

/** A model of `effect/ai`: its errors say themselves what is retried. */
export const write = (prompt: string) => LanguageModel.generateText({ prompt }).pipe(withRetry(policy))
