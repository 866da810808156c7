import { assert, describe, it } from "@effect/vitest"
import { RetryQuota, withRetry } from "effect-retry"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as RetryStream from "effect-retry/RetryStream"
import * as Kit from "effect-retry/testing"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import { constantRandom } from "../utils/call.ts"

class Answered extends Data.TaggedError("Answered")<
  { readonly status: number; readonly headers: Record<string, string> }
> {}

/** When a call whose every send fails is sent, in milliseconds. */
const sendsOf = (policy: ReturnType<typeof RetryLlm.make>, random: number, headers: Record<string, string> = {}) =>
  Effect.gen(function*() {
    const sends: Array<number> = []
    const send = Effect.gen(function*() {
      sends.push(yield* Clock.currentTimeMillis)
      return yield* new Answered({ status: 500, headers })
    })
    yield* Kit.runToEnd(Effect.exit(withRetry(send, policy)))
    return sends
  }).pipe(Effect.provide(RetryQuota.layer()), Effect.provideService(Random.Random, constantRandom(random)))

describe("the policies", () => {
  // npm openai 6.49.0 and @anthropic-ai/sdk 1.12.0, client.js: 0.5 s, doubled up to 8 s, times 1 - random * 0.25.
  const backoffSeconds = [0.5, 1, 2, 4, 8, 8]

  for (const [random, factor] of [[0, 0.75], [0.5, 0.875], [1, 1]] as const) {
    it.effect(`wait as the SDKs do, times ${factor}`, () =>
      Effect.gen(function*() {
        const sends = yield* sendsOf(RetryLlm.make({ maxAttempts: 7 }), random)
        const delays = sends.slice(1).map((at, n) => at - sends[n]!)
        assert.strictEqual(delays.length, backoffSeconds.length)
        delays.forEach((delay, n) => assert.closeTo(delay, backoffSeconds[n]! * 1000 * factor, 1))
      }))
  }

  it.effect("send three times at most, and not after a hint of more than a minute", () =>
    Effect.gen(function*() {
      for (const policy of [RetryLlm.openai, RetryLlm.anthropic]) {
        assert.strictEqual((yield* sendsOf(policy, 0.5)).length, 3)
        // The hint that the SDK of OpenAI has slept for 3.2 days.
        assert.strictEqual((yield* sendsOf(policy, 0.5, { "retry-after": "277403" })).length, 1)
        const [, second] = yield* sendsOf(policy, 0.5, { "retry-after-ms": "3000", "retry-after": "10" })
        assert.isAtLeast(second!, 3000)
      }
    }))

  it("are two, so that each has a quota of its own with promises", () => {
    assert.isFalse(Object.is(RetryLlm.openai, RetryLlm.anthropic))
    assert.strictEqual(String(RetryLlm.openai), String(RetryLlm.anthropic))
  })
})

describe("estimateOf", () => {
  const text = "a".repeat(400)
  const rows: ReadonlyArray<readonly [name: string, request: object, estimate: object]> = [
    ["a chat", { model: "m", messages: [{ role: "user", content: text }], max_completion_tokens: 50 }, {
      input: 101,
      output: 50
    }],
    ["a chat without a limit", { messages: [{ content: text }] }, { input: 100 }],
    ["a response", { input: text, instructions: text, max_output_tokens: 9 }, { input: 200, output: 9 }],
    ["a message", { system: text, messages: [{ content: [{ text }] }], max_tokens: 8 }, { input: 200, output: 8 }],
    ["a picture", { messages: [{ content: [{ image_url: { url: text } }, { source: { data: text } }] }] }, {
      input: 0
    }],
    ["bytes", { input: new Uint8Array(1000) }, { input: 0 }],
    ["nonsense", { messages: 5, max_tokens: "many" }, { input: 0 }]
  ]
  for (const [name, request, estimate] of rows) {
    it(name, () => {
      assert.deepStrictEqual(RetryLlm.estimateOf(request), estimate)
    })
  }

  it("of a cyclic value ends", () => {
    const loop: { messages?: object } = {}
    loop.messages = loop
    assert.deepStrictEqual(RetryLlm.estimateOf(loop), { input: 0 })
  })
})

it.effect("a stream that is metered is settled at its end by all that its parts say, one that is not by its estimate", () =>
  Effect.gen(function*() {
    const left = Effect.map(TokenLimiter.state, ({ inFlight, tokens }) => [inFlight, 10_000 - tokens.remaining])
    const parts = Stream.make(
      { type: "message_start", message: { usage: { input_tokens: 50, output_tokens: 1 } } },
      { type: "content_block_delta" },
      { type: "message_delta", usage: { output_tokens: 30 } }
    ).pipe(
      RetryStream.untilFirst(RetryLlm.anthropic),
      Stream.provideService(TokenLimiter.CurrentEstimate, { input: 500, output: 500 })
    )
    const seen: Array<ReadonlyArray<number>> = []
    yield* RetryLlm.metered(Stream.rechunk(parts, 1)).pipe(
      Stream.provideService(TokenLimiter.CurrentEstimate, { input: 500, output: 500 }),
      Stream.runForEach(() => Effect.map(left, (now) => seen.push(now)))
    )
    assert.deepStrictEqual(seen, [[1, 1000], [1, 1000], [1, 1000]])
    assert.deepStrictEqual(yield* left, [0, 80])
    yield* Stream.runDrain(parts)
    assert.deepStrictEqual(yield* left, [0, 1080])
    yield* Stream.runHead(RetryLlm.metered(parts))
    assert.deepStrictEqual((yield* left)[0], 0)
  }).pipe(Effect.provide([TokenLimiter.layer({ tokens: 10_000, slack: 0 }), RetryQuota.layer()])))
