/**
 * Answers of a language model, word by word: retried until the first
 * word, not only until the response begins.
 *
 * The service sends a preamble immediately, and may fail after it. What
 * came of a failed attempt is dropped; of the one that succeeds nothing
 * is missing.
 */
import { Effect, identity, Stream } from "effect"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import type OpenAI from "openai"

type Request = OpenAI.ChatCompletionCreateParamsStreaming

/** The parts of an answer. Its request ends with the stream. */
const partsOf = (openai: OpenAI, request: Request) =>
  Effect.abortSignal.pipe(
    Effect.andThen((signal) =>
      Effect.tryPromise(() =>
        openai.chat.completions.create(request, {
          maxRetries: 0,
          signal
        })
      )
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
