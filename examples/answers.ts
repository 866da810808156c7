/**
 * Answers of a language model, word by word: retried until the first
 * word, not only until the response begins.
 *
 * The service sends a preamble immediately, and may fail after it. What
 * came of a failed attempt is dropped; of the one that succeeds nothing
 * is missing.
 */
import { Effect, identity, ManagedRuntime, Stream } from "effect"
import { RetryQuota } from "effect-retry"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import type OpenAI from "openai"
import type { APIError } from "openai"

type Request = OpenAI.ChatCompletionCreateParamsStreaming

/** The parts of an answer. Its request ends with the stream. */
const partsOf = (openai: OpenAI, request: Request) =>
  Effect.abortSignal.pipe(
    Effect.andThen((signal) =>
      Effect.tryPromise({
        try: () =>
          openai.chat.completions.create(request, {
            maxRetries: 0,
            signal
          }),
        catch: (error) => error as APIError
      })
    ),
    Effect.map((parts) => Stream.fromAsyncIterable(parts, identity)),
    Stream.unwrap
  )

/** Retried until the first word; its last part has its usage. */
export const answer = (openai: OpenAI, request: Request) =>
  partsOf(openai, request).pipe(
    RetryLlm.untilAnswer(RetryLlm.openai),
    RetryLlm.metered,
    Stream.provideService(
      TokenLimiter.CurrentEstimate,
      RetryLlm.estimateOf(request)
    )
  )

/** The same for `for await`, outside Effect. */
export const answerOutside = (
  openai: OpenAI,
  request: Request,
  signal: AbortSignal
) =>
  answer(openai, request).pipe(
    Stream.interruptWhen(aborted(signal)),
    Stream.toAsyncIterableWith(context)
  )

/** What all calls share. */
const context = ManagedRuntime.make(RetryQuota.layer())
  .runSync(Effect.context<RetryQuota.RetryQuota>())

/** Fails with the reason of the signal. */
const aborted = (signal: AbortSignal) =>
  Effect.callback<never, unknown>((resume) => {
    const end = () => resume(Effect.fail(signal.reason))
    if (signal.aborted) return end()
    signal.addEventListener("abort", end, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", end))
  })

import { ended, inVirtualTime, main, print } from "./support/program.ts"

const chunk = (delta: object) => ({
  choices: [{ index: 0, delta, finish_reason: null }]
})

const overloaded = {
  type: "server_error",
  message: "The server had an error"
}

/**
 * A stand-in for the SDK: its first two streams fail after their
 * preamble.
 */
const standIn = () => {
  let requests = 0
  const create = async () =>
    (async function*() {
      yield chunk({ role: "assistant", content: "" })
      if (++requests < 3) {
        throw Object.assign(new Error("an error event"), {
          error: overloaded
        })
      }
      for (const content of ["It ", "is ", "so."]) {
        yield chunk({
          content
        })
      }
    })()
  const openai = {
    chat: { completions: { create } }
  } as unknown as OpenAI
  return { openai, requests: () => requests }
}

main(
  import.meta.url,
  Effect.gen(function*() {
    const { openai, requests } = standIn()
    const words = answer(openai, {
      model: "gpt-5",
      messages: [],
      stream: true
    }).pipe(
      Stream.map(({ choices: [choice] }) => choice?.delta.content ?? "")
    )
    const exit = yield* inVirtualTime(
      Effect.exit(Stream.mkString(words))
    )
    yield* print(`requests ${requests()}; ${ended(exit)}`)
  })
)
