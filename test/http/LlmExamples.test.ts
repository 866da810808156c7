import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Stream from "effect/Stream"
import OpenAI from "openai"
import * as Answers from "../../examples/answers.ts"
import * as Llm from "../../examples/llm.ts"

const quota = { error: { message: "no money", type: "insufficient_quota", code: "insufficient_quota" } }

type Answer = readonly [status: number, body: object, headers?: Record<string, string>]

const rows: ReadonlyArray<readonly [name: string, answers: ReadonlyArray<Answer>, sends: number]> = [
  ["a call without credit is sent once", [[429, quota]], 1],
  ["an overload is retried", [[529, {}], [200, {}]], 2],
  ["a wait of an hour is not begun", [[429, {}, { "retry-after": "3600" }]], 1],
  ["what the service forbids is sent once", [[500, {}, { "x-should-retry": "false" }]], 1]
]

/** Answers in turn, and counts. */
const serving = (answers: ReadonlyArray<Answer>) => {
  let sends = 0
  const respond = () => {
    const [status, body, headers] = answers[Math.min(sends++, answers.length - 1)]!
    return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } })
  }
  return { respond, sends: () => sends }
}

describe.each(rows)("examples/llm: %s", (_, answers, expected) => {
  it("by the SDK", async () => {
    const { respond, sends } = serving(answers)
    const openai = new OpenAI({ apiKey: "k", fetch: async () => respond() })
    await Llm.ask(openai, "hi").catch(() => undefined)
    assert.strictEqual(sends(), expected)
  })

  it.effect("by Effect's client", () =>
    Effect.gen(function*() {
      const { respond, sends } = serving(answers)
      const client = HttpClient.make((request) => Effect.sync(() => HttpClientResponse.fromWeb(request, respond())))
      yield* Kit.runToEnd(Effect.exit(Llm.complete({ input: "hi" }))).pipe(
        Effect.provideService(HttpClient.HttpClient, client),
        Effect.provide(RetryQuota.layer())
      )
      assert.strictEqual(sends(), expected)
    }))
})

it.effect("examples/answers: a stream that fails before its first word is opened again, one that fails after it is not", () =>
  Effect.gen(function*() {
    const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
    const chunk = (delta: object) => event({ choices: [{ index: 0, delta }] })
    const [preamble, failure] = [chunk({ role: "assistant", content: "" }), event({ error: { type: "server_error" } })]
    for (
      const [bodies, expected] of [
        [[failure, preamble + failure, preamble + chunk({ content: "Aye." })], "Aye."],
        [[preamble + chunk({ content: "Aye." }) + failure], "Aye. server_error"]
      ] as const
    ) {
      let sends = 0
      const openai = new OpenAI({
        apiKey: "k",
        fetch: async () => new Response(bodies[sends++], { headers: { "content-type": "text/event-stream" } })
      })
      const words = Answers.answer(openai, { model: "m", messages: [], stream: true }).pipe(
        Stream.map(({ choices }) => choices[0]?.delta.content ?? ""),
        Stream.catch((error) => Stream.make(` ${(error as { type: string }).type}`))
      )
      const text = yield* Kit.runToEnd(Stream.mkString(words)).pipe(Effect.provide(RetryQuota.layer()))
      assert.deepStrictEqual([text, sends], [expected, bodies.length])
    }
  }))

it.effect("examples/llm: a model of effect/ai that is limited is asked again, one without credit is not", () =>
  Effect.gen(function*() {
    for (
      const [reason, expected] of [
        [new AiError.RateLimitError({}), 3],
        [new AiError.QuotaExhaustedError({}), 1]
      ] as const
    ) {
      let sends = 0
      const failing = Effect.suspend(() => {
        sends++
        return Effect.fail(AiError.make({ module: "Test", method: "generateText", reason }))
      })
      const model = yield* LanguageModel.make({ generateText: () => failing, streamText: () => Stream.unwrap(failing) })
      yield* Kit.runToEnd(Effect.exit(Llm.write("hi"))).pipe(
        Effect.provideService(LanguageModel.LanguageModel, model),
        Effect.provide(RetryQuota.layer())
      )
      assert.strictEqual(sends, expected)
    }
  }))
