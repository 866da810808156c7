import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as RetryLanguageModel from "effect-retry/RetryLanguageModel"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as Kit from "effect-retry/testing"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../examples/llm-limits.ts"
import { sweep } from "../utils/sweep.ts"

const failed = (reason: AiError.AiErrorReason) => AiError.make({ module: "Test", method: "test", reason })

const finish = (input: number, output: number, headers: Record<string, string> = {}) => ({
  type: "finish" as const,
  reason: "stop" as const,
  usage: { inputTokens: { uncached: input, total: input }, outputTokens: { total: output } },
  response: { request: undefined, status: 200, headers } as never
})

type Parts = ReadonlyArray<{ readonly type: "text"; readonly text: string } | ReturnType<typeof finish> | object>

type Answers = ReadonlyArray<AiError.AiErrorReason | Parts>

/** A model that answers in turn, and the last answer from then on. */
const modelOf = (...answers: Answers) => {
  const model = { sends: 0, limits: undefined as TokenLimiter.Service | undefined }
  const next = Effect.suspend(() => {
    const answer = answers[Math.min(model.sends++, answers.length - 1)]!
    return Array.isArray(answer) ? Effect.succeed(answer as Array<any>) : Effect.fail(failed(answer as never))
  })
  const made = LanguageModel.make({
    generateText: () => Effect.delay(next, 10),
    streamText: () => Stream.rechunk(Stream.unwrap(Effect.map(Effect.delay(next, 10), Stream.fromIterable)), 1)
  })
  return { model, layer: Layer.effect(LanguageModel.LanguageModel, made) }
}

const generate = LanguageModel.generateText({ prompt: "How are you?" })
const text = [{ type: "text", text: "fine" }, finish(40, 2)]

describe("a model with retries and limits", () => {
  it.effect("is asked again after an error that is transient, three times at most", () =>
    Effect.gen(function*() {
      for (
        const [answers, sends] of [
          [[new AiError.RateLimitError({}), text], 2],
          [[new AiError.RateLimitError({})], 3],
          [[new AiError.QuotaExhaustedError({})], 1]
        ] as const
      ) {
        const { layer, model } = modelOf(...answers)
        const retried = layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai))
        yield* Kit.runToEnd(Effect.exit(generate)).pipe(Effect.provide(retried))
        assert.strictEqual(model.sends, sends)
      }
    }))

  it.effect("reserves its prompt, and is settled by the usage of the answer", () =>
    Effect.gen(function*() {
      const { layer, model } = modelOf([{ type: "text", text: "fine" }, finish(40, 60)])
      const retried = layer.pipe(
        RetryLanguageModel.withRetry(RetryLlm.openai, { tokens: 1000, slack: 0, estimate: { output: 500 } })
      )
      const program = Effect.gen(function*() {
        const first = yield* Effect.forkChild(generate, { startImmediately: true })
        const second = yield* Effect.forkChild(
          TokenLimiter.estimate(generate, { input: 990, output: 0 }),
          { startImmediately: true }
        )
        yield* TestClock.adjust(10)
        assert.strictEqual(model.sends, 1)
        assert.isTrue(Exit.isSuccess(first.pollUnsafe()!))
        // 100 were used: 90 flow in in 5.4 s.
        yield* TestClock.adjust(5390)
        assert.isUndefined(second.pollUnsafe())
        yield* TestClock.adjust(20)
        assert.strictEqual(model.sends, 2)
      })
      yield* Effect.provide(program, retried)
    }))

  it.effect("a stream is retried until its first part, and settled by its last", () =>
    Effect.gen(function*() {
      const parts = [
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "fine" },
        { type: "text-end", id: "1" },
        finish(400, 500)
      ]
      const { layer, model } = modelOf(new AiError.RateLimitError({}), parts)
      const stream = LanguageModel.streamText({ prompt: "hi" })
      const retried = layer.pipe(
        RetryLanguageModel.withRetry(RetryLlm.openai, { tokens: 1000, slack: 0, estimate: 100 })
      )
      const program = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(Stream.runCollect(stream), { startImmediately: true })
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(
          Array.from((yield* fiber.pollUnsafe()!) as ReadonlyArray<{ type: string }>, ({ type }) => type),
          parts.map(({ type }) => type)
        )
        assert.strictEqual(model.sends, 2)
      })
      yield* Effect.provide(program, retried)
    }))

  it.effect("a stream is retried after an error in a part, until its answer begins", () =>
    Effect.gen(function*() {
      const metadata = { type: "response-metadata", id: "1", modelId: "m", timestamp: undefined, request: undefined }
      const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
      const parts = [
        metadata,
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "fine" },
        error,
        finish(4, 5)
      ]
      const { layer, model } = modelOf([metadata, error], [metadata, { type: "text-start", id: "1" }, error], parts)
      const kinds = yield* Kit.runToEnd(Stream.runCollect(LanguageModel.streamText({ prompt: "hi" }))).pipe(
        Effect.map((received) => Array.from(received, ({ type }) => type)),
        Effect.provide(layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai)))
      )
      assert.deepStrictEqual([model.sends, kinds], [3, parts.map(({ type }) => type)])
    }))

  it.effect("an object is requested again after an error, and after an answer that is not one; and decoded", () =>
    Effect.gen(function*() {
      const json = (value: unknown) => [{ type: "text", text: JSON.stringify(value) }, finish(40, 60)]
      const mood = LanguageModel.generateObject({
        prompt: "How are you?",
        schema: Schema.Struct({ mood: Schema.String })
      })
      const asked = (...answers: Answers) => {
        const { layer, model } = modelOf(...answers)
        return Kit.runToEnd(Effect.exit(mood)).pipe(
          Effect.map((exit) => ({
            sends: model.sends,
            value: Exit.isSuccess(exit) ? exit.value.value : undefined,
            reason: Exit.isFailure(exit)
              ? exit.cause.reasons.map((reason) =>
                reason._tag === "Fail" && AiError.isAiError(reason.error) ? reason.error.reason._tag : reason._tag
              )[0]
              : undefined
          })),
          Effect.provide(layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai)))
        )
      }
      const fine = json({ mood: "fine" })
      assert.deepInclude(yield* asked(new AiError.RateLimitError({}), fine), { sends: 2, value: { mood: "fine" } })
      assert.deepInclude(yield* asked(json({ mood: 3 }), fine), { sends: 2, value: { mood: "fine" } })
      assert.deepInclude(yield* asked(json({ mood: 3 })), { sends: 3, reason: "StructuredOutputError" })
      assert.deepInclude(yield* asked(new AiError.QuotaExhaustedError({})), { sends: 1, reason: "QuotaExhaustedError" })
    }))

  it.effect("an object reserves its prompt, and is settled by the usage of the answer", () =>
    Effect.gen(function*() {
      const { layer, model } = modelOf([{ type: "text", text: `{"mood":"fine"}` }, finish(40, 60)])
      const mood = LanguageModel.generateObject({
        prompt: "How are you?",
        schema: Schema.Struct({ mood: Schema.String })
      })
      const limits = { tokens: 1000, slack: 0, estimate: { output: 500 } } as const
      const program = Effect.gen(function*() {
        yield* Effect.forkChild(mood, { startImmediately: true })
        const second = yield* Effect.forkChild(
          TokenLimiter.estimate(mood, { input: 990, output: 0 }),
          { startImmediately: true }
        )
        yield* TestClock.adjust(5400)
        assert.deepStrictEqual([model.sends, second.pollUnsafe()], [1, undefined])
        yield* TestClock.adjust(20)
        assert.strictEqual(model.sends, 2)
      })
      yield* Effect.provide(program, layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai, limits)))
    }))

  it.effect("learns the limits from the headers of answers", () =>
    Effect.gen(function*() {
      const headers = { "x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0" }
      const { layer, model } = modelOf([{ type: "text", text: "fine" }, finish(1, 1, headers)])
      const program = Effect.gen(function*() {
        yield* Effect.forkChild(Effect.andThen(generate, generate), { startImmediately: true })
        yield* TestClock.adjust(900)
        assert.strictEqual(model.sends, 1)
        yield* TestClock.adjust(2000)
        assert.strictEqual(model.sends, 2)
      })
      yield* Effect.provide(program, layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai)))
    }))

  it.effect("a refusal of the limiter is an AiError that says when to come back, and is not retried", () =>
    Effect.gen(function*() {
      const { layer, model } = modelOf(text)
      const limits = { requests: 1, onExceeded: "fail", slack: 0 } as const
      const program = Effect.gen(function*() {
        yield* generate
        const error = yield* Effect.flip(generate)
        assert.isTrue(AiError.isAiError(error))
        assert.strictEqual(error.reason._tag, "RateLimitError")
        assert.strictEqual(model.sends, 1)
      })
      yield* Kit.runToEnd(program).pipe(
        Effect.provide(layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai, limits)))
      )
    }))

  it.effect("tools run with the services of the caller, and their errors are not retried", () =>
    Effect.gen(function*() {
      class Down extends Schema.Error<Down>("Down")({ _tag: Schema.tag("Down"), status: Schema.Int }) {}
      let runs = 0
      let limiters = 0
      const toolkit = Toolkit.make(Tool.make("look", { failure: Down, success: Schema.String }))
      const handlers = toolkit.toLayer({
        look: () =>
          Effect.gen(function*() {
            runs++
            const limiter = yield* Effect.serviceOption(TokenLimiter.TokenLimiter)
            const quota = yield* Effect.serviceOption(RetryQuota.RetryQuota)
            const concurrency = yield* Effect.serviceOption(ConcurrencyLimiter.ConcurrencyLimiter)
            if (Option.isSome(limiter) || Option.isSome(quota) || Option.isSome(concurrency)) limiters++
            return yield* new Down({ _tag: "Down", status: 503 })
          })
      })
      const { layer, model } = modelOf([{ type: "tool-call", id: "1", name: "look", params: {} }, finish(1, 1)])
      const call = LanguageModel.generateText({ prompt: "look", toolkit })
      const error = yield* Kit.runToEnd(Effect.flip(call)).pipe(
        Effect.provide([
          layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai), Layer.provide(ConcurrencyLimiter.layer())),
          handlers
        ])
      )
      assert.strictEqual((error as { _tag: string })._tag, "Down")
      assert.deepStrictEqual([runs, limiters, model.sends], [1, 0, 1])
    }))

  it("refuses impossible limits when it is made", () => {
    assert.throws(() => RetryLanguageModel.withRetry(RetryLlm.openai, { tokens: 0 }), /tokens/)
  })

  const limits = { requests: 1, per: "1 second", slack: 0, maxWait: "10 seconds" } as const
  for (
    const [name, call] of [
      ["a call", generate],
      ["an object", LanguageModel.generateObject({ prompt: "hi", schema: Schema.Struct({ mood: Schema.String }) })],
      ["a stream", Stream.runDrain(LanguageModel.streamText({ prompt: "hi" }))]
    ] as const
  ) {
    it.effect(`whatever interrupts it, ${name} leaves nothing behind: the next one passes in its time`, () =>
      Effect.gen(function*() {
        const answers = {
          "a call": text,
          "an object": [{ type: "text", text: `{"mood":"fine"}` }, finish(1, 1)],
          "a stream": [finish(1, 1)]
        }
        const { layer } = modelOf(new AiError.RateLimitError({}), answers[name])
        const retried = layer.pipe(RetryLanguageModel.withRetry(RetryLlm.openai, limits))
        const program = Effect.gen(function*() {
          const model = yield* LanguageModel.LanguageModel
          const provided = <A, E>(self: Effect.Effect<A, E, LanguageModel.LanguageModel>) =>
            Effect.provideService(self, LanguageModel.LanguageModel, model)
          const steps = yield* sweep(provided(Effect.exit(call)), () =>
            Effect.gen(function*() {
              yield* TestClock.adjust("2 seconds")
              const after = yield* Effect.forkChild(provided(call), { startImmediately: true })
              yield* TestClock.adjust("3 seconds")
              assert.isTrue(Exit.isSuccess(after.pollUnsafe()!))
              yield* TestClock.adjust("2 seconds")
            }))
          assert.isAtLeast(steps, 5)
        })
        yield* Effect.provide(program, retried)
      }))
  }
})

it.effect("examples/llm-limits: seven pass immediately, then eight per second", () =>
  Effect.gen(function*() {
    const lines = yield* Kit.runToEnd(Example.program)
    assert.strictEqual(lines.length, 16)
    assert.strictEqual(lines[0], "Aye. 50ms")
    assert.strictEqual(lines.filter((line) => line === "Aye. 50ms").length, 7)
    assert.match(lines[15]!, /^Aye. 1s/)
  }))
