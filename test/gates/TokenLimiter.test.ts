import { assert, describe, it } from "@effect/vitest"
import { attempt, Backoff, InvalidOption, RetryInfo, RetryPolicy, withRetry } from "effect-retry"
import * as Criticality from "effect-retry/Criticality"
import type * as SendGate from "effect-retry/SendGate"
import { SendGateSuite } from "effect-retry/testing"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { Throttled, Transient } from "../utils/call.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const once = RetryPolicy.fromDelay(() => undefined)

/** What OpenAI answers. */
const answer = (prompt: number, completion: number, cached = 0) => ({
  usage: {
    prompt_tokens: prompt,
    completion_tokens: completion,
    prompt_tokens_details: { cached_tokens: cached }
  }
})

/** A send with this expected usage, and when it was made. */
const sending = () => {
  const sends: Array<number> = []
  const send = <A, E>(estimate: TokenLimiter.Estimate, answer: Effect.Effect<A, E>) =>
    Effect.andThen(Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => sends.push(now))), answer).pipe(
      withRetry(once),
      TokenLimiter.estimate(estimate)
    )
  return { send, sends }
}

const fork = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.forkChild(self, { startImmediately: true })

/** No slack: figures are whole. */
const limiter = (options: TokenLimiter.Options) => TokenLimiter.layer({ slack: 0, ...options })

class Answered extends Data.TaggedError("Answered")<
  { readonly status: number; readonly headers: Record<string, string> }
> {}

const left = (name: "requests" | "tokens" | "inputTokens" | "outputTokens") =>
  Effect.map(TokenLimiter.state, (state) => state[name].remaining)

describe("TokenLimiter", () => {
  it.effect("reserves the estimate, and settles what was used: less goes back, more is a debt", () =>
    Effect.gen(function*() {
      const { send } = sending()
      const small = yield* fork(send({ input: 300, output: 200 }, Effect.delay(Effect.succeed(answer(310, 90)), 1)))
      assert.strictEqual(yield* left("tokens"), 500)
      assert.strictEqual((yield* TokenLimiter.state).inFlight, 1)
      yield* TestClock.adjust(1)
      yield* Fiber.join(small)
      assert.closeTo(yield* left("tokens"), 600, 0.1)
      yield* send({ input: 100, output: 0 }, Effect.succeed(answer(100, 700)))
      assert.closeTo(yield* left("tokens"), -200, 0.1)
      assert.strictEqual((yield* TokenLimiter.state).inFlight, 0)
      assert.closeTo(yield* left("requests"), 58, 0.1)
    }).pipe(Effect.provide(limiter({ tokens: 1000, requests: 60 }))))

  it.effect.each([9007199254740991, 1e9])(
    "a usage of %d makes it owe what a window gives, no more",
    (tokens) =>
      Effect.gen(function*() {
        const { send, sends } = sending()
        yield* send({ input: 100, output: 0 }, Effect.succeed(answer(tokens, 0)))
        assert.closeTo(yield* left("tokens"), -1000, 0.1)
        // The next expects what such calls use, which is at most a window: it passes when that is there.
        yield* fork(attempt(Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => sends.push(now)))))
        yield* TestClock.adjust("119 seconds")
        assert.deepStrictEqual(sends, [0])
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(sends, [0, 120_000])
        assert.closeTo(yield* left("tokens"), -1000 + 1000 + 1000 / 60, 20)
      }).pipe(Effect.provide(limiter({ tokens: 1000, maxWait: "10 minutes" })))
  )

  it.effect("a limit that the server states once counts for ten windows", () =>
    Effect.gen(function*() {
      const limit = (given: string) => ({ ...answer(0, 0), headers: { "x-ratelimit-limit-tokens": given } })
      const { send } = sending()
      const limitNow = Effect.map(TokenLimiter.state, ({ tokens }) => tokens.limit)
      yield* send({ input: 0, output: 0 }, Effect.succeed(limit("1")))
      assert.strictEqual(yield* limitNow, 1)
      yield* TestClock.adjust("9 minutes")
      yield* send({ input: 0, output: 0 }, Effect.succeed(limit("1")))
      yield* TestClock.adjust("599 seconds")
      assert.strictEqual(yield* limitNow, 1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* limitNow, 1000)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* left("tokens"), 1000)
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("calls without enough tokens wait in line, however small, and each passes when it can", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      // 1,000 a minute: 100 are refilled in 6 s.
      yield* send(1000, Effect.void)
      yield* fork(send(500, Effect.void))
      yield* fork(send(100, Effect.void))
      yield* fork(send(400, Effect.void))
      assert.strictEqual((yield* TokenLimiter.state).waiting, 3)
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(sends, [0, 30_000, 36_000, 60_000])
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("a refund lets those who wait pass immediately", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      yield* fork(send({ input: 500, output: 500 }, Effect.delay(Effect.succeed(answer(10, 10)), 1000)))
      yield* fork(send(900, Effect.void))
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(sends, [0, 1000])
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("one that needs more than the capacity passes when it is full, and the others wait for it", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      yield* send(2500, Effect.void)
      assert.strictEqual(yield* left("tokens"), -1500)
      yield* fork(send(100, Effect.void))
      yield* fork(send(1200, Effect.void))
      yield* TestClock.adjust("5 minutes")
      // 1,600 are refilled in 96 s, then 1,000 in 60 s more.
      assert.deepStrictEqual(sends, [0, 96_000, 156_000])
    }).pipe(Effect.provide(limiter({ tokens: 1000, maxWait: "1 hour" }))))

  it.effect("requests and tokens are limits of their own, of input and of output too", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      yield* send({ input: 10, output: 10 }, Effect.void)
      yield* fork(send({ input: 10, output: 10 }, Effect.void))
      yield* fork(send({ input: 990, output: 10 }, Effect.void))
      yield* fork(send({ input: 10, output: 495 }, Effect.void))
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(sends, [0, 60_000, 120_000, 180_000])
    }).pipe(Effect.provide(limiter({ requests: 1, inputTokens: 1000, outputTokens: 500, maxWait: "1 hour" }))))

  it.effect("input read from a cache does not count, unless configured to", () =>
    Effect.gen(function*() {
      for (const [cachedInput, expected] of [[undefined, 850], ["free", 850], ["counted", 50]] as const) {
        const used = Effect.gen(function*() {
          yield* sending().send({ input: 900, output: 100 }, Effect.succeed(answer(900, 50, 800)))
          assert.strictEqual(yield* left("tokens"), expected)
        })
        yield* Effect.provide(used, limiter({ tokens: 1000, cachedInput }))
      }
    }))

  const ends: ReadonlyArray<readonly [name: string, end: Effect.Effect<unknown, unknown>, tokens: number]> = [
    ["a success that says nothing counts as expected", Effect.succeed({ id: 1 }), 400],
    ["a throttle gives the tokens back", Effect.fail(new Throttled({ retryAfter: 0 })), 0],
    ["a refusal gives the tokens back", Effect.fail(new Answered({ status: 400, headers: {} })), 1000],
    ["a timeout of the server counts as expected", Effect.fail(new Answered({ status: 408, headers: {} })), 400],
    ["a failure of the server counts as expected", Effect.fail(new Transient()), 400],
    ["a defect counts as expected", Effect.die("bug"), 400],
    ["an interruption counts as expected", Effect.interrupt, 400]
  ]
  for (const [name, end, tokens] of ends) {
    it.effect(name, () =>
      Effect.gen(function*() {
        yield* Effect.exit(sending().send(600, end))
        const { inFlight, requests } = yield* TokenLimiter.state
        assert.strictEqual(yield* left("tokens"), tokens)
        assert.strictEqual(inFlight, 0)
        assert.strictEqual(requests.remaining, tokens === 0 ? 0 : 9)
      }).pipe(Effect.provide(limiter({ tokens: 1000, requests: 10 }))))
  }

  it.effect("without an estimate, it expects what nineteen of twenty calls have used", () =>
    Effect.gen(function*() {
      const { gate, state } = yield* TokenLimiter.make({ slack: 0, tokens: 1_000_000, estimate: { input: 7 } })
      const reserved = Effect.gen(function*() {
        const before = (yield* state).tokens.remaining
        yield* Effect.sync(() =>
          gate.enter({ attempt: 1, nowMillis: 0, context: Context.empty(), hold: (pass) => held.push(pass) })
        )
        return before - (yield* state).tokens.remaining
      })
      const held: Array<SendGate.Pass> = []
      assert.strictEqual(yield* reserved, 1007)
      for (let n = 1; n <= 100; n++) {
        yield* reserved
        held.at(-1)!.settle({
          _tag: "Success",
          value: answer(n, 2 * n),
          error: undefined,
          info: undefined,
          nowMillis: 0
        })
      }
      assert.strictEqual(yield* reserved, 95 + 190)
    }))

  it.effect("a throttle closes it as long as the service asks, a window at most", () =>
    Effect.gen(function*() {
      for (const [retryAfter, at] of [[5000, 5000], [3_600_000, 60_000]] as const) {
        const { send, sends } = sending()
        const closed = Effect.gen(function*() {
          const begin = yield* Clock.currentTimeMillis
          yield* Effect.exit(send(1, Effect.fail(new Throttled({ retryAfter }))))
          yield* fork(send(1, Effect.void))
          yield* TestClock.adjust("2 minutes")
          assert.deepStrictEqual(sends.map((time) => time - begin), [0, at])
        })
        yield* Effect.provide(closed, limiter({ tokens: 1000 }))
      }
    }))

  it.effect("refuses those who would wait too long, and says when to come back", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      yield* send(1600, Effect.void)
      const refusal: unknown = yield* Effect.flip(send(100, Effect.void))
      assert.instanceOf(refusal, TokenLimiter.TokenLimitExceeded)
      assert.strictEqual(refusal.reason, "exceeded")
      assert.deepStrictEqual(refusal.retryAfter, Duration.seconds(42))
      assert.strictEqual(refusal.message, "the token or request limit is reached: try again in 42s")
      assert.strictEqual(Option.getOrThrow(RetryInfo.fromError(refusal)).safety, "No")
      assert.strictEqual(sends.length, 1)
      yield* TestClock.adjust("2 minutes")
      yield* send(1000, Effect.void)
      const first = yield* fork(send(400, Effect.void))
      const second = yield* fork(Effect.flip(send(400, Effect.void)))
      yield* TestClock.adjust("24 seconds")
      assert.isTrue(Exit.isSuccess(first.pollUnsafe()!))
      assert.isUndefined(second.pollUnsafe())
      yield* TestClock.adjust("6 seconds")
      assert.instanceOf(yield* Fiber.join(second), TokenLimiter.TokenLimitExceeded)
      assert.strictEqual((yield* TokenLimiter.state).waiting, 0)
    }).pipe(Effect.provide(limiter({ tokens: 1000, maxWait: "30 seconds" }))))

  it.effect("fails instead of waiting where configured, and when too many wait", () =>
    Effect.gen(function*() {
      const full = Effect.gen(function*() {
        const { send } = sending()
        yield* send(1000, Effect.void)
        return yield* Effect.flip(send(1, Effect.void))
      })
      const exceeded: any = yield* Effect.provide(full, limiter({ tokens: 1000, onExceeded: "fail" }))
      const queue: any = yield* Effect.provide(full, limiter({ tokens: 1000, maxWaiters: 0 }))
      assert.deepStrictEqual([exceeded.reason, queue.reason], ["exceeded", "queue-full"])
      assert.strictEqual(queue.message, "too many sends are waiting for tokens")
    }))

  it.effect("a retry waits no longer than its deadline", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed(10).pipe(RetryPolicy.deadline("1 second"))
      const call = Effect.fail(new Throttled({ retryAfter: 5000 })).pipe(withRetry(policy))
      const fiber = yield* fork(Effect.flip(call))
      yield* TestClock.adjust(1000)
      assert.instanceOf(fiber.pollUnsafe() && (yield* Fiber.join(fiber)), Throttled)
      assert.strictEqual((yield* TokenLimiter.state).waiting, 0)
    }).pipe(Effect.provide(limiter({ tokens: 10_000 }))))

  it.effect("a critical call goes before those who came first, and does not wait for what they need", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      yield* send(1000, Effect.void)
      const large = yield* fork(send(900, Effect.void))
      yield* TestClock.adjust(12_000)
      yield* fork(
        Effect.provideService(send(200, Effect.void), Criticality.CurrentCriticality, "critical")
      )
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(sends, [0, 12_000])
      assert.isUndefined(large.pollUnsafe())
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("is asked before a lone attempt too", () =>
    Effect.gen(function*() {
      yield* attempt(Effect.succeed(answer(10, 20))).pipe(TokenLimiter.estimate(500))
      assert.strictEqual(yield* left("tokens"), 970)
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("whatever interrupts them, calls leave nothing behind: no reservation, no waiter, no lost token", () =>
    Effect.gen(function*() {
      const made = TokenLimiter.make({ slack: 0, tokens: 1000, requests: 100, per: "1 second", maxWait: "10 seconds" })
      let service = yield* made
      const call = Effect.delay(Effect.succeed(answer(100, 50)), 20).pipe(
        withRetry(once),
        TokenLimiter.estimate(600),
        Effect.exit
      )
      const program = Effect.suspend(() =>
        Effect.all([call, call, call], { concurrency: 3 }).pipe(
          Effect.provideService(TokenLimiter.TokenLimiter, service)
        )
      )
      const steps = yield* sweep(program, () =>
        Effect.gen(function*() {
          const { inFlight, tokens, waiting } = yield* service.state
          assert.deepStrictEqual({ inFlight, waiting }, { inFlight: 0, waiting: 0 })
          assert.isAtLeast(tokens.remaining, -800)
          yield* TestClock.adjust(2000)
          assert.strictEqual((yield* service.state).tokens.remaining, 1000)
          const after = yield* fork(Effect.provideService(call, TokenLimiter.TokenLimiter, service))
          yield* TestClock.adjust(20)
          assert.isTrue(Exit.isSuccess(after.pollUnsafe()!))
          service = yield* made
        }))
      assert.isAtLeast(steps, 30)
    }))

  it.effect("takes its options from configuration", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* TokenLimiter.state).tokens, { limit: 5000, remaining: 4900 })
    }).pipe(
      Effect.provide(Layer.provide(
        TokenLimiter.layerConfig({ tokens: Config.Int("TOKENS") }),
        ConfigProvider.layer(ConfigProvider.fromUnknown({ TOKENS: "5000" }))
      ))
    ))

  const refused: ReadonlyArray<[field: string, options: TokenLimiter.Options]> = [
    ["requests", { requests: 0 }],
    ["tokens", { tokens: 1.5 }],
    ["inputTokens", { inputTokens: NaN }],
    ["outputTokens", { outputTokens: -1 }],
    ["per", { per: 0 }],
    ["burst", { burst: "2 minutes" }],
    ["slack", { slack: "1 minute" }],
    ["share", { share: 0 }],
    ["share", { share: 1.1 }],
    ["cachedInput", { cachedInput: "no" as never }],
    ["estimate", { estimate: -1 }],
    ["estimate", { estimate: "many" as never }],
    ["estimate.output", { estimate: { output: Infinity } }],
    ["usage", { usage: 5 as never }],
    ["onExceeded", { onExceeded: "drop" as never }],
    ["maxWait", { maxWait: 0 }],
    ["maxWaiters", { maxWaiters: 0.5 }]
  ]
  for (const [field, options] of refused) {
    it(`refuses an impossible ${field}: ${JSON.stringify(options)}`, () => {
      try {
        TokenLimiter.layer(options)
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        return assert.strictEqual(error.field, field)
      }
      assert.fail("was not refused")
    })
  }

  it("refuses an impossible estimate of a call", () => {
    assert.throws(() => TokenLimiter.estimate(Effect.void, { input: NaN }), /estimate\.input/)
  })

  it.effect("an invalid estimate or usage is ignored", () =>
    Effect.gen(function*() {
      const send = (value: unknown, estimate: unknown) =>
        Effect.succeed(value).pipe(
          withRetry(once),
          Effect.provideService(TokenLimiter.CurrentEstimate, estimate as never)
        )
      yield* send(answer(NaN, -5), { input: NaN, output: "x" })
      yield* send({ usage: "much" }, { input: Infinity })
      const hostile = new Proxy({}, {
        get() {
          throw new Error("no")
        }
      })
      yield* send(hostile, { input: -1 })
      assert.strictEqual(yield* left("tokens"), 10_000 - 3 * 200)
      const thrown = limiter({
        tokens: 10_000,
        estimate: 200,
        usage: () => {
          throw new Error("no")
        }
      })
      yield* Effect.provide(
        Effect.andThen(send({}, 100), Effect.map(left("tokens"), (n) => assert.strictEqual(n, 9900))),
        thrown
      )
    }).pipe(Effect.provide(limiter({ tokens: 10_000, estimate: 200 }))))
})

describe("what headers say", () => {
  const openai = (limit: number, remaining: number) => ({
    "x-ratelimit-limit-tokens": String(limit),
    "x-ratelimit-remaining-tokens": String(remaining)
  })

  it.effect("an unknown limit applies from the first response on", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      assert.strictEqual(yield* left("tokens"), Infinity)
      yield* send(100, Effect.succeed({ ...answer(50, 50), response: { headers: openai(1000, 600) } }))
      assert.deepStrictEqual((yield* TokenLimiter.state).tokens, { limit: 1000, remaining: 600 })
      assert.strictEqual(yield* left("requests"), Infinity)
      yield* send(600, Effect.void)
      yield* fork(send(100, Effect.void))
      yield* TestClock.adjust(6000)
      assert.deepStrictEqual(sends, [0, 0, 6000])
    }).pipe(Effect.provide(limiter({}))))

  it.effect("what others use is seen; overcounted tokens come back; never more than the limit", () =>
    Effect.gen(function*() {
      const { send } = sending()
      const answered = (limit: number, remaining: number) =>
        send(100, Effect.succeed({ ...answer(100, 0), response: { headers: new Headers(openai(limit, remaining)) } }))
      yield* answered(1000, 300)
      assert.strictEqual(yield* left("tokens"), 300)
      yield* answered(1000, 700)
      assert.strictEqual(yield* left("tokens"), 700)
      yield* answered(5000, 4900)
      assert.deepStrictEqual((yield* TokenLimiter.state).tokens, { limit: 1000, remaining: 1000 })
      yield* answered(200, 100)
      assert.deepStrictEqual((yield* TokenLimiter.state).tokens, { limit: 200, remaining: 100 })
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("a slow response neither takes what was refilled since, nor returns what others took since", () =>
    Effect.gen(function*() {
      const { send } = sending()
      const slow = yield* fork(
        send(
          100,
          Effect.delay(Effect.succeed({ ...answer(100, 0), response: { headers: openai(6000, 5900) } }), 30_000)
        )
      )
      yield* send(5800, Effect.void)
      assert.strictEqual(yield* left("tokens"), 100)
      yield* TestClock.adjust(30_000)
      yield* Fiber.join(slow)
      // 5,900 were left and 5,800 have been used since; 3,000 have been refilled.
      assert.strictEqual(yield* left("tokens"), 3100)
    }).pipe(Effect.provide(limiter({ tokens: 6000 }))))

  it.effect("those of a refusal say what is left: others may still pass", () =>
    Effect.gen(function*() {
      const { send, sends } = sending()
      const refusal = new Answered({ status: 429, headers: { ...openai(1000, 200) } })
      yield* Effect.exit(send(600, Effect.fail(refusal)))
      yield* send(200, Effect.void)
      yield* fork(send(100, Effect.void))
      yield* TestClock.adjust(6000)
      assert.deepStrictEqual(sends, [0, 0, 6000])
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("of Anthropic: requests, input and output", () =>
    Effect.gen(function*() {
      const headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-input-tokens-limit": "30000",
        "anthropic-ratelimit-input-tokens-remaining": "28000",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        "anthropic-ratelimit-output-tokens-remaining": "7000",
        "anthropic-ratelimit-tokens-limit": "38000",
        "anthropic-ratelimit-tokens-remaining": "35000"
      }
      const usage = {
        input_tokens: 1500,
        cache_read_input_tokens: 9000,
        cache_creation_input_tokens: 500,
        output_tokens: 1000
      }
      yield* sending().send({ input: 2000, output: 1000 }, Effect.succeed({ data: { usage }, response: { headers } }))
      assert.deepStrictEqual(yield* TokenLimiter.state, {
        requests: { limit: 50, remaining: 49 },
        inputTokens: { limit: 30_000, remaining: 28_000 },
        outputTokens: { limit: 8000, remaining: 7000 },
        tokens: { limit: 38_000, remaining: 35_000 },
        inFlight: 0,
        waiting: 0
      })
    }).pipe(Effect.provide(limiter({}))))

  it.effect("invalid values in them change nothing", () =>
    Effect.gen(function*() {
      for (const value of ["", "-1", "1e3", "many", "1,2", "9".repeat(400)]) {
        const headers = { "x-ratelimit-limit-tokens": value, "x-ratelimit-remaining-tokens": value }
        yield* sending().send(0, Effect.succeed({ headers }))
      }
      yield* sending().send(0, Effect.succeed({ headers: openai(0, 1000) }))
      assert.deepStrictEqual((yield* TokenLimiter.state).tokens, { limit: 1000, remaining: 1000 })
    }).pipe(Effect.provide(limiter({ tokens: 1000 }))))

  it.effect("a share of the limits is kept", () =>
    Effect.gen(function*() {
      yield* sending().send(100, Effect.succeed({ ...answer(100, 0), headers: openai(1000, 900) }))
      assert.deepStrictEqual((yield* TokenLimiter.state).tokens, { limit: 250, remaining: 150 })
    }).pipe(Effect.provide(limiter({ share: 0.25 }))))
})

const usages: ReadonlyArray<readonly [name: string, value: unknown, usage: TokenLimiter.Usage | undefined]> = [
  ["a chat completion", answer(100, 20, 30), { input: 70, cached: 30, output: 20 }],
  ["the last chunk of one", { choices: [], ...answer(100, 20) }, { input: 100, cached: 0, output: 20 }],
  ["a chunk before", { choices: [{}], usage: null }, undefined],
  ["what withResponse() gives", { data: answer(1, 2), response: new Response() }, { input: 1, cached: 0, output: 2 }],
  ["embeddings", { usage: { prompt_tokens: 8, total_tokens: 8 } }, { input: 8, cached: undefined, output: 0 }],
  ["embeddings of Effect", { usage: { inputTokens: 8 } }, { input: 8, cached: undefined, output: 0 }],
  [
    "a response",
    { usage: { input_tokens: 50, input_tokens_details: { cached_tokens: 40 }, output_tokens: 9 } },
    { input: 10, cached: 40, output: 9 }
  ],
  [
    "the event that completes one",
    { type: "response.completed", response: { usage: { input_tokens: 50, output_tokens: 9 } } },
    { input: 50, cached: undefined, output: 9 }
  ],
  [
    "a message",
    { usage: { input_tokens: 5, cache_creation_input_tokens: 7, cache_read_input_tokens: 90, output_tokens: 3 } },
    { input: 12, cached: 90, output: 3 }
  ],
  [
    "a message, without a cache",
    { usage: { input_tokens: 5, cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens: 3 } },
    { input: 5, cached: undefined, output: 3 }
  ],
  [
    "the start of one",
    { type: "message_start", message: { usage: { input_tokens: 5, output_tokens: 1 } } },
    { input: 5, cached: undefined, output: undefined }
  ],
  [
    "its end",
    { type: "message_delta", usage: { output_tokens: 30 } },
    { input: undefined, cached: undefined, output: 30 }
  ],
  [
    "its end, without an input",
    { type: "message_delta", usage: { input_tokens: null, cache_creation_input_tokens: 0, output_tokens: 30 } },
    { input: undefined, cached: undefined, output: 30 }
  ],
  [
    "a model of Effect",
    { usage: { inputTokens: { uncached: 5, total: 25, cacheRead: 15, cacheWrite: 5 }, outputTokens: { total: 8 } } },
    { input: 10, cached: 15, output: 8 }
  ],
  [
    "one that says only what is not cached",
    { usage: { inputTokens: { uncached: 5 }, outputTokens: {} } },
    { input: 5, cached: undefined, output: undefined }
  ],
  [
    "the AI SDK",
    {
      finalStep: {},
      usage: { inputTokens: 100, outputTokens: 200 },
      totalUsage: {
        inputTokens: 1000,
        inputTokenDetails: { noCacheTokens: 600, cacheReadTokens: 300, cacheWriteTokens: 100 },
        outputTokens: 4000,
        outputTokenDetails: { textTokens: 3000, reasoningTokens: 1000 }
      }
    },
    { input: 700, cached: 300, output: 4000 }
  ],
  [
    "the AI SDK before 6",
    { usage: { inputTokens: 1000, outputTokens: 4000, cachedInputTokens: 300 } },
    { input: 700, cached: 300, output: 4000 }
  ],
  [
    "the AI SDK, of a service that says nothing of its output",
    { usage: { inputTokens: 1000, outputTokens: undefined } },
    { input: 1000, cached: undefined, output: undefined }
  ],
  ["one step of several", { type: "finish-step", usage: { inputTokens: 10, outputTokens: 4 } }, undefined],
  [
    "all of them",
    { type: "finish", totalUsage: { inputTokens: 1000, outputTokens: 4000 } },
    { input: 1000, cached: undefined, output: 4000 }
  ],
  ["no answer of a model", { id: 1 }, undefined],
  ["nothing", undefined, undefined],
  ["a usage that says nothing", { usage: {} }, undefined]
]

it.effect("a usage that is not whole is not counted: the estimate stays", () =>
  Effect.gen(function*() {
    const send = (value: unknown) =>
      Effect.succeed(value).pipe(withRetry(once), TokenLimiter.estimate({ input: 300, output: 200 }))
    yield* send({ usage: { inputTokens: 1000, outputTokens: undefined } })
    yield* send({ type: "message_delta", usage: { output_tokens: 900 } })
    assert.strictEqual(yield* left("tokens"), 9000)
    yield* send({ usage: { prompt_tokens: 8, total_tokens: 8 } })
    assert.strictEqual(yield* left("tokens"), 8992)
  }).pipe(Effect.provide(limiter({ tokens: 10_000 }))))

describe("usageOf", () => {
  it.each(["consumeStream", "partialObjectStream"])("reads nothing of a stream of the AI SDK: %s", (key) => {
    const stream = {
      [key]: undefined,
      get usage(): never {
        throw new Error("a promise that nothing holds")
      }
    }
    const value = {
      get usage() {
        reads++
        return { input_tokens: 1, output_tokens: 1 }
      }
    }
    let reads = 0
    assert.isUndefined(TokenLimiter.usageOf(stream))
    assert.isUndefined(TokenLimiter.usageOf(Object.assign(Object.create(value), { [key]: undefined })))
    assert.strictEqual(reads, 0)
    assert.strictEqual(TokenLimiter.usageOf(value)?.input, 1)
  })

  for (const [name, value, usage] of usages) {
    it(name, () => {
      assert.deepStrictEqual(TokenLimiter.usageOf(value), usage)
    })
  }
})

const gates = {
  "a token limiter": [{ requests: 3, per: "1 second", maxWait: "1 hour" }, {}],
  "one that lets nobody wait": [{ requests: 3, onExceeded: "fail" }, { onExceeded: "refuses" }],
  "one without limits": [{}, { onExceeded: "never" }]
} satisfies Record<string, readonly [TokenLimiter.Options, SendGateSuite.Options]>

describe.each(Object.entries(gates))("the contract of a gate: %s", (_, [options, suite]) => {
  const make = Effect.map(TokenLimiter.make(options), ({ gate }) => gate)
  for (const law of SendGateSuite.laws(make, suite)) it.effect(law.name, () => thinned(5)(law.run))
})

describe("laws", () => {
  const Calls = Schema.Array(Schema.Struct({
    gap: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9000 })),
    estimate: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1500 })),
    /** What is used, in parts of the estimate. */
    part: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 })),
    takes: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20_000 })),
    end: Schema.Literals(["success", "failure", "interrupted"])
  })).check(Schema.isMaxLength(40))

  interface Event {
    readonly at: number
    /** What a send that leaves reserves; nothing for one that ends. */
    readonly estimate: number
    /** What a send that ends gives back. */
    readonly refund: number
    readonly used: number
  }

  /** Runs calls, and reports each send that leaves or ends, in order. */
  const run = (calls: typeof Calls.Type, part: (of: (typeof Calls.Type)[number]) => number) =>
    Effect.gen(function*() {
      const events: Array<Event> = []
      const fibers = yield* Effect.forEach(calls, (call) =>
        Effect.gen(function*() {
          yield* TestClock.adjust(call.gap)
          const { end, estimate, takes } = call
          const used = end === "success" ? Math.round(estimate * part(call)) : estimate
          const send = Effect.gen(function*() {
            events.push({ at: yield* Clock.currentTimeMillis, estimate, refund: 0, used })
            yield* Effect.sleep(takes)
            events.push({ at: yield* Clock.currentTimeMillis, estimate: 0, refund: estimate - used, used: 0 })
            if (end === "failure") return yield* new Transient()
            if (end === "interrupted") return yield* Effect.interrupt
            return answer(used, 0)
          })
          return yield* fork(send.pipe(withRetry(once), TokenLimiter.estimate(estimate), Effect.exit))
        }))
      yield* TestClock.adjust("10 hours")
      for (const fiber of fibers) assert.isDefined(fiber.pollUnsafe())
      return events
    })

  const options = { slack: 0, tokens: 1000, maxWait: "9 hours" } as const
  const perMilli = 1000 / 60_000

  it.effect.prop(
    "no window admits more than its refill and a full bucket",
    [Calls],
    ([calls]) =>
      Effect.gen(function*() {
        const sent = (yield* run(calls, () => 1)).filter(({ estimate }) => estimate > 0)
        for (let from = 0; from < sent.length; from++) {
          let sum = 0
          for (let to = from; to < sent.length; to++) {
            // A send larger than the bucket passes when the bucket is full: it is the last of its window.
            const before = sum
            sum += sent[to]!.estimate
            const allowed = 1000 + (sent[to]!.at - sent[from]!.at) * perMilli
            assert.isAtMost(before + Math.min(1000, sent[to]!.estimate), allowed + 1e-6)
          }
        }
      }).pipe(Effect.provide(TokenLimiter.layer(options)))
  )

  it.effect.prop(
    "a server with the same limits refuses nothing that is admitted",
    [Calls],
    ([calls]) =>
      Effect.gen(function*() {
        let level = 1000
        let last = 0
        for (const { at, estimate, refund } of yield* run(calls, ({ part }) => part / 20)) {
          level = Math.min(1000, level + (at - last) * perMilli)
          last = at
          if (estimate > 0) assert.isAtLeast(level + 1e-6, Math.min(1000, estimate))
          level = Math.min(1000, level - estimate + refund)
        }
      }).pipe(Effect.provide(TokenLimiter.layer(options)))
  )

  it.effect.prop(
    "tokens are conserved: what is left is the refill minus what was used",
    [Calls],
    ([calls]) =>
      Effect.gen(function*() {
        const { state } = yield* TokenLimiter.TokenLimiter
        // A bucket so large that it is never full again.
        yield* sending().send(500_000, Effect.void)
        const begin = (yield* state).tokens.remaining
        const from = yield* Clock.currentTimeMillis
        const sent = yield* run(calls, ({ part }) => part / 10)
        const used = sent.reduce((sum, call) => sum + call.used, 0)
        const flown = ((yield* Clock.currentTimeMillis) - from) * 1e6 / 3.6e9
        const { inFlight, tokens } = yield* state
        assert.strictEqual(sent.length, 2 * calls.length)
        assert.strictEqual(inFlight, 0)
        assert.closeTo(tokens.remaining, begin + flown - used, 1e-3)
      }).pipe(
        Effect.provide(TokenLimiter.layer({ slack: 0, tokens: 1_000_000, per: "1000 hours", maxWait: "9 hours" }))
      )
  )
})
