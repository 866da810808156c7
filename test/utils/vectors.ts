import { assert } from "@effect/vitest"
import { RetryDecision, RetryObserver, type RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { constantRandom } from "./call.ts"

/** Runs with randomness that always gives the same number. */
export const withRandom = (value: number) => Effect.provideService(Random.Random, constantRandom(value))

/** Published seconds in whole milliseconds. */
export const millis = (seconds: number): number => Math.round(seconds * 1000)

export interface SdkError {
  readonly name: string
  readonly $fault: "client" | "server"
  readonly $metadata: { readonly httpStatusCode: number }
}

/** A response, or what the network did instead; 200 is a success. */
export interface Wire {
  readonly status?: number
  readonly code?: string
  readonly trait?: { readonly throttling?: boolean }
  readonly retryAfterMs?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly message?: string
  readonly network?: "reset" | "timeout"
}

/** What Node and `@smithy` raise without an answer. */
const networkErrors = {
  reset: () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
  timeout: () => Object.assign(new Error("timed out"), { name: "TimeoutError" })
}

/** An error of the shape that the AWS SDK for JavaScript raises. */
export const sdkError = (wire: Wire): SdkError => {
  const { code = "UnknownError", message, network, retryAfterMs, status = 0, trait } = wire
  if (network !== undefined) return networkErrors[network]() as unknown as SdkError
  const hint = retryAfterMs === undefined ? undefined : { "x-amz-retry-after": String(retryAfterMs) }
  const headers = wire.headers ?? hint
  return {
    name: code,
    $fault: status >= 500 ? "server" : "client",
    $metadata: { httpStatusCode: status },
    ...(message !== undefined && { message }),
    ...(trait !== undefined && { $retryable: trait }),
    ...(headers !== undefined && { $response: { headers } })
  }
}

/** What a response leads to. `quota` is the balance once it is booked, `delay` is in seconds. */
type Expected =
  | { readonly outcome: "retry"; readonly quota: number; readonly delay: number }
  | { readonly outcome: "success"; readonly quota: number }
  | { readonly outcome: "max-attempts" | "quota-exhausted"; readonly quota: number; readonly delay?: number }

export interface Response extends Wire {
  readonly expected: Expected
}

/** One published case. A success ends a call; what follows it belongs to the next call on the same quota. */
export interface StandardVector<Given> {
  readonly name: string
  readonly given: Given & { readonly tokens?: number }
  readonly responses: ReadonlyArray<Response>
}

/** A policy as the AWS modes make it; one that asks for less is one too. */
export type Policy = RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>

type Call = Effect.Effect<number, SdkError>

/** Runs a call with a policy, and says why retrying stopped. */
export interface Driver {
  readonly name: string
  readonly run: (
    call: Call,
    policy: Policy,
    told: (decision: RetryDecision.RetryDecision) => void
  ) => Effect.Effect<number, SdkError, RetryQuota.RetryQuota>
}

const observing = (observer: RetryObserver.RetryObserver) =>
  Effect.provideService(RetryObserver.CurrentObserver, observer)

/** The ways to run a call: all decide the same. */
export const drivers: ReadonlyArray<Driver> = [
  {
    name: "Effect.retry",
    run: (call, policy, told) => Effect.retry(call, policy).pipe(observing({ onStop: told }))
  },
  {
    name: "Effect.retryOrElse",
    run: (call, policy, told) =>
      Effect.retryOrElse(call, policy, (error, output) => {
        told(output)
        return Effect.fail(error)
      })
  },
  {
    name: "withRetry",
    run: (call, policy, told) => withRetry(call, policy).pipe(observing({ onStop: told }))
  },
  {
    name: "withRetry, attempts observed",
    run: (call, policy, told) => withRetry(call, policy).pipe(observing({ onStop: told, onAttempt: () => {} }))
  }
]

/** A call that gets the responses in turn, and takes note of what it sent when. */
export const scriptedCall = (responses: ReadonlyArray<Wire>) => {
  const errors = responses.map(sdkError)
  const sentAt: Array<number> = []
  const call: Call = Effect.suspend(() =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const send = sentAt.push(now) - 1
      const response = responses[send]
      if (response === undefined) return Effect.die(new Error(`no response for send ${send + 1}`))
      return response.status === 200 ? Effect.succeed(200) : Effect.fail(errors[send]!)
    })
  )
  return { call, errors, sentAt }
}

interface Play {
  readonly script: ReturnType<typeof scriptedCall>
  readonly fiber: Fiber.Fiber<number, SdkError>
  /** Why calls stopped, so far. */
  readonly stops: ReadonlyArray<RetryDecision.RetryDecision>
  readonly stopsBefore: number
  /** The responses of the calls before this one. */
  readonly first: number
}

/** Lets `delayMillis` pass and checks `waiting` at the beginning and 1 ms before the end. */
const passes = (delayMillis: number, waiting: Effect.Effect<void, never, RetryQuota.RetryQuota>) =>
  Effect.gen(function*() {
    if (delayMillis === 0) return
    yield* waiting
    yield* TestClock.adjust(delayMillis - 1)
    yield* waiting
    yield* TestClock.adjust(1)
  })

const retries = ({ fiber, script, stops, stopsBefore }: Play, send: number, quota: number, delayMillis: number) =>
  Effect.gen(function*() {
    yield* passes(
      delayMillis,
      Effect.gen(function*() {
        assert.isUndefined(fiber.pollUnsafe(), `waits after response ${send + 1}`)
        assert.strictEqual(stops.length, stopsBefore)
        assert.strictEqual(script.sentAt.length, send + 1, `has not sent again after response ${send + 1}`)
        assert.strictEqual(yield* RetryQuota.balance, quota, `balance after response ${send + 1}`)
      })
    )
    const now = yield* Clock.currentTimeMillis
    assert.strictEqual(script.sentAt[send + 1], now, `sends again ${delayMillis} ms after response ${send + 1}`)
  })

const succeeds = ({ fiber, stops, stopsBefore }: Play, send: number, quota: number) =>
  Effect.gen(function*() {
    assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed(200))
    assert.strictEqual(stops.length, stopsBefore)
    assert.strictEqual(yield* RetryQuota.balance, quota, `balance after response ${send + 1}`)
  })

const stopsWith = (
  { fiber, first, script, stops, stopsBefore }: Play,
  send: number,
  { delay = 0, outcome, quota }: Extract<Expected, { readonly outcome: RetryDecision.StopReason }>
) =>
  Effect.gen(function*() {
    yield* passes(millis(delay), Effect.sync(() => assert.isUndefined(fiber.pollUnsafe(), "is held back")))
    const exit = fiber.pollUnsafe()
    assert.isTrue(exit !== undefined && Exit.isFailure(exit), `has failed ${delay} s after response ${send + 1}`)
    assert.strictEqual(yield* Effect.flip(exit as Exit.Exit<number, SdkError>), script.errors[send])
    assert.strictEqual(stops.length, stopsBefore + 1)
    const stopped = stops[stopsBefore]
    assert.isTrue(RetryDecision.isStop(stopped))
    const { attempts, delayMillis, reason } = stopped as RetryDecision.Stop
    assert.deepStrictEqual([reason, attempts, delayMillis], [outcome, send + 1 - first, millis(delay)])
    assert.strictEqual(yield* RetryQuota.balance, quota, `balance after response ${send + 1}`)
  })

/** Follows one call from its first response to its last, and returns how many responses it took so far. */
const follow = (play: Play, responses: ReadonlyArray<Response>) =>
  Effect.gen(function*() {
    for (let send = play.first; send < responses.length; send++) {
      const { expected } = responses[send]!
      assert.strictEqual(play.script.sentAt.length, send + 1)
      switch (expected.outcome) {
        case "retry":
          yield* retries(play, send, expected.quota, millis(expected.delay))
          break
        case "success":
          yield* succeeds(play, send, expected.quota)
          return send + 1
        default:
          yield* stopsWith(play, send, expected)
          return send + 1
      }
    }
    return assert.fail("the responses end in the middle of a call")
  })

/** Plays a case on the quota of the context, which has `tokens`, with random values that are all the same. */
export const playWith = (
  { random, responses, tokens }: {
    readonly random: number
    readonly responses: ReadonlyArray<Response>
    readonly tokens: number
  },
  policy: Policy,
  driver: Driver
) =>
  Effect.gen(function*() {
    const script = scriptedCall(responses)
    const stops: Array<RetryDecision.RetryDecision> = []
    const program = driver.run(script.call, policy, (decision) => stops.push(decision)).pipe(withRandom(random))
    assert.strictEqual(yield* RetryQuota.balance, tokens)
    let next = 0
    while (next < responses.length) {
      const stopsBefore = stops.length
      const fiber = yield* Effect.forkChild(program, { startImmediately: true })
      next = yield* follow({ script, fiber, stops, stopsBefore, first: next }, responses)
    }
    yield* TestClock.adjust("1 hour")
    assert.strictEqual(script.sentAt.length, responses.length, "sends nothing more")
  })

/** The options of a mode that a published case gives, without the rest of what it gives. */
export const optionsOf = <Options extends object>(
  { dynamoDB: _, tokens: __, ...options }: Options & { readonly dynamoDB?: true; readonly tokens?: number }
) => options

/** Plays a published case: after every response the outcome, the balance, and the delay to the millisecond. */
export const playVector = <Given>(vector: StandardVector<Given>, policy: Policy, driver: Driver) => {
  const { given: { tokens = 500 }, responses } = vector
  return playWith({ responses, tokens, random: 1 }, policy, driver).pipe(
    Effect.provide(RetryQuota.layer({ capacity: 500, initial: tokens }))
  )
}

/** The delays in milliseconds that a policy, run as a schedule, gives before its first `count` retries. */
export const steppedDelays = (policy: Policy, count: number, error: SdkError) =>
  Effect.gen(function*() {
    const step = yield* Schedule.toStep(policy)
    const delays: Array<number> = []
    while (delays.length < count) {
      const [, delay] = yield* step(0, error as SdkError)
      delays.push(Duration.toMillis(delay))
    }
    return delays
  })

/** The milliseconds that pass between the sends of a call that always fails, retried `count` times. */
export const sentDelays = (policy: Policy, count: number, error: SdkError) =>
  Effect.gen(function*() {
    const sentAt: Array<number> = []
    const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      sentAt.push(now)
      return sentAt.length > count ? Effect.void : Effect.fail(error)
    })
    const fiber = yield* Effect.forkChild(Effect.retry(call, policy), { startImmediately: true })
    yield* TestClock.adjust("1 day")
    assert.deepStrictEqual(fiber.pollUnsafe(), Exit.void)
    return sentAt.slice(1).map((at, send) => at - sentAt[send]!)
  })

/** Why retrying stopped, in the words of the tables. */
const outcomes: { readonly [Reason in RetryDecision.StopReason]?: string } = {
  final: "not-retryable",
  "unknown-error": "not-retryable",
  schedule: "stopped"
}

/** How long a call waited before each retry, and how it ended; `errors` are its outcomes in turn, then it succeeds. */
export const played = (driver: Driver, policy: Policy, errors: ReadonlyArray<unknown>) =>
  Effect.gen(function*() {
    const sentAt: Array<number> = []
    let outcome = "success"
    const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const send = sentAt.push(now) - 1
      return send < errors.length ? Effect.fail(errors[send] as SdkError) : Effect.succeed(200)
    })
    const run = driver.run(call, policy, (decision) => {
      if (RetryDecision.isStop(decision)) outcome = outcomes[decision.reason] ?? decision.reason
    })
    const fiber = yield* Effect.forkChild(Effect.exit(run), { startImmediately: true })
    yield* TestClock.adjust("1000 days")
    assert.isDefined(fiber.pollUnsafe())
    return { delays: sentAt.slice(1).map((at, send) => at - sentAt[send]!), outcome }
  }).pipe(Effect.provide(RetryQuota.layer()))
