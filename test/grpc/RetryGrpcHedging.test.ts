import { assert, describe, it } from "@effect/vitest"
import { Backoff, Hedge, RetryPolicy, type RetryQuotaStore, SendGate, withRetry } from "effect-retry"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"

const unlimited: RetryQuotaStore.RetryQuotaStore = {
  capacity: Infinity,
  successIncrement: 0,
  firstAttemptCost: 0,
  onExceeded: "stop",
  reserve: (cost) => ({ cost, giveBack: () => true, spend: () => true }),
  deposit: () => {},
  balance: () => Infinity
}

const failure = (code: number, pushback?: string) =>
  Object.assign(new Error(String(code)), {
    code,
    details: "",
    metadata: { get: (key: string) => pushback !== undefined && key === "grpc-retry-pushback-ms" ? [pushback] : [] }
  })

/** How a send goes: after this many milliseconds it succeeds, or fails with a status and perhaps a pushback. */
type Turn = readonly [millis: number, code?: number, pushback?: string]

interface Played {
  readonly policy: RetryGrpc.HedgingPolicy
  readonly turns: ReadonlyArray<Turn>
  readonly budget?: RetryQuotaStore.RetryQuotaStore
  readonly gate?: SendGate.SendGate
  readonly millis?: number
}

class Gate extends SendGate.Service<Gate>()("test/RetryGrpcHedging/Gate") {}

const open: SendGate.SendGate = { order: 1, enter: (send) => send.hold({ settle: () => {}, cancel: () => {} }) }

const played = ({ budget = unlimited, gate = open, millis = 3000, policy, turns }: Played) =>
  Effect.gen(function*() {
    const at: Array<number> = []
    const previous: Array<number> = []
    const call = RetryGrpc.unary<number>((attempt, callback) => {
      const [after, code, pushback] = turns[Math.min(at.length, turns.length - 1)]!
      const index = at.push(now())
      previous.push(attempt.previousAttempts)
      const timer = later(after, () => code === undefined ? callback(null, index) : callback(failure(code, pushback)))
      return { cancel: timer }
    })
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const later = (after: number, run: () => void) => {
      const fiber = Effect.runFork(
        Effect.provideService(Effect.andThen(Effect.sleep(after), Effect.sync(run)), Clock.Clock, clock)
      )
      return () => fiber.interruptUnsafe()
    }
    const fiber = yield* Effect.forkChild(call.pipe(RetryGrpc.hedged(policy), Effect.provideService(Gate, gate)), {
      startImmediately: true
    })
    const step = millis / 600
    for (let time = 0; time < millis; time += step) yield* TestClock.adjust(step)
    return { at, previous, exit: fiber.pollUnsafe() }
  }).pipe(Effect.provide(Hedge.layer({ budget })))

const codeOf = (exit: Exit.Exit<number, RetryGrpc.GrpcError> | undefined) =>
  exit === undefined
    ? "open"
    : Exit.isSuccess(exit)
    ? `send ${exit.value}`
    : exit.cause.reasons.map((reason) => reason._tag === "Fail" ? reason.error.code : reason._tag)[0]

// Source: grpc/proposal A6-client-retries.md, its example of a service config.
describe("the timelines of proposal A6", () => {
  it.effect("hedgingDelay 0.5s, 4 attempts, no answer: sends at 0, 500, 1,000, 1,500", () =>
    Effect.gen(function*() {
      const policy = {
        maxAttempts: 4,
        hedgingDelay: "0.5s",
        nonFatalStatusCodes: ["UNAVAILABLE", "INTERNAL", "ABORTED"]
      } as const
      const { at, exit, previous } = yield* played({ policy, turns: [[60_000]] })
      assert.deepStrictEqual([at, exit], [[0, 500, 1000, 1500], undefined])
      assert.deepStrictEqual(previous, [0, 1, 2, 3])
    }))

  // Source: grpc-java RetriableStreamTest, which has no limit of 5: `Hedge.hedged` takes up to 10.
  it.effect("6 attempts, 100 seconds: sends at 0, 100, 200, 300, 400, 500", () =>
    Effect.gen(function*() {
      const at: Array<number> = []
      const send = Effect.andThen(Effect.map(Clock.currentTimeMillis, (now) => void at.push(now / 1000)), Effect.never)
      yield* Effect.forkChild(Hedge.hedged(send, { after: "100 seconds", atMost: 5 }), { startImmediately: true })
      yield* TestClock.adjust("20 minutes")
      assert.deepStrictEqual(at, [0, 100, 200, 300, 400, 500])
    }).pipe(Effect.provide(Hedge.layer({ budget: unlimited }))))
})

it.effect("a retry says how many sends came before, hedges included", () =>
  Effect.gen(function*() {
    const previous: Array<number> = []
    const call = RetryGrpc.unary<string>((attempt, callback) => {
      callback(previous.push(attempt.previousAttempts) < 6 ? failure(14) : null, "ok")
      return { cancel: () => {} }
    })
    const fixed = Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)
    const policy = { maxAttempts: 2, hedgingDelay: "1s", nonFatalStatusCodes: [14] }
    const fiber = yield* Effect.forkChild(call.pipe(RetryGrpc.hedged(policy), withRetry(fixed)), {
      startImmediately: true
    })
    yield* TestClock.adjust(100)
    assert.deepStrictEqual([previous, fiber.pollUnsafe()], [[0, 1, 2, 3, 4, 5], Exit.succeed("ok")])
  }).pipe(Effect.provide(Hedge.layer({ budget: unlimited }))))

describe("a send that fails in its first step", () => {
  it.effect("waits as long as its pushback says", () =>
    Effect.gen(function*() {
      const at: Array<number> = []
      const send = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        at.push(now) === 1 ? Effect.fail(failure(14, "500")) : Effect.succeed(at.length))
      const hedged = send.pipe(RetryGrpc.hedged({ maxAttempts: 3, nonFatalStatusCodes: ["UNAVAILABLE"] }))
      const fiber = yield* Effect.forkChild(hedged, { startImmediately: true })
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([at, fiber.pollUnsafe()], [[0, 500], Exit.succeed(2)])
    }).pipe(Effect.provide(Hedge.layer({ budget: unlimited }))))
})

/** The throttle of A6 as a budget: each failed send takes one, a hedge passes while more than half is left. */
const throttle = (maxTokens: number) => {
  const tokens = [maxTokens]
  const fails = () => void tokens.push(Math.max(0, tokens.at(-1)! - 1))
  const budget: RetryQuotaStore.RetryQuotaStore = {
    ...unlimited,
    reserve: (cost, clock) => tokens.at(-1)! > maxTokens / 2 ? unlimited.reserve(cost, clock) : undefined
  }
  const gate: SendGate.SendGate = {
    order: 1,
    enter: (send) => send.hold({ settle: ({ _tag }) => _tag === "Failure" ? fails() : undefined, cancel: () => {} })
  }
  return { tokens, budget, gate, fails }
}

// Source: grpc-java RetriableStreamTest, maxTokens 4.
describe("a throttle that hedges and other calls use up", () => {
  const policy = { maxAttempts: 5, hedgingDelay: "100 seconds", nonFatalStatusCodes: [14] }

  it.effect("two sends fail: the third is not sent, and the call fails", () =>
    Effect.gen(function*() {
      const { budget, gate, tokens } = throttle(4)
      const turns: ReadonlyArray<Turn> = [[100_000, 14], [50_000, 14]]
      const { at, exit } = yield* played({ policy, turns, budget, gate, millis: 600_000 })
      assert.deepStrictEqual([at, tokens, codeOf(exit)], [[0, 100_000], [4, 3, 2], 14])
    }))

  it.effect("one fails here and one elsewhere: nothing more is sent, and sends in flight continue", () =>
    Effect.gen(function*() {
      const { budget, fails, gate } = throttle(4)
      const turns: ReadonlyArray<Turn> = [[100_000, 14], [300_000]]
      yield* Effect.forkChild(Effect.delay(Effect.sync(fails), 150_000))
      const { at, exit } = yield* played({ policy, turns, budget, gate, millis: 600_000 })
      assert.deepStrictEqual([at, codeOf(exit)], [[0, 100_000], "send 2"])
    }))
})

// Source: grpc-node packages/grpc-js/test/test-retry.ts, its hedging cases, without a delay: all are sent immediately.
describe("the cases of grpc-js", () => {
  const rows: ReadonlyArray<
    [name: string, maxAttempts: number, fails: number, code: number, nonFatal: ReadonlyArray<string>, ends: unknown]
  > = [
    ["two retryable failures, then a success", 3, 2, 8, ["RESOURCE_EXHAUSTED"], "send 3"],
    ["as many failures as attempts", 3, 4, 8, ["RESOURCE_EXHAUSTED"], 8],
    ["a fatal status", 3, 2, 5, ["RESOURCE_EXHAUSTED"], 5],
    ["ten attempts are five", 10, 6, 8, ["RESOURCE_EXHAUSTED"], 8]
  ]
  for (const [name, maxAttempts, fails, code, nonFatalStatusCodes, ends] of rows) {
    for (const hedgingDelay of [0, "1s"] as const) {
      it.effect(`${name}, after ${hedgingDelay}`, () =>
        Effect.gen(function*() {
          const turns = Array.from({ length: fails + 1 }, (_, n): Turn => n < fails ? [10, code] : [10])
          const policy = { maxAttempts, hedgingDelay, nonFatalStatusCodes }
          const { at, exit } = yield* played({ policy, turns })
          assert.strictEqual(codeOf(exit), ends)
          assert.isAtMost(at.length, 5)
        }))
    }
  }
})

describe("the rules of proposal A6", () => {
  const policy = { maxAttempts: 3, hedgingDelay: "500 millis", nonFatalStatusCodes: ["unavailable"] } as const
  const rows: ReadonlyArray<[name: string, turns: ReadonlyArray<Turn>, at: ReadonlyArray<number>, ends: unknown]> = [
    ["a non-fatal status cuts the delay short", [[100, 14], [10]], [0, 100], "send 2"],
    ["a fatal one cancels all", [[2000], [10, 3]], [0, 500], 3],
    ["a pushback sets the time of the next", [[2000], [10, 14, "200"], [10]], [0, 500, 710], "send 3"],
    ["also when nothing is in flight", [[100, 14, "200"], [10]], [0, 300], "send 2"],
    ["a pushback of 0 is now", [[100, 14, "0"], [10]], [0, 100], "send 2"],
    ["a negative one ends hedging, and what is in flight goes on", [[2000], [10, 14, "-1"]], [0, 500], "send 1"],
    ["so does one that is not a number", [[2000], [10, 14, "soon"]], [0, 500], "send 1"],
    ["a negative one with nothing in flight is the end", [[100, 14, "-1"]], [0], 14],
    ["on a fatal status it changes nothing", [[2000], [10, 3, "200"]], [0, 500], 3],
    ["when all have failed, nothing more is sent", [[10, 14], [10, 14], [10, 14]], [0, 10, 20], 14]
  ]
  for (const [name, turns, at, ends] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const result = yield* played({ policy, turns })
        assert.deepStrictEqual([result.at, codeOf(result.exit)], [at, ends])
      }))
  }

  const refused: ReadonlyArray<[field: string, policy: any]> = [
    ["maxAttempts", { maxAttempts: 1 }],
    ["maxAttempts", { maxAttempts: 2.5 }],
    ["hedgingDelay", { maxAttempts: 2, hedgingDelay: "-1s" }],
    ["hedgingDelay", { maxAttempts: 2, hedgingDelay: Number.NaN }],
    ["nonFatalStatusCodes", { maxAttempts: 2, nonFatalStatusCodes: ["BUSY"] }],
    ["nonFatalStatusCodes", { maxAttempts: 2, nonFatalStatusCodes: [17] }],
    ["nonFatalStatusCodes", { maxAttempts: 2, nonFatalStatusCodes: 14 }]
  ]
  for (const [field, policy] of refused) {
    it(`an impossible ${field} is refused: ${JSON.stringify(policy)}`, () => {
      assert.throws(() => RetryGrpc.hedged(policy), new RegExp(field))
    })
  }
})
