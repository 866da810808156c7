import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  Backoff,
  InvalidOption,
  RetryClassifier,
  type RetryDecision,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota
} from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Scheduler from "effect/Scheduler"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { constantRandom } from "../utils/call.ts"

type Answer =
  | number
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | { readonly error: unknown }
  | "never"

interface Sent {
  readonly at: number
  readonly request: HttpClientRequest.HttpClientRequest
  readonly signal: AbortSignal
}

/** A client that gives each of the answers in turn, the last one forever. */
const scripted = (answers: ReadonlyArray<Answer>) => {
  const sends: Array<Sent> = []
  const client = HttpClient.make((request, _url, signal) =>
    Effect.flatMap(Clock.currentTimeMillis, (at): ReturnType<typeof reply> => {
      sends.push({ at, request, signal })
      return reply(request, answers[Math.min(sends.length, answers.length) - 1]!)
    })
  )
  return { client, sends, times: () => sends.map(({ at }) => at) }
}

const reply = (
  request: HttpClientRequest.HttpClientRequest,
  answer: Answer
): Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError> => {
  if (answer === "never") return Effect.never
  if (typeof answer === "object" && "error" in answer) {
    return Effect.fail(
      new HttpClientError.HttpClientError({
        reason: new HttpClientError.TransportError({ request, cause: answer.error })
      })
    )
  }
  const { body = "", headers = {}, status } = typeof answer === "number" ? { status: answer } : answer
  return Effect.succeed(
    HttpClientResponse.fromWeb(request, new Response(status === 204 ? null : body, { status, headers }))
  )
}

const broken = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" })
const refused = new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) })

/** 100, 200 and 400 ms after the failures, five attempts. */
const policy = Backoff.exponential("100 millis").pipe(RetryPolicy.maxAttempts(5))
const hinted = policy.pipe(RetryPolicy.honorRetryAfter({ atMost: "1 minute" }))

/** Lets time pass until the effect ends. */
const finish = <A, E, R>(effect: Effect.Effect<A, E, R>, tick = 1000) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(tick)
    return yield* Fiber.join(fiber)
  })

/** Time for what is not Effect's: streams of the platform. */
const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** Interrupts a call at each step that it or its child fibers take, one step per run; returns their number. */
const sweepCall = <A, E, R>(program: Effect.Effect<A, E, R>, check: (step: number) => Effect.Effect<void>) =>
  Effect.gen(function*() {
    const base = yield* Scheduler.Scheduler
    for (let at = 1;; at++) {
      let seen = 0
      let fiber: { readonly interruptUnsafe: () => void } | undefined = undefined
      const scheduler: Scheduler.Scheduler = {
        executionMode: base.executionMode,
        makeDispatcher: () => base.makeDispatcher(),
        shouldYield: (running) => {
          fiber ??= running
          if (++seen === at) fiber.interruptUnsafe()
          return base.shouldYield(running)
        }
      }
      const call = yield* Effect.forkChild(Effect.provideService(program, Scheduler.Scheduler, scheduler))
      while (call.pollUnsafe() === undefined) {
        yield* settled
        yield* TestClock.adjust(100)
      }
      yield* settled
      yield* settled
      yield* check(at)
      if (seen < at) return at - 1
    }
  })

const recording = () => {
  const stops: Array<RetryDecision.Stop> = []
  const retries: Array<RetryDecision.Retry> = []
  const observer: RetryObserver.RetryObserver = {
    onStop: (stopped) => void stops.push(stopped),
    onRetry: (token) => void retries.push(token)
  }
  return { stops, retries, layer: RetryObserver.layer(observer) }
}

describe("RetryHttp", () => {
  describe("responses", () => {
    it.effect("retries a response that is a failure, and returns one that is not", () =>
      Effect.gen(function*() {
        const { client, times } = scripted([503, 429, { status: 200, body: "ok" }])
        const response = yield* finish(RetryHttp.retry(client, policy).get("http://a/"))
        assert.strictEqual(response.status, 200)
        assert.strictEqual(yield* response.text, "ok")
        assert.deepStrictEqual(times(), [0, 100, 300])
      }))

    it.effect("returns the last response, its body unread, when retries are exhausted", () =>
      Effect.gen(function*() {
        const { client, times } = scripted([500, 500, { status: 503, body: "down for an hour" }])
        const response = yield* finish(
          RetryHttp.retry(client, policy.pipe(RetryPolicy.maxAttempts(3))).get("http://a/")
        )
        assert.strictEqual(response.status, 503)
        assert.strictEqual(yield* response.text, "down for an hour")
        assert.strictEqual(times().length, 3)
      }))

    it.effect("immediately returns a response that is not a failure", () =>
      Effect.gen(function*() {
        for (const status of [200, 204, 301, 404, 409]) {
          const { client, sends } = scripted([{ status, headers: { "retry-after": "1" } }])
          assert.strictEqual((yield* RetryHttp.retry(client, policy).get("http://a/")).status, status)
          assert.strictEqual(sends.length, 1)
        }
      }))

    for (const where of ["before", "after"] as const) {
      it.effect(`fails with the last StatusCodeError if filterStatusOk is applied ${where} it`, () =>
        Effect.gen(function*() {
          const { client, times } = scripted([500, { status: 503, body: "last" }])
          const limited = RetryHttp.retry(policy.pipe(RetryPolicy.maxAttempts(2)))
          const filtered = where === "before"
            ? limited(HttpClient.filterStatusOk(client))
            : HttpClient.filterStatusOk(limited(client))
          const error = yield* Effect.flip(finish(filtered.get("http://a/")))
          assert.strictEqual(error.reason._tag, "StatusCodeError")
          assert.strictEqual(error.response?.status, 503)
          assert.strictEqual(yield* error.response!.text, "last")
          assert.deepStrictEqual(times(), [0, 100])
        }))
    }

    it.effect("keeps a response that the client itself fails with an error", () =>
      Effect.gen(function*() {
        const { client } = scripted([404])
        const failing = HttpClient.filterOrFail(client, () => false, (response) => response)
        const exit = yield* Effect.exit(RetryHttp.retry(failing, policy).get("http://a/"))
        assert.isTrue(Exit.isFailure(exit))
      }))

    it.effect("fails with the error of the last attempt, unchanged", () =>
      Effect.gen(function*() {
        const { client } = scripted([500, { error: broken }])
        const error = yield* Effect.flip(
          finish(RetryHttp.retry(client, policy.pipe(RetryPolicy.maxAttempts(2))).get("http://a/"))
        )
        assert.strictEqual(error.reason._tag, "TransportError")
        assert.strictEqual(error.cause, broken)
      }))
  })

  describe("attempts", () => {
    it.effect("are counted once, errors and responses together", () =>
      Effect.gen(function*() {
        const outcomes = [{ error: broken }, 500, { error: broken }, 500, { error: broken }, 500]
        const three = scripted(outcomes)
        yield* finish(
          Effect.exit(RetryHttp.retry(three.client, policy.pipe(RetryPolicy.maxAttempts(3))).get("http://a/"))
        )
        assert.strictEqual(three.sends.length, 3)
      }))

    it.effect("carry http.request.resend_count on the span of each resend", () =>
      Effect.gen(function*() {
        const spans: Array<Tracer.Span> = []
        const tracer = Tracer.make({
          span: (options) => {
            const span = new Tracer.NativeSpan(options)
            spans.push(span)
            return span
          }
        })
        const { client } = scripted([503, { error: broken }, 200])
        yield* finish(RetryHttp.retry(client, policy).get("http://a/")).pipe(
          Effect.withSpan("call"),
          Effect.withTracer(tracer)
        )
        assert.deepStrictEqual(
          spans.map((span) => [span.name, span.attributes.get("http.request.resend_count")]),
          [["call", undefined], ["GET", undefined], ["GET", 1], ["GET", 2]]
        )
      }))

    it.effect("send the same prepared request", () =>
      Effect.gen(function*() {
        let keys = 0
        const { client, sends } = scripted([500, 500, 200])
        const keyed = HttpClient.mapRequestEffect(client, (request) =>
          Effect.sync(() => HttpClientRequest.setHeader(request, "idempotency-key", `key-${keys++}`)))
        yield* finish(RetryHttp.retry(keyed, policy).post("http://a/"))
        assert.deepStrictEqual(
          sends.map(({ request }) =>
            request.headers["idempotency-key"]
          ),
          ["key-0", "key-0", "key-0"]
        )
      }))

    it.effect("run the transforms below, and not those above", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const noting = (name: string) => HttpClient.tap(() => Effect.sync(() => seen.push(name)))
        const { client } = scripted([500, 200])
        yield* finish(client.pipe(noting("below"), RetryHttp.retry(policy), noting("above")).get("http://a/"))
        assert.deepStrictEqual(seen, ["below", "below", "above"])
      }))

    it.effect("take any schedule, and still resend nothing that must not be", () =>
      Effect.gen(function*() {
        const { layer, stops } = recording()
        const get = scripted([500])
        yield* finish(RetryHttp.retry(get.client, Schedule.recurs(2)).get("http://a/"))
        assert.strictEqual(get.sends.length, 3)
        const post = scripted([500])
        yield* finish(RetryHttp.retry(post.client, Schedule.recurs(2)).post("http://a/")).pipe(Effect.provide(layer))
        assert.strictEqual(post.sends.length, 1)
        assert.deepStrictEqual(stops.map(({ attempts, reason }) => [reason, attempts]), [["not-safe", 1]])
      }))

    it.effect("are nested in a retry of the caller without taking its tokens", () =>
      Effect.gen(function*() {
        const { client, sends } = scripted([500, 500, 500, 200])
        const inner = RetryHttp.retry(client, policy.pipe(RetryPolicy.maxAttempts(2)))
        yield* finish(Effect.retry(HttpClient.filterStatusOk(inner).get("http://a/"), Schedule.recurs(1)))
        assert.strictEqual(sends.length, 4)
      }))
  })

  describe("quota", () => {
    const quotaOf = (capacity: number) => RetryQuota.make({ capacity })

    it.effect("pays for retries and gets the last one back", () =>
      Effect.gen(function*() {
        const quota = yield* quotaOf(100)
        const { client } = scripted([503, 503, 200])
        yield* finish(RetryHttp.retry(client, awsStandard).get("http://a/")).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota)
        )
        assert.strictEqual(yield* quota.balance, 95)
      }))

    it.effect("gives nothing back if the last response is a failure too", () =>
      Effect.gen(function*() {
        const quota = yield* quotaOf(100)
        const { client } = scripted([503, 501])
        yield* finish(RetryHttp.retry(client, awsStandard).get("http://a/")).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota)
        )
        assert.strictEqual(yield* quota.balance, 95)
      }))

    it.effect("is the client's requirement, in its type and at run time", () =>
      Effect.gen(function*() {
        const { client } = scripted([200])
        const retrying: HttpClient.HttpClient.With<HttpClientError.HttpClientError, RetryQuota.RetryQuota> = RetryHttp
          .retry(client, awsStandard)
        const free: HttpClient.HttpClient = RetryHttp.retry(client, policy)
        const adaptive: HttpClient.HttpClient.With<
          HttpClientError.HttpClientError | AdaptiveRateLimiter.RateLimitExceeded,
          RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
        > = RetryHttp.retry(client, awsAdaptive)
        // @ts-expect-error the quota is missing
        const missing: HttpClient.HttpClient = RetryHttp.retry(client, awsStandard)
        // @ts-expect-error a schedule that takes only one kind of error does not know responses
        RetryHttp.retry(client, Schedule.recurs(1).pipe(Schedule.setInputType<HttpClientError.HttpClientError>()))
        assert.isTrue([retrying, free, adaptive, missing].every(HttpClient.isHttpClient))
        assert.strictEqual((yield* free.get("http://a/")).status, 200)
      }))

    it.effect("is whole again, wherever the call is interrupted", () =>
      Effect.gen(function*() {
        const quota = yield* quotaOf(100)
        let sent = 0
        const program = Effect.suspend(() => {
          const { client, sends } = scripted([
            { status: 429, body: "slow down" },
            { status: 503, body: "later" },
            { status: 200, body: "ok" }
          ])
          return RetryHttp.retry(client, awsStandard, { attemptTimeout: "1 second" }).get("http://a/").pipe(
            Effect.onExit(() => Effect.sync(() => sent = sends.length))
          )
        }).pipe(Effect.provideService(RetryQuota.RetryQuota, quota))
        const steps = yield* sweepCall(program, (step) =>
          Effect.gen(function*() {
            const balance = yield* quota.balance
            const spent = 100 - balance
            // A retry that has begun and did not succeed is spent, and nothing else.
            assert.isTrue(spent === 0 || spent === 5 || spent === 10, `step ${step}: ${spent} spent, ${sent} sends`)
            assert.isAtMost(spent, sent * 5, `step ${step}`)
            yield* Effect.orDie(quota.deposit(spent))
          }))
        assert.isAbove(steps, 50)
      }))
  })

  describe("time", () => {
    it.effect("aborts an attempt at its own limit and retries it", () =>
      Effect.gen(function*() {
        const { client, sends, times } = scripted(["never", 200])
        yield* finish(RetryHttp.retry(client, policy, { attemptTimeout: "2 seconds" }).get("http://a/"))
        assert.deepStrictEqual(times(), [0, 2100])
        assert.isTrue(sends[0]!.signal.aborted)
      }))

    it.effect("fails with a TransportError caused by a TimeoutError, and counts it as a timeout", () =>
      Effect.gen(function*() {
        const { layer, stops } = recording()
        const { client } = scripted(["never"])
        const error = yield* Effect.flip(
          finish(RetryHttp.retry(client, policy, { attemptTimeout: "2 seconds" }).get("http://a/"))
        ).pipe(Effect.provide(layer))
        assert.strictEqual(error.reason._tag, "TransportError")
        assert.isTrue(Cause.isTimeoutError(error.cause))
        assert.include(error.message, "no response within 2s")
        assert.deepStrictEqual(stops.map(({ info, reason }) => [reason, info?.timeout]), [["max-attempts", true]])
      }))

    it.effect("does not repeat a POST that timed out", () =>
      Effect.gen(function*() {
        const { client, sends } = scripted(["never"])
        yield* finish(
          Effect.exit(RetryHttp.retry(client, policy, { attemptTimeout: "2 seconds" }).post("http://a/"))
        )
        assert.strictEqual(sends.length, 1)
      }))

    const address = "http://a/orders?page=1"
    const search = HttpClientRequest.post(address, { headers: { "x-safe": "1" } })
    const isSearch = ({ headers, url }: HttpClientRequest.HttpClientRequest) =>
      headers["x-safe"] === "1" && url === address
    const sendsOf = (options: RetryHttp.Options, request = search) => {
      const { client, sends } = scripted(["never"])
      const call = RetryHttp.retry(client, policy, { attemptTimeout: "2 seconds", ...options }).execute(request)
      return Effect.map(Effect.flip(finish(call)), (error) => ({ error, sends: sends.length }))
    }

    it.effect("repeats a POST that timed out if its headers or its whole address say that it may", () =>
      Effect.gen(function*() {
        const keyed = HttpClientRequest.post(address, { headers: { "idempotency-key": "k" } })
        assert.strictEqual((yield* sendsOf({}, keyed)).sends, 5)
        assert.strictEqual((yield* sendsOf({})).sends, 1)
        const marked = yield* Effect.provideService(sendsOf({}), RetryHttp.CurrentRepeatable, isSearch)
        assert.strictEqual(marked.sends, 5)
      }))

    it.effect("asks classifiers about a timeout with the whole request", () =>
      Effect.gen(function*() {
        const own: RetryClassifier.RetryClassifier = (failure) =>
          HttpClientError.isHttpClientError(failure) && isSearch(failure.request)
            ? Option.some(RetryInfo.transient)
            : Option.none()
        assert.strictEqual((yield* sendsOf({ classifier: own })).sends, 5)
        const veto = RetryClassifier.layer((failure) => Option.map(own(failure), () => RetryInfo.notRetryable))
        const get = HttpClientRequest.get(address, { headers: { "x-safe": "1" } })
        assert.strictEqual((yield* sendsOf({}, get)).sends, 5)
        assert.strictEqual((yield* Effect.provide(sendsOf({}, get), veto)).sends, 1)
      }))

    it.effect("recognizes a timeout outside the call as it does inside", () =>
      Effect.gen(function*() {
        const keyed = HttpClientRequest.post(address, { headers: { "idempotency-key": "k" } })
        const safety = (error: unknown) =>
          Option.map(RetryClassifier.classify(RetryHttp.classifier, error), (info) => info.safety)
        assert.deepStrictEqual(safety((yield* sendsOf({}, keyed)).error), Option.some("Yes"))
        assert.deepStrictEqual(safety((yield* sendsOf({})).error), Option.some("Maybe"))
      }))

    it.effect("sleeps past no deadline of the policy, whatever the server asks", () =>
      Effect.gen(function*() {
        const { client, times } = scripted([{ status: 503, headers: { "retry-after": "30" } }])
        const begun = yield* Clock.currentTimeMillis
        const response = yield* finish(
          RetryHttp.retry(client, hinted.pipe(RetryPolicy.deadline("5 seconds"))).get("http://a/"),
          1
        )
        assert.strictEqual(response.status, 503)
        assert.deepStrictEqual(times(), [0])
        assert.isAtMost((yield* Clock.currentTimeMillis) - begun, 1)
      }))

    it.effect("ends after its attempts, however often the server asks for another", () =>
      Effect.gen(function*() {
        const { client, times } = scripted([{ status: 429, headers: { "retry-after": "1" } }])
        yield* finish(RetryHttp.retry(client, hinted, { hintSpread: 0 }).get("http://a/"))
        assert.deepStrictEqual(times(), [0, 1000, 2000, 3000, 4000])
      }))
  })

  describe("hints", () => {
    const waitOf = (headers: Record<string, string>, options?: RetryHttp.Options) =>
      Effect.gen(function*() {
        const { client, times } = scripted([{ status: 429, headers }, 200])
        yield* finish(RetryHttp.retry(client, hinted, options).get("http://a/"))
        return times()[1]! - times()[0]!
      })

    for (const [random, wait] of [[0, 10_000], [0.5, 10_500], [1 - Number.EPSILON, 11_000]] as const) {
      it.effect(`are lengthened at random: with ${random}, 10 s become ${wait} ms`, () =>
        Effect.gen(function*() {
          assert.strictEqual(yield* waitOf({ "retry-after": "10" }), wait)
        }).pipe(Effect.provideService(Random.Random, constantRandom(random))))
    }

    it.effect("are not lengthened with hintSpread 0", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* waitOf({ "retry-after": "10" }, { hintSpread: 0 }), 10_000)
      }))

    it.effect("never shorten the delay", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* waitOf({ "retry-after": "0" }), 100)
        assert.strictEqual(yield* waitOf({ "retry-after-ms": "99" }, { hintSpread: 0 }), 100)
      }))

    it.effect("are bounded by the policy", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* waitOf({ "retry-after": "99999999999999999999" }), 60_000)
      }))

    it.effect("read a date against the Date header, whatever the local clock says", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(Date.UTC(2031, 0, 1))
        const { client, times } = scripted([{
          status: 503,
          headers: { date: "Thu, 01 Jan 2026 00:00:00 GMT", "retry-after": "Thu, 01 Jan 2026 00:00:20 GMT" }
        }, 200])
        yield* finish(RetryHttp.retry(client, hinted, { hintSpread: 0 }).get("http://a/"))
        assert.strictEqual(times()[1]! - times()[0]!, 20_000)
      }))

    it.effect("read a date against the wall clock if there is no Date header", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(Date.UTC(2026, 0, 1))
        const { client, times } = scripted([{
          status: 503,
          headers: { "retry-after": "Thu, 01 Jan 2026 00:00:20 GMT" }
        }, 200])
        yield* finish(RetryHttp.retry(client, hinted, { hintSpread: 0 }).get("http://a/"))
        assert.strictEqual(times()[1]! - times()[0]!, 20_000)
      }))

    it.effect("come from the user's readers, in their order", () =>
      Effect.gen(function*() {
        const hints = [RetryHttp.hintSeconds("x-vendor-wait"), ...RetryHttp.defaultHints]
        const options = { hints, hintSpread: 0 }
        assert.strictEqual(yield* waitOf({ "x-vendor-wait": "7", "retry-after": "10" }, options), 7000)
        assert.strictEqual(yield* waitOf({ "retry-after": "10" }, options), 10_000)
      }))
  })

  describe("safety", () => {
    const sendsOf = (
      answer: Answer,
      call: (client: HttpClient.HttpClient) => Effect.Effect<unknown, unknown>,
      options?: RetryHttp.Options
    ) =>
      Effect.gen(function*() {
        const { client, sends } = scripted([answer, 200])
        yield* finish(Effect.exit(call(RetryHttp.retry(client, policy, options))))
        return sends.length
      })

    const post = (client: HttpClient.HttpClient) => client.post("http://a/")

    it.effect("sends a POST only once if it may have been carried out", () =>
      Effect.gen(function*() {
        const hinted503 = { status: 503, headers: { "retry-after": "1" } }
        for (const answer of [500, 502, 503, hinted503, 504, 408, { error: broken }]) {
          assert.strictEqual(yield* sendsOf(answer, post), 1, JSON.stringify(answer))
          assert.strictEqual(yield* sendsOf(answer, (client) => client.patch("http://a/")), 1, JSON.stringify(answer))
        }
      }))

    it.effect("resends a POST that cannot have been processed", () =>
      Effect.gen(function*() {
        const answers = [429, 425, { error: refused }]
        for (const answer of answers) assert.strictEqual(yield* sendsOf(answer, post), 2, JSON.stringify(answer))
      }))

    it.effect("resends a POST that carries an Idempotency-Key", () =>
      Effect.gen(function*() {
        const keyed = (key: string) => (client: HttpClient.HttpClient) =>
          client.post("http://a/", { headers: { "Idempotency-Key": key } })
        assert.strictEqual(yield* sendsOf(500, keyed("8e03978e")), 2)
        assert.strictEqual(yield* sendsOf(500, keyed(" ")), 1)
      }))

    it.effect("resends a POST that is marked safe, through any change of the request", () =>
      Effect.gen(function*() {
        const prefixed = (client: HttpClient.HttpClient) =>
          client.pipe(HttpClient.mapRequest(HttpClientRequest.setHeader("a", "b"))).post("http://a/")
        assert.strictEqual(yield* sendsOf(500, (client) => prefixed(client).pipe(RetryHttp.repeatable)), 2)
        assert.strictEqual(
          yield* sendsOf(500, post).pipe(
            Effect.provideService(RetryHttp.CurrentRepeatable, (request) => request.url.endsWith("/_search"))
          ),
          1
        )
      }))

    it.effect("treats a predicate that throws as one that marks nothing", () =>
      Effect.gen(function*() {
        const throwing = Effect.provideService(RetryHttp.CurrentRepeatable, () => {
          throw new Error("predicate")
        })
        const { layer, stops } = recording()
        assert.strictEqual(yield* throwing(sendsOf(500, post)).pipe(Effect.provide(layer)), 1)
        assert.deepStrictEqual(stops.map(({ info, reason }) => [reason, info?.safety]), [["not-safe", "Maybe"]])
        assert.strictEqual(yield* throwing(sendsOf(429, post)), 2)
      }))

    it.effect("lets a policy with whileMaybeRetryable retry what is only maybe safe", () =>
      Effect.gen(function*() {
        const { client, sends } = scripted([500, 200])
        yield* finish(RetryHttp.retry(client, policy.pipe(RetryPolicy.whileMaybeRetryable)).post("http://a/"))
        assert.strictEqual(sends.length, 2)
      }))

    it.effect("obeys x-should-retry", () =>
      Effect.gen(function*() {
        const saying = (status: number, value: string) => ({ status, headers: { "x-should-retry": value } })
        assert.strictEqual(yield* sendsOf(saying(503, "false"), (client) => client.get("http://a/")), 1)
        assert.strictEqual(yield* sendsOf(saying(409, "true"), post), 2)
        assert.strictEqual(yield* sendsOf(saying(409, "maybe"), post), 1)
        assert.strictEqual(yield* sendsOf(saying(200, "true"), post), 1)
      }))
  })

  describe("classifier", () => {
    const retriesOf = (answer: Answer, options: RetryHttp.Options) =>
      Effect.gen(function*() {
        const { client, sends } = scripted([answer, 200])
        yield* finish(Effect.exit(RetryHttp.retry(client, policy, options).get("http://a/")))
        return sends.length - 1
      })

    it.effect("of the user is asked first, about failures only", () =>
      Effect.gen(function*() {
        const seen: Array<number> = []
        const classifier: RetryClassifier.RetryClassifier = (failure) => {
          const { status } = failure as HttpClientResponse.HttpClientResponse
          seen.push(status)
          if (status === 409) return Option.some(RetryInfo.transient)
          return status === 503 ? Option.some(RetryInfo.notRetryable) : Option.none()
        }
        assert.strictEqual(yield* retriesOf(409, { classifier }), 1)
        assert.strictEqual(yield* retriesOf(503, { classifier }), 0)
        assert.strictEqual(yield* retriesOf(500, { classifier }), 1)
        assert.deepStrictEqual(seen, [409, 503, 500])
      }))

    it.effect("of the user lifts what the defaults forbid", () =>
      Effect.gen(function*() {
        const { client, sends } = scripted([{ status: 200, body: "{ half" }, { status: 200, body: "{}" }])
        const reading = HttpClient.transformResponse(client, Effect.tap((response) => response.json))
        const classifier: RetryClassifier.RetryClassifier = () => Option.some(RetryInfo.transient)
        yield* finish(RetryHttp.retry(reading, policy, { classifier }).get("http://a/"))
        assert.strictEqual(sends.length, 2)
      }))

    it.effect("accepts the user's statuses", () =>
      Effect.gen(function*() {
        const options = { retryStatus: (status: number) => status === 404 }
        assert.strictEqual(yield* retriesOf(404, options), 1)
        assert.strictEqual(yield* retriesOf(503, options), 0)
      }))

    it.effect("around the call keeps its veto, and its word about other errors", () =>
      Effect.gen(function*() {
        class Busy extends RetryInfo.TaggedError("Busy") {}
        const { client, sends } = scripted([500])
        const busy = HttpClient.filterOrFail(client, (response) => response.status < 400, () => new Busy())
        yield* finish(Effect.exit(RetryHttp.retry(busy, policy).post("http://a/")))
        assert.strictEqual(sends.length, 5)
        const forbidding = RetryClassifier.layer(
          RetryClassifier.vetoing(RetryClassifier.defaultClassifier, HttpClientError.isHttpClientError)
        )
        assert.strictEqual(yield* retriesOf({ error: broken }, {}).pipe(Effect.provide(forbidding)), 0)
      }))

    it.effect("around the call keeps its veto of responses, and is not asked about answers", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const forbidding = RetryClassifier.layer(
          RetryClassifier.vetoing(RetryClassifier.defaultClassifier, (failure) => {
            const { status } = failure as HttpClientResponse.HttpClientResponse
            seen.push(status)
            return status === 503
          })
        )
        const statuses = [503, 500, 404]
        const retries = yield* Effect.forEach(statuses, (status) => retriesOf(status, {})).pipe(
          Effect.provide(forbidding)
        )
        assert.deepStrictEqual(retries, [0, 1, 0])
        assert.deepStrictEqual(seen, [503, 500])
      }))

    it.effect("inside an attempt is the one around the call", () =>
      Effect.gen(function*() {
        const own: RetryClassifier.RetryClassifier = () => Option.none()
        let seen: unknown = undefined
        const { client } = scripted([200])
        const looking = HttpClient.transformResponse(
          client,
          Effect.tap(() => Effect.map(RetryClassifier.CurrentClassifier, (current) => seen = current))
        )
        yield* RetryHttp.retry(looking, policy).get("http://a/").pipe(
          Effect.provideService(RetryClassifier.CurrentClassifier, own)
        )
        assert.strictEqual(seen, own)
      }))
  })

  describe("bodies", () => {
    const bytes = (text: string) => new TextEncoder().encode(text)
    const streamOf = (text: string) => Stream.make(bytes(text))

    /** What the server read in each attempt. */
    const uploads = (body: HttpBody.HttpBody, answers: ReadonlyArray<number>) =>
      Effect.gen(function*() {
        const read: Array<string> = []
        const { client } = scripted(answers)
        const reading = HttpClient.transform(client, (send, request) =>
          Effect.gen(function*() {
            if (request.body._tag === "Stream") {
              read.push(yield* Stream.mkString(Stream.decodeText(Stream.orDie(request.body.stream))))
            } else read.push(request.body._tag)
            return yield* send
          }))
        const put = HttpClientRequest.put("http://a/").pipe(HttpClientRequest.setBody(body))
        const response = yield* finish(RetryHttp.retry(reading, policy).execute(put))
        return { read, status: response.status }
      })

    const webStream = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(bytes("once"))
          controller.close()
        }
      })

    const oneShots: ReadonlyArray<readonly [string, () => HttpBody.HttpBody]> = [
      ["a stream", () => HttpBody.stream(streamOf("once"))],
      ["a raw Web stream", () => HttpBody.raw(webStream())],
      ["a raw iterator", () => HttpBody.raw([bytes("once")].values())],
      ["a raw asynchronous iterable", () => HttpBody.raw({ [Symbol.asyncIterator]: () => webStream().values() })]
    ]
    for (const [name, body] of oneShots) {
      it.effect(`sends ${name} once, and says why`, () =>
        Effect.gen(function*() {
          const { layer, stops } = recording()
          const logged: Array<unknown> = []
          const logger = Logger.layer([Logger.make(({ message }) => void logged.push(message))])
          let span: Tracer.Span | undefined
          const { read, status } = yield* Effect.gen(function*() {
            span = yield* Effect.currentSpan
            return yield* uploads(body(), [503, 200])
          }).pipe(Effect.orDie, Effect.withSpan("upload"), Effect.provide([layer, logger]))
          assert.strictEqual(read.length, 1)
          assert.strictEqual(status, 503)
          assert.deepStrictEqual(stops.map(({ reason }) => reason), ["final"])
          assert.strictEqual(span?.attributes.get("http.request.body.one_shot"), true)
          assert.match(String(logged), /not sent again: its body is a stream/)
        }))
    }

    it.effect("sends a stream once for a policy with whileMaybeRetryable too", () =>
      Effect.gen(function*() {
        const { client, sends } = scripted([500, 200])
        const risky = RetryHttp.retry(client, policy.pipe(RetryPolicy.whileMaybeRetryable))
        yield* finish(risky.post("http://a/", { body: HttpBody.stream(streamOf("once")) }))
        assert.strictEqual(sends.length, 1)
      }))

    it.effect("does not mention the body if the failure itself forbids a retry", () =>
      Effect.gen(function*() {
        const logged: Array<unknown> = []
        yield* uploads(HttpBody.stream(streamOf("once")), [501]).pipe(
          Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(message))]))
        )
        assert.deepStrictEqual(logged, [])
      }))

    const repeatables: ReadonlyArray<readonly [string, HttpBody.HttpBody]> = [
      ["no body", HttpBody.empty],
      ["text", HttpBody.text("a")],
      ["bytes", HttpBody.uint8Array(bytes("a"))],
      ["a form", HttpBody.formDataRecord({ a: "b" })],
      ["a raw text", HttpBody.raw("a")],
      ["a raw buffer", HttpBody.raw(new ArrayBuffer(1))],
      ["a raw blob", HttpBody.raw(new Blob(["a"]))],
      ["raw parameters", HttpBody.raw(new URLSearchParams("a=b"))],
      ["nothing, raw", HttpBody.raw(null)],
      ["a stream that is marked", RetryHttp.repeatableBody(HttpBody.stream(streamOf("again")))]
    ]
    for (const [name, body] of repeatables) {
      it.effect(`sends ${name} again`, () =>
        Effect.gen(function*() {
          const { read, status } = yield* uploads(body, [503, 200])
          assert.strictEqual(read.length, 2)
          assert.strictEqual(status, 200)
        }))
    }

    it.effect("makes the body of a factory again for every attempt", () =>
      Effect.gen(function*() {
        let made = 0
        const body = RetryHttp.bodyFactory(() => streamOf(`body ${made++}`), {
          contentType: "text/plain",
          contentLength: 6
        })
        assert.deepStrictEqual([body.contentType, body.contentLength], ["text/plain", 6])
        assert.deepStrictEqual((yield* uploads(body, [503, 503, 200])).read, ["body 0", "body 1", "body 2"])
      }))

    it.effect("runs the effect of a factory again for every attempt", () =>
      Effect.gen(function*() {
        let made = 0
        const body = RetryHttp.bodyFactory(Effect.sync(() => streamOf(`body ${made++}`)))
        assert.deepStrictEqual((yield* uploads(body, [503, 200])).read, ["body 0", "body 1"])
      }))
  })

  describe("reading", () => {
    it.effect("is outside of the attempt: a body that breaks off is not fetched again", () =>
      Effect.gen(function*() {
        let sends = 0
        const client = HttpClient.make((request) =>
          Effect.sync(() => {
            sends++
            const body = new ReadableStream({
              start(controller) {
                controller.enqueue(new TextEncoder().encode("half"))
              },
              pull(controller) {
                controller.error(broken)
              }
            })
            return HttpClientResponse.fromWeb(request, new Response(body, { status: 200 }))
          })
        )
        const response = yield* RetryHttp.retry(client, policy).get("http://a/")
        const error = yield* Effect.flip(response.text)
        assert.strictEqual(error.reason._tag, "DecodeError")
        assert.strictEqual(sends, 1)
      }))

    it.effect("inside of an attempt, by a transform below, is not retried either", () =>
      Effect.gen(function*() {
        const { client, sends } = scripted([{ status: 200, body: "{ half" }])
        const reading = HttpClient.transformResponse(client, Effect.tap((response) => response.json))
        const error = yield* Effect.flip(RetryHttp.retry(reading, policy).get("http://a/"))
        assert.strictEqual(error.reason._tag, "DecodeError")
        assert.strictEqual(sends.length, 1)
      }))
  })

  describe("discarded responses", () => {
    /** A client whose responses report what became of their bodies. */
    const watched = (answers: ReadonlyArray<number>, size = 10) => {
      const fates: Array<"open" | "read" | "cancelled"> = []
      const client = HttpClient.make((request) =>
        Effect.sync(() => {
          const index = fates.push("open") - 1
          let left = size
          const body = new ReadableStream({
            pull(controller) {
              if (left-- > 0) return controller.enqueue(new Uint8Array(1024))
              fates[index] = "read"
              controller.close()
            },
            cancel() {
              fates[index] = "cancelled"
            }
          }, { highWaterMark: 0 })
          return HttpClientResponse.fromWeb(request, new Response(body, { status: answers[index] ?? 200 }))
        })
      )
      return { client, fates }
    }

    /** If this is among the statuses, the client fails with all that are not 2xx. */
    const filtered = 504

    const fatesOf = (statuses: ReadonlyArray<number>, options?: RetryHttp.Options, size?: number) =>
      Effect.gen(function*() {
        const { client, fates } = watched(statuses, size)
        const below = statuses.includes(filtered) ? HttpClient.filterStatusOk(client) : client
        const fiber = yield* Effect.forkChild(RetryHttp.retry(below, policy, options).get("http://a/"))
        while (fiber.pollUnsafe() === undefined) {
          yield* settled
          yield* TestClock.adjust(100)
        }
        yield* Fiber.join(fiber)
        return fates
      })

    it.effect("are read after a throttle and aborted after a transient failure", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* fatesOf([429, 503]), ["read", "cancelled", "open"])
      }))

    it.effect("are treated the same if the client fails with them", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* fatesOf([429, 503, filtered]), ["read", "cancelled", "cancelled", "open"])
      }))

    it.effect("are all read with reuseConnection always, and all aborted with never", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* fatesOf([429, 503], { reuseConnection: "always" }), ["read", "read", "open"])
        assert.deepStrictEqual(yield* fatesOf([429, 503], { reuseConnection: "never" }), [
          "cancelled",
          "cancelled",
          "open"
        ])
      }))

    it.effect("are aborted if they are longer than 64 KiB", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* fatesOf([429], {}, 64), ["read", "open"])
        assert.deepStrictEqual(yield* fatesOf([429], {}, 65), ["cancelled", "open"])
      }))

    it.effect("do not delay the call if their bodies never end", () =>
      Effect.gen(function*() {
        const signals: Array<AbortSignal> = []
        const client = HttpClient.make((request, _url, signal) =>
          Effect.sync(() => {
            signals.push(signal)
            const endless = new ReadableStream({ pull: () => new Promise(() => {}) })
            return HttpClientResponse.fromWeb(
              request,
              signals.length === 1 ? new Response(endless, { status: 429 }) : new Response("ok")
            )
          })
        )
        const begun = yield* Clock.currentTimeMillis
        const response = yield* finish(RetryHttp.retry(client, policy).get("http://a/"), 1)
        assert.strictEqual(response.status, 200)
        assert.strictEqual((yield* Clock.currentTimeMillis) - begun, 100)
        yield* TestClock.adjust("1 second")
        yield* settled
        assert.isTrue(signals[0]!.aborted)
      }))

    it.effect("are aborted with the call, wherever it is interrupted after they came", () =>
      Effect.gen(function*() {
        let current = watched([])
        let decided = 0
        const observer: RetryObserver.RetryObserver = { onRetry: () => void decided++ }
        const program = Effect.suspend(() => {
          current = watched([429, 503])
          decided = 0
          return RetryHttp.retry(current.client, policy).get("http://a/")
        }).pipe(Effect.provide(RetryObserver.layer(observer)))
        const steps = yield* sweepCall(program, (step) =>
          Effect.sync(() => assert.notInclude(current.fates.slice(0, decided), "open", `step ${step}`)))
        assert.isAbove(steps, 50)
      }))

    it.effect("are aborted if the schedule itself fails, since nothing else will read them", () =>
      Effect.gen(function*() {
        const failing = Schedule.fromStep(Effect.succeed(() => Effect.fail("schedule" as const)))
        for (const below of [(client: HttpClient.HttpClient) => client, HttpClient.filterStatusOk]) {
          const { client, fates } = watched([503])
          const error = yield* Effect.flip(RetryHttp.retry(below(client), failing).get("http://a/"))
          yield* settled
          assert.strictEqual(error, "schedule")
          assert.deepStrictEqual(fates, ["cancelled"])
        }
      }))

    it.effect("lead to a new connection after a transient failure, if configured", () =>
      Effect.gen(function*() {
        const Fresh = Context.Reference<boolean>("test/Fresh", { defaultValue: () => false })
        const seen: Array<boolean> = []
        const { client } = scripted([429, 503, { error: broken }, 200])
        const noting = HttpClient.transformResponse(
          client,
          (send) => Effect.andThen(Effect.map(Fresh, (fresh) => void seen.push(fresh)), send)
        )
        yield* finish(
          RetryHttp.retry(noting, policy, { newConnection: Effect.provideService(Fresh, true) }).get("http://a/")
        )
        assert.deepStrictEqual(seen, [false, false, true, true])
      }))
  })

  describe("interruption", () => {
    it.effect("aborts the request in flight", () =>
      Effect.gen(function*() {
        const { client, sends } = scripted([503, "never"])
        const fiber = yield* Effect.forkChild(RetryHttp.retry(client, policy).get("http://a/"))
        yield* TestClock.adjust("1 second")
        assert.isFalse(sends[1]!.signal.aborted)
        yield* Fiber.interrupt(fiber)
        assert.isTrue(sends[1]!.signal.aborted)
      }))

    it.effect("is not retried, nor is a defect", () =>
      Effect.gen(function*() {
        for (const ending of [Effect.die("defect"), Effect.interrupt]) {
          let sends = 0
          const client = HttpClient.make(() => Effect.andThen(Effect.sync(() => void sends++), ending))
          const exit = yield* finish(Effect.exit(RetryHttp.retry(client, policy).get("http://a/")))
          assert.isTrue(Exit.isFailure(exit))
          assert.strictEqual(sends, 1)
        }
      }))
  })

  describe("limiter", () => {
    it.effect("returns the last response if the deadline passes before the send token comes", () =>
      Effect.gen(function*() {
        const limiter = yield* AdaptiveRateLimiter.make()
        const { layer, retries, stops } = recording()
        const { client, sends } = scripted([429])
        const adaptive = Backoff.fixed("1 millis").pipe(
          RetryPolicy.maxAttempts(50),
          RetryPolicy.requires(AdaptiveRateLimiter.AdaptiveRateLimiter),
          RetryPolicy.deadline("3 seconds")
        )
        const response = yield* finish(RetryHttp.retry(client, adaptive).get("http://a/"), 100).pipe(
          Effect.provideService(AdaptiveRateLimiter.AdaptiveRateLimiter, limiter),
          Effect.provide(layer)
        )
        assert.strictEqual(response.status, 429)
        assert.deepStrictEqual(stops.map(({ reason }) => reason), ["deadline"])
        assert.strictEqual(retries.length, sends.length)
      }))
  })

  describe("options", () => {
    const { client } = scripted([200])
    const bad: ReadonlyArray<readonly [string, RetryHttp.Options]> = [
      ["attemptTimeout", { attemptTimeout: 0 }],
      ["attemptTimeout", { attemptTimeout: -1 }],
      ["attemptTimeout", { attemptTimeout: Number.NaN }],
      ["attemptTimeout", { attemptTimeout: "Infinity" }],
      ["hintSpread", { hintSpread: -0.1 }],
      ["hintSpread", { hintSpread: 1.1 }],
      ["hintSpread", { hintSpread: Number.NaN }],
      ["reuseConnection", { reuseConnection: "sometimes" as "never" }],
      ["classifier", { classifier: "default" as never }],
      ["newConnection", { newConnection: true as never }],
      ["hints", { hints: RetryHttp.hintSeconds("x-wait") as never }],
      ["hints", { hints: ["x-wait" as never] }]
    ]
    for (const [field, options] of bad) {
      it(`refuses ${field} ${String(Object.values(options)[0])}`, () => {
        const error = (() => {
          try {
            return RetryHttp.retry(client, policy, options)
          } catch (error) {
            return error
          }
        })()
        assert.instanceOf(error, InvalidOption)
        assert.deepInclude(error, { constructorName: "RetryHttp.retry", field })
      })
    }

    it("refuses options in place of a policy", () => {
      const message = /^RetryHttp.retry: policy must be a schedule, .* got an object/
      assert.throws(() => RetryHttp.retry(client, { attemptTimeout: 100 } as never), message)
      assert.throws(() => RetryHttp.transform({ attemptTimeout: 100 } as never), message)
    })
  })
})
