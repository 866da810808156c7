import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryObserver, RetryPolicy, RetryQuota, SendGate, withRetry } from "effect-retry"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as RetryStream from "effect-retry/RetryStream"
import * as Kit from "effect-retry/testing"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
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

describe("untilAnswer", () => {
  const policy = Backoff.fixed(0).pipe(
    RetryPolicy.maxAttempts(3),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5 })
  )
  const cut = Object.assign(new TypeError("terminated"), { code: "UND_ERR_SOCKET" })

  /** A stream whose first attempts emit these parts and then fail, or end. Each part is a chunk. */
  const streamOf = (attempts: number, parts: ReadonlyArray<unknown>, fails: boolean) => {
    const seen = { opened: 0 }
    const stream = Stream.suspend(() => {
      if (++seen.opened > attempts) return Stream.make<Array<unknown>>({ type: "start" }, "Aye.")
      const given = Stream.rechunk(Stream.fromIterable(parts), 1)
      return fails ? Stream.concat(given, Stream.fail(cut)) : given
    })
    return { seen, stream: RetryLlm.untilAnswer(stream, policy) }
  }

  const received = <A, E, R>(stream: Stream.Stream<A, E, R>) =>
    Effect.gen(function*() {
      const parts: Array<A> = []
      const exit = yield* Effect.exit(Stream.runForEach(stream, (part) => Effect.sync(() => parts.push(part))))
      return { parts, exit: exit._tag }
    })

  const chunk = (delta: object, more: object = {}) => ({ choices: [{ index: 0, delta, finish_reason: null }], ...more })
  const opening = (type: string, item: object) => ({ type, item })

  const preambles: ReadonlyArray<readonly [name: string, part: unknown]> = [
    ["a role", chunk({ role: "assistant", content: "", refusal: null, tool_calls: [] })],
    ["a chunk without a choice", { choices: [], prompt_filter_results: [{}] }],
    ["a choice without a delta", { choices: [{}] }],
    ["message_start", { type: "message_start", message: { content: [] } }],
    ["ping", { type: "ping" }],
    ["a text that is opened", { type: "content_block_start", content_block: { type: "text", text: "" } }],
    ["a thought that is opened", { type: "content_block_start", content_block: { type: "thinking", thinking: "" } }],
    ["response.created", { type: "response.created", response: { status: "in_progress", error: null } }],
    ["response.in_progress", { type: "response.in_progress" }],
    ["a message that is added", opening("response.output_item.added", { type: "message", content: [] })],
    ["reasoning that is added", opening("response.output_item.added", { type: "reasoning", summary: [] })],
    ["a part that is added", { type: "response.content_part.added", part: { type: "output_text", text: "" } }],
    ["the start of the AI SDK", { type: "start" }],
    ["its step", { type: "start-step", request: {} }],
    ["what Anthropic's provider adds to it", { type: "custom", kind: "anthropic.message_start" }],
    ["a text that starts", { type: "text-start", id: "1" }],
    ["metadata of Effect", { type: "response-metadata", id: "1" }],
    ["an empty text", ""]
  ]

  it.effect.each(preambles)("holds back %s", ([, part]) =>
    Effect.gen(function*() {
      const { seen, stream } = streamOf(2, [part], true)
      assert.deepStrictEqual(yield* received(stream), { parts: [{ type: "start" }, "Aye."], exit: "Success" })
      assert.strictEqual(seen.opened, 3)
      const once = streamOf(9, [part, "Aye."], true)
      assert.deepStrictEqual(yield* received(once.stream), { parts: [part, "Aye."], exit: "Failure" })
      assert.strictEqual(once.seen.opened, 1)
    }).pipe(Effect.provide(RetryQuota.layer())))

  const unreadable = new Proxy({}, {
    ownKeys: () => {
      throw new Error("it cannot be read")
    }
  })

  const answers: ReadonlyArray<readonly [name: string, part: unknown]> = [
    ["a word", chunk({ content: "A" })],
    ["a refusal", chunk({ refusal: "No" })],
    ["the call of a tool", chunk({ role: "assistant", content: null, tool_calls: [{ index: 0 }] })],
    ["the end of a choice", { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }],
    ["a second choice", { choices: [{ delta: { role: "assistant" } }, { delta: { content: "A" } }] }],
    ["a delta", { type: "content_block_delta", delta: { type: "text_delta", text: "A" } }],
    ["a tool that is used", { type: "content_block_start", content_block: { type: "tool_use", name: "look" } }],
    ["a text that begins", { type: "content_block_start", content_block: { type: "text", text: "A" } }],
    ["the end of a message", { type: "message_delta", delta: { stop_reason: "end_turn" } }],
    ["a function that is called", opening("response.output_item.added", { type: "function_call", name: "look" })],
    ["a response that is complete", { type: "response.completed", response: { error: null } }],
    ["a custom part of the AI SDK", { type: "custom", kind: "openai.compaction" }],
    ["a delta of the AI SDK", { type: "text-delta", text: "A" }],
    ["the failure of a tool", { type: "tool-error", error: cut }],
    ["anything else", { candidates: [] }],
    ["a number", 0],
    ["what cannot be read", { choices: [{ delta: unreadable }] }]
  ]

  it.effect.each(answers)("begins with %s", ([, part]) =>
    Effect.gen(function*() {
      const { seen, stream } = streamOf(9, [{ type: "ping" }, part], true)
      assert.deepStrictEqual(yield* received(stream), { parts: [{ type: "ping" }, part], exit: "Failure" })
      assert.strictEqual(seen.opened, 1)
    }).pipe(Effect.provide(RetryQuota.layer())))

  const server = { code: "server_error", message: "The server had an error" }
  const errors: ReadonlyArray<readonly [name: string, part: unknown, sends: number]> = [
    ["an event of Anthropic", { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, 3],
    ["one that no retry mends", { type: "error", error: { type: "invalid_request_error", message: "no" } }, 1],
    ["an event of OpenAI's responses", { type: "error", ...server, param: null }, 3],
    ["one for an account without credit", { type: "error", code: "insufficient_quota", message: "no" }, 1],
    ["a response that failed", { type: "response.failed", response: { status: "failed", error: server } }, 3],
    ["a chunk with an error", { error: { type: "server_error", message: "no" } }, 3],
    ["an error of the AI SDK", { type: "error", error: Object.assign(new Error("no"), { statusCode: 529 }) }, 3],
    ["one of the AI SDK that no retry mends", { type: "error", error: { statusCode: 400 } }, 1],
    ["an error that is a text", { type: "error", error: "no" }, 1]
  ]

  it.effect.each(errors)(
    "fails with %s, which comes out if it is the last",
    ([, part, sends]) =>
      Effect.gen(function*() {
        const begun = { type: "message_start" }
        const { seen, stream } = streamOf(9, [begun, part, "not read"], false)
        assert.deepStrictEqual(yield* received(stream), { parts: [begun, part], exit: "Success" })
        assert.strictEqual(seen.opened, sends)
        const after = streamOf(9, ["Aye.", part], false)
        assert.deepStrictEqual(yield* received(after.stream), { parts: ["Aye.", part], exit: "Success" })
        assert.strictEqual(after.seen.opened, 1, "after the first word it is a part like any other")
      }).pipe(Effect.provide(RetryQuota.layer()))
  )

  it.effect("fails with an end without an answer, which comes out if it is the last", () =>
    Effect.gen(function*() {
      for (const parts of [[{ type: "message_start" }], []]) {
        const { seen, stream } = streamOf(9, parts, false)
        assert.deepStrictEqual(yield* received(stream), { parts, exit: "Success" })
        assert.strictEqual(seen.opened, 3)
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  class Own extends SendGate.Service<Own, never>()("test/llm/RetryLlm/Own") {}

  it.effect("observers, gates and the quota see such a failure once", () =>
    Effect.gen(function*() {
      const events: Array<string> = []
      const outcomes: Array<string> = []
      const gate: SendGate.SendGate<never> = {
        order: 0,
        enter: (send) =>
          send.hold({
            settle: ({ _tag, info }) => void outcomes.push(info?.throttling ? "throttled" : _tag),
            cancel: () => void outcomes.push("canceled")
          })
      }
      const { stream } = streamOf(1, [{ type: "error", error: { type: "rate_limit_error" } }], false)
      yield* received(stream).pipe(
        Effect.provideService(Own, gate),
        Effect.provideService(RetryObserver.CurrentObserver, {
          onAttempt: (succeeded) => void events.push(succeeded ? "success" : "failure"),
          onRetry: (_, error) => void events.push((error as Error).message)
        })
      )
      assert.deepStrictEqual(events, ["failure", "the stream failed before it began", "success"])
      assert.deepStrictEqual(outcomes, ["throttled", "Success"])
      assert.strictEqual(yield* RetryQuota.balance, 500)
      yield* received(streamOf(9, [], false).stream)
      assert.strictEqual(yield* RetryQuota.balance, 490)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 500 }))))

  it.effect("a hint in a part closes a cool-down", () =>
    Effect.gen(function*() {
      const limited = { statusCode: 429, responseHeaders: { "retry-after": "7" } }
      const { seen, stream } = streamOf(1, [{ type: "error", error: limited }], false)
      const fiber = yield* Effect.forkChild(received(stream))
      yield* TestClock.adjust("6999 millis")
      assert.strictEqual(seen.opened, 1)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(seen.opened, 2)
      assert.strictEqual((yield* Fiber.join(fiber)).exit, "Success")
    }).pipe(Effect.provide([RetryQuota.layer(), CoolDown.layer({ maxWait: "1 minute" })])))
})
