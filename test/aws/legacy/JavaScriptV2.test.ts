import { assert, describe, it } from "@effect/vitest"
import DynamoDB from "aws-sdk/clients/dynamodb.js"
import SQS from "aws-sdk/clients/sqs.js"
import AWS from "aws-sdk/global.js"
import { InvalidOption, RetryClassifier, RetryDecision, RetryQuota } from "effect-retry"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, afterEach, beforeAll, vi } from "vitest"
import * as Example from "../../../examples/javascript-v2.ts"
import { constantRandom, Throttled, Transient } from "../../utils/call.ts"
import { type Driver, drivers, type Policy, type SdkError, sdkError, steppedDelays } from "../../utils/vectors.ts"

// The documented way to silence the note that the SDK is no longer supported.
vi.hoisted(() => {
  process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = "1"
})

/** What `aws-sdk` keeps to itself. */
const internals = AWS as unknown as {
  readonly util: {
    readonly calculateRetryDelay: (retryCount: number, options: DelayOptions | undefined, error?: unknown) => number
    readonly handleRequestWithRetries: (
      request: unknown,
      options: { readonly maxRetries: number; readonly retryDelayOptions?: DelayOptions | undefined },
      callback: (error: unknown, data: unknown) => void
    ) => void
  }
  readonly HttpRequest: new(endpoint: string) => { method: string }
  readonly Service: {
    readonly prototype: {
      readonly retryableError: (error: unknown) => boolean
      readonly throttledError: (error: unknown) => boolean
    }
  }
}

interface DelayOptions {
  readonly base?: number | undefined
  readonly customBackoff?: ((retryCount: number, error?: unknown) => number) | undefined
}

/** The greatest number that chance gives. */
const almostOne = 1 - 2 ** -53

const transient = sdkError({ status: 500 })

const request = HttpClientRequest.post("http://service.test/")

const statusError = (status: number, headers: Record<string, string> = {}) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.StatusCodeError({
      request,
      response: HttpClientResponse.fromWeb(request, new Response(null, { status, headers }))
    })
  })

const transportError = (cause?: unknown) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })

const encodeError = new HttpClientError.HttpClientError({ reason: new HttpClientError.EncodeError({ request }) })

/** Numbers in `[0, 1)` that depend on the seed alone. */
const chance = (seed: number) => {
  let state = seed >>> 0
  return (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const withChance = (next: () => number) =>
  Effect.provideService(Random.Random, {
    nextDoubleUnsafe: next,
    nextIntUnsafe: () => Math.floor(next() * Number.MAX_SAFE_INTEGER)
  })

const withRandom = (value: number) => Effect.provideService(Random.Random, constantRandom(value))

/** How long a call waited before each retry, and how it ended; `errors` are its outcomes in turn, then it succeeds. */
const played = (driver: Driver, policy: Policy, errors: ReadonlyArray<unknown>) =>
  Effect.gen(function*() {
    const sentAt: Array<number> = []
    let reason: string = "success"
    const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const send = sentAt.push(now) - 1
      return send < errors.length ? Effect.fail(errors[send] as SdkError) : Effect.succeed(200)
    })
    const run = driver.run(call, policy, (decision) => {
      if (RetryDecision.isStop(decision)) reason = decision.reason
    })
    const fiber = yield* Effect.forkChild(Effect.exit(run), { startImmediately: true })
    yield* TestClock.adjust("1000 days")
    assert.isDefined(fiber.pollUnsafe())
    return { delays: sentAt.slice(1).map((at, send) => at - sentAt[send]!), reason }
  }).pipe(Effect.provide(RetryQuota.layer()))

describe("JavaScriptV2", () => {
  describe("policy", () => {
    const { defaultPolicy, dynamoDBPolicy, policy } = JavaScriptV2
    const adding = policy({ addRetryAfter: true })
    const times = (count: number, error: unknown = transient) => Array<unknown>(count).fill(error)
    const hinted = (header: string, statusCode = 503) => ({ statusCode, headers: { "retry-after": header } })
    const redirect = { statusCode: 307, headers: { location: "https://elsewhere" } }

    interface PolicyVector {
      readonly name: string
      readonly policy: Policy
      readonly random: number
      readonly errors: ReadonlyArray<unknown>
      readonly delays: ReadonlyArray<number>
      readonly reason: string
    }

    const vectors: ReadonlyArray<PolicyVector> = [
      {
        name: "default, 4 attempts, base 100 ms",
        policy: defaultPolicy,
        random: 0.5,
        errors: times(9),
        delays: [50, 100, 200],
        reason: "max-attempts"
      },
      {
        name: "default, least",
        policy: defaultPolicy,
        random: 0,
        errors: times(9),
        delays: [0, 0, 0],
        reason: "max-attempts"
      },
      {
        name: "default, most",
        policy: defaultPolicy,
        random: almostOne,
        errors: times(9),
        delays: [100, 200, 400],
        reason: "max-attempts"
      },
      {
        name: "default, a fraction of a millisecond is rounded up",
        policy: defaultPolicy,
        random: 0.123,
        errors: times(9),
        delays: [13, 25, 50],
        reason: "max-attempts"
      },
      {
        name: "default, throttles as any other failure",
        policy: defaultPolicy,
        random: 0.5,
        errors: times(2, { code: "Throttling", statusCode: 400 }),
        delays: [50, 100],
        reason: "success"
      },
      {
        name: "default, not retryable",
        policy: defaultPolicy,
        random: 0.5,
        errors: [transient, { code: "ValidationException", statusCode: 400 }],
        delays: [50],
        reason: "final"
      },
      {
        name: "DynamoDB, 11 attempts, base 50 ms",
        policy: dynamoDBPolicy,
        random: 0.5,
        errors: times(99),
        delays: [25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800],
        reason: "max-attempts"
      },
      {
        name: "no cap",
        policy: policy({ maxRetries: 20 }),
        random: 0.5,
        errors: times(99),
        delays: Array.from({ length: 20 }, (_, n) => 50 * 2 ** n),
        reason: "max-attempts"
      },
      {
        name: "no retries",
        policy: policy({ maxRetries: 0 }),
        random: 0.5,
        errors: times(1),
        delays: [],
        reason: "max-attempts"
      },
      {
        name: "own base",
        policy: policy({ base: "300 millis" }),
        random: 0.5,
        errors: times(2),
        delays: [150, 300],
        reason: "success"
      },
      {
        name: "base 0",
        policy: policy({ base: 0 }),
        random: 0.5,
        errors: times(3),
        delays: [0, 0, 0],
        reason: "success"
      },
      {
        name: "default, ignores retry-after as the SDK's clients do",
        policy: defaultPolicy,
        random: 0.5,
        errors: [hinted("120"), hinted("99999999")],
        delays: [50, 100],
        reason: "success"
      },
      {
        name: "DynamoDB, ignores retry-after as the SDK's clients do",
        policy: dynamoDBPolicy,
        random: 0.5,
        errors: [hinted("120")],
        delays: [25],
        reason: "success"
      },
      {
        name: "retry-after is added",
        policy: adding,
        random: 0.5,
        errors: [hinted("3"), hinted("0"), hinted("1", 429)],
        delays: [3050, 100, 1200],
        reason: "success"
      },
      {
        name: "retry-after is added up to 20 seconds",
        policy: adding,
        random: 0.5,
        errors: [hinted("20"), hinted("21"), hinted("99999999")],
        delays: [20_050, 20_100, 20_200],
        reason: "success"
      },
      {
        name: "retry-after is added up to its bound",
        policy: policy({ addRetryAfter: true, maxRetryAfter: "2 minutes" }),
        random: 0.5,
        errors: [hinted("119"), hinted("120"), hinted("121")],
        delays: [119_050, 120_100, 120_200],
        reason: "success"
      },
      {
        name: "retry-after in whole seconds, or none",
        policy: adding,
        random: 0.5,
        errors: [hinted("2.9"), hinted("Wed, 21 Oct 2026 07:28:00 GMT"), hinted("-5")],
        delays: [2050, 100, 200],
        reason: "success"
      },
      {
        name: "retry-after of an error of the SDK, in milliseconds",
        policy: adding,
        random: 0.5,
        errors: [{ statusCode: 503, retryable: true, retryAfter: 2000 }],
        delays: [2050],
        reason: "success"
      },
      {
        name: "retry-after as HTTP writes it, of Headers and of Effect's HTTP client",
        policy: adding,
        random: 0.5,
        errors: [
          { statusCode: 503, headers: { "Retry-After": "3" } },
          { status: 503, response: { headers: new Headers({ "Retry-After": "2" }) } },
          statusError(503, { "Retry-After": "1" })
        ],
        delays: [3050, 2100, 1200],
        reason: "success"
      },
      {
        name: "retry-after is added to a custom backoff",
        policy: policy({ addRetryAfter: true, customBackoff: () => 7 }),
        random: 0.5,
        errors: [hinted("3")],
        delays: [3007],
        reason: "success"
      },
      {
        name: "retry-after does not revive what the custom backoff stopped",
        policy: policy({ addRetryAfter: true, customBackoff: () => -1 }),
        random: 0.5,
        errors: [hinted("3")],
        delays: [],
        reason: "schedule"
      },
      {
        name: "a custom backoff stops with a negative delay",
        policy: policy({ base: "1 hour", customBackoff: (retryCount) => [10, 0, -0.001][retryCount]! }),
        random: 0.5,
        errors: times(9),
        delays: [10, 0],
        reason: "schedule"
      },
      {
        name: "a custom backoff that gives no number",
        policy: policy({ customBackoff: (retryCount) => [NaN, undefined, "x"][retryCount] as number }),
        random: 0.5,
        errors: times(3),
        delays: [0, 0, 0],
        reason: "success"
      },
      {
        name: "a custom backoff that gives no number, and a hint",
        policy: policy({
          addRetryAfter: true,
          customBackoff: (retryCount) => ["100", NaN, null, "-1"][retryCount] as number,
          maxRetries: 4
        }),
        random: 0.5,
        errors: [hinted("5"), hinted("5"), hinted("5"), hinted("5")],
        delays: [5000, 5000, 5000, 5000],
        reason: "success"
      },
      {
        name: "a custom backoff does not make more retries",
        policy: policy({ maxRetries: 1, customBackoff: () => 5 }),
        random: 0.5,
        errors: times(9),
        delays: [5],
        reason: "max-attempts"
      },
      {
        name: "a redirect is retried immediately, and counts",
        policy: defaultPolicy,
        random: 0.5,
        errors: [redirect, transient, { redirect: true }, transient],
        delays: [0, 100, 0],
        reason: "max-attempts"
      },
      {
        name: "a redirect asks no backoff, waits for no hint",
        policy: policy({ addRetryAfter: true, customBackoff: () => -1 }),
        random: 0.5,
        errors: [{ statusCode: 301, headers: { location: "/", "retry-after": "9" } }],
        delays: [0],
        reason: "success"
      }
    ]

    for (const driver of drivers) {
      it.effect.each(vectors)(
        `vector: $name, ${driver.name}`,
        ({ delays, errors, policy, random, reason }) =>
          Effect.gen(function*() {
            assert.deepStrictEqual(yield* played(driver, policy, errors), { delays, reason })
          }).pipe(withRandom(random), Effect.provide(JavaScriptV2.layer))
      )
    }

    it.effect("gives the custom backoff the retries made so far and the error", () =>
      Effect.gen(function*() {
        for (const driver of drivers) {
          const asked: Array<readonly [number, unknown]> = []
          const errors = [transient, { ...transient }, { ...transient }]
          const custom = policy({ customBackoff: (...args) => (asked.push(args), 1) })
          yield* played(driver, custom, errors)
          assert.deepStrictEqual(asked.map(([retryCount]) => retryCount), [0, 1, 2])
          asked.forEach(([retryCount, error]) => assert.strictEqual(error, errors[retryCount]))
        }
      }))

    it.effect("never overflows", () =>
      Effect.gen(function*() {
        for (const random of [0, almostOne]) {
          const delays = yield* steppedDelays(policy({ maxRetries: Infinity }), 1100, transient).pipe(
            withRandom(random)
          )
          assert.isTrue(delays.every(Number.isSafeInteger))
          assert.strictEqual(delays[1099], random === 0 ? 0 : Number.MAX_SAFE_INTEGER - 1)
        }
      }).pipe(Effect.provide(RetryQuota.layerUnlimited)))

    it.each(
      [
        ["base", -1, () => policy({ base: -1 })],
        ["base", NaN, () => policy({ base: NaN })],
        ["base", Duration.infinity, () => policy({ base: Duration.infinity })],
        ["maxRetryAfter", -1, () => policy({ maxRetryAfter: -1 })],
        ["maxRetryAfter", Duration.infinity, () => policy({ addRetryAfter: true, maxRetryAfter: Duration.infinity })],
        ["maxRetries", -1, () => policy({ maxRetries: -1 })],
        ["maxRetries", 0.5, () => policy({ maxRetries: 0.5 })],
        ["maxRetries", NaN, () => policy({ maxRetries: NaN })]
      ] as const
    )("refuses %s %s", (field, _value, make) => {
      try {
        make()
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        assert.deepStrictEqual([error.constructorName, error.field], ["JavaScriptV2.policy", field])
        return
      }
      assert.fail("takes it")
    })
  })

  describe("classifier", () => {
    type Verdict = "throttled" | "timed out" | "retried" | "not retried"

    const verdict = (error: unknown, classifier = JavaScriptV2.classifier): Verdict =>
      Option.match(classifier(error), {
        onNone: () => "not retried" as const,
        onSome: ({ safety, throttling, timeout }) => {
          if (safety !== "Yes") return "not retried"
          if (throttling) return "throttled"
          return timeout ? "timed out" : "retried"
        }
      })

    // Source: aws-sdk 2.1693.0 lib/service.js, lib/event_listeners.js, lib/services/dynamodb.js.
    const vectors: ReadonlyArray<readonly [expected: Verdict, error: unknown]> = [
      ["retried", { statusCode: 500 }],
      ["retried", { statusCode: 501 }],
      ["retried", { statusCode: 599 }],
      ["not retried", { statusCode: 499 }],
      ["not retried", { statusCode: 400 }],
      ["not retried", { statusCode: 408 }],
      ["throttled", { statusCode: 429 }],
      ["retried", { $metadata: { httpStatusCode: 505 } }],
      ["retried", { status: 505 }],
      ...[
        "ProvisionedThroughputExceededException",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "TransactionInProgressException",
        "EC2ThrottledException"
      ].flatMap((code) => [
        ["throttled", { code, statusCode: 400 }] as const,
        ["throttled", { name: code }] as const,
        ["throttled", { Code: code }] as const
      ]),
      ...[
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "RequestTimeout",
        "SlowDown",
        "ThrottledException",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch"
      ].map((code) => ["not retried", { code, statusCode: 400 }] as const),
      ...["ExpiredTokenException", "ExpiredToken", "RequestExpired", "CRC32CheckFailed"].map(
        (code) => ["retried", { code, statusCode: 400 }] as const
      ),
      ["retried", { code: "NetworkingError" }],
      ["retried", { code: "UnknownEndpoint" }],
      ["timed out", { code: "TimeoutError" }],
      ["retried", { code: "InvalidSignatureException", message: "Signature expired: now", statusCode: 400 }],
      ["not retried", { code: "InvalidSignatureException", message: "Signature wrong", statusCode: 400 }],
      ["not retried", { code: "AccessDenied", message: "Signature expired: now", statusCode: 400 }],
      ["retried", { statusCode: 301, headers: { location: "/" } }],
      ["retried", { statusCode: 301, headers: { Location: "/" } }],
      ["retried", { statusCode: 307, headers: new Headers({ Location: "/" }) }],
      ["retried", statusError(307, { Location: "/" })],
      ["not retried", { statusCode: 304, headers: new Headers() }],
      ["retried", statusError(503)],
      ["retried", statusError(501)],
      ["throttled", statusError(429)],
      ["not retried", statusError(404)],
      ["retried", transportError()],
      ["timed out", transportError({ code: "ETIMEDOUT" })],
      ["retried", { message: "wrapped", cause: transportError() }],
      ["not retried", { _tag: "Other", reason: { _tag: "TransportError" } }],
      ["not retried", encodeError],
      ["retried", { statusCode: 399, $response: { headers: { location: "/" } } }],
      ["not retried", { statusCode: 304, headers: {} }],
      ["not retried", { statusCode: 299, headers: { location: "/" } }],
      ["not retried", { statusCode: 400, headers: { location: "/" } }],
      ["retried", { code: "Unknown", statusCode: 400, retryable: true }],
      ["throttled", { code: "Throttling", statusCode: 400, retryable: true }],
      ["not retried", { code: "Throttling", statusCode: 503, retryable: false }],
      ["retried", { code: "ECONNRESET" }],
      ["retried", { message: "wrapped", cause: { statusCode: 501 } }],
      ["retried", new Transient()],
      ["throttled", new Throttled({})],
      ["not retried", new Error("no such table")],
      ["not retried", undefined],
      ["not retried", "Throttling"]
    ]

    it.each(vectors)("vector: %s %j", (expected, error) => {
      assert.strictEqual(verdict(error), expected)
    })

    it.each([
      "AuthFailure",
      "InvalidSignatureException",
      "RequestExpired",
      "RequestInTheFuture",
      "RequestTimeTooSkewed",
      "SignatureDoesNotMatch"
    ])("correctingClockSkew retries %s", (code) => {
      assert.strictEqual(verdict({ code, statusCode: 403 }, JavaScriptV2.correctingClockSkew), "retried")
    })

    it("correctingClockSkew retries nothing else", () => {
      for (const [expected, error] of vectors) {
        const code = (error as { readonly code?: string } | undefined)?.code
        if (code === "RequestTimeTooSkewed" || code === "SignatureDoesNotMatch") continue
        if (code === "InvalidSignatureException") continue
        assert.strictEqual(verdict(error, JavaScriptV2.correctingClockSkew), expected)
      }
    })

    it("differential: every code at every status, as the service of the SDK decides", () => {
      const { prototype } = internals.Service
      const codes = vectors.flatMap(([, error]) => (error as { readonly code?: string } | undefined)?.code ?? [])
      // What event listeners decide later, or the SDK never meets.
      const later = new Set(["ExpiredToken", "RequestExpired", "CRC32CheckFailed", "UnknownEndpoint", "ECONNRESET"])
      let compared = 0
      for (const code of new Set([...codes, "Unknown"])) {
        if (later.has(code)) continue
        for (let statusCode = 100; statusCode < 600; statusCode++) {
          const error = { code, statusCode }
          const ours = verdict(error)
          assert.strictEqual(ours !== "not retried", prototype.retryableError(error), JSON.stringify(error))
          assert.strictEqual(ours === "throttled", prototype.throttledError(error), JSON.stringify(error))
          compared++
        }
      }
      assert.isAtLeast(compared, 10_000)
    })
  })

  describe("differential, calculateRetryDelay", () => {
    afterEach(() => vi.restoreAllMocks())

    it.effect("the delays of 31 retries by 5 bases by 8 numbers", () =>
      Effect.gen(function*() {
        const stub = vi.spyOn(Math, "random")
        for (const base of [undefined, 0, 1, 50, 300]) {
          for (const random of [0, 2 ** -53, 0.1, 1 / 3, 0.5, 0.7, 0.999, almostOne]) {
            stub.mockReturnValue(random)
            const theirs = Array.from(
              { length: 31 },
              (_, retryCount) => wholeMillis(internals.util.calculateRetryDelay(retryCount, { base }))
            )
            const policy = JavaScriptV2.policy({ base, maxRetries: Infinity })
            assert.deepStrictEqual(yield* steppedDelays(policy, 31, transient).pipe(withRandom(random)), theirs)
          }
        }
      }).pipe(Effect.provide(RetryQuota.layerUnlimited)))
  })

  describe("differential, service clients and credential requests on a local server", () => {
    let server: http.Server
    let origin = ""
    let responses: ReadonlyArray<Response> = []
    let sends = 0

    beforeAll(async () => {
      server = http.createServer((request, response) => {
        request.resume()
        request.on("end", () => {
          const { body = "{}", headers = {}, status } = responses[sends++] ?? { status: 200 }
          if (status === 0) return request.socket.destroy()
          response.writeHead(status, { "content-type": "application/x-amz-json-1.0", ...headers })
          response.end(body)
          return undefined
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    })

    afterAll(() => new Promise((resolve) => server.close(resolve)))

    /** What the SDK does with these responses: its delays, and whether it ended well. Its timers fire at once. */
    const theirs = async (
      given: ReadonlyArray<Response>,
      next: () => number,
      send: () => Promise<unknown>
    ): Promise<Outcome> => {
      responses = given
      sends = 0
      const delays: Array<number> = []
      const setTimer = globalThis.setTimeout
      const random = vi.spyOn(Math, "random").mockImplementation(next)
      const timer = vi.spyOn(globalThis, "setTimeout").mockImplementation(
        ((run: () => void, millis: number) => {
          delays.push(wholeMillis(millis))
          return setTimer(run, 0)
        }) as typeof setTimeout
      )
      const succeeds = await send().then(() => true, () => false)
      random.mockRestore()
      timer.mockRestore()
      assert.strictEqual(delays.length, sends - 1)
      return { delays, succeeds }
    }

    const credentials = { accessKeyId: "key", secretAccessKey: "secret" }

    /** One call of a service client, with these options of its own. */
    const call = (service: Service, options: ClientOptions) => {
      const config = {
        region: "us-east-1",
        endpoint: origin,
        credentials: new AWS.Credentials(credentials),
        ...options
      }
      return service === "dynamodb"
        ? new DynamoDB(config as DynamoDB.ClientConfiguration).listTables().promise()
        : new SQS(config as SQS.ClientConfiguration).listQueues().promise()
    }

    /** One request for credentials. */
    const request = (maxRetries: number, retryDelayOptions: DelayOptions | undefined) =>
      new Promise((resolve, reject) => {
        const httpRequest = new internals.HttpRequest(origin)
        httpRequest.method = "GET"
        internals.util.handleRequestWithRetries(
          httpRequest,
          { maxRetries, retryDelayOptions },
          (error, data) => error === null ? resolve(data) : reject(error as Error)
        )
      })

    /** What the policy does with errors of these responses, however it is run. */
    const ours = (policy: Policy, given: ReadonlyArray<Response>, seed: number, classifier: Classifier) =>
      Effect.gen(function*() {
        const errors = given.map(errorOf)
        const [first, ...others] = yield* Effect.forEach(
          drivers,
          (driver) => played(driver, policy, errors).pipe(withChance(chance(seed)))
        )
        for (const other of others) assert.deepStrictEqual(other, first)
        return { delays: first!.delays, succeeds: first!.reason === "success" }
      }).pipe(Effect.provide(RetryClassifier.layer(classifier)))

    for (const service of ["sqs", "dynamodb"] as const) {
      it.effect(`differential: 200 calls of ${service}, random outcomes and options`, () =>
        Effect.gen(function*() {
          const tally = { retries: 0, failures: 0, successes: 0 }
          for (let seed = 1; seed <= 200; seed++) {
            const pick = chance(seed)
            const options = optionsOf(pick)
            const given = responsesOf(service, options.maxRetries ?? defaultRetries[service], pick, origin)
            const expected = yield* Effect.promise(() =>
              theirs(given, chance(seed * 7919), () => call(service, options))
            )
            const policy = JavaScriptV2.policy({
              base: service === "dynamodb" ? 50 : 100,
              ...options.retryDelayOptions,
              maxRetries: options.maxRetries ?? defaultRetries[service]
            })
            const classifier = options.correctClockSkew ? JavaScriptV2.correctingClockSkew : JavaScriptV2.classifier
            const actual = yield* ours(policy, given, seed * 7919, classifier)
            assert.deepStrictEqual(actual, expected, `seed ${seed}: ${JSON.stringify({ options, given })}`)
            tally.retries += expected.delays.length
            tally[expected.succeeds ? "successes" : "failures"]++
          }
          assert.isAtLeast(tally.retries, 200)
          assert.isAtLeast(tally.successes, 40)
          assert.isAtLeast(tally.failures, 40)
        }))
    }

    it.effect("differential: 200 credential requests, random outcomes, options and hints", () =>
      Effect.gen(function*() {
        const tally = { retries: 0, failures: 0, successes: 0 }
        for (let seed = 1; seed <= 200; seed++) {
          const pick = chance(seed)
          const maxRetries = Math.floor(pick() * 7)
          const retryDelayOptions = delayOptionsOf(pick)
          const given = Array.from({ length: Math.floor(pick() * 9) }, () => hintedResponse(pick))
          const expected = yield* Effect.promise(() =>
            theirs(given, chance(seed * 7919), () => request(maxRetries, retryDelayOptions))
          )
          const policy = JavaScriptV2.policy({
            ...retryDelayOptions,
            maxRetries,
            addRetryAfter: true,
            maxRetryAfter: "2 minutes"
          })
          const actual = yield* ours(policy, given, seed * 7919, JavaScriptV2.classifier)
          assert.deepStrictEqual(actual, expected, `seed ${seed}: ${JSON.stringify({ maxRetries, given })}`)
          tally.retries += expected.delays.length
          tally[expected.succeeds ? "successes" : "failures"]++
        }
        assert.isAtLeast(tally.retries, 200)
        assert.isAtLeast(tally.successes, 30)
        assert.isAtLeast(tally.failures, 30)
      }))

    it.effect("the SDK follows 10 redirects more when its retries are made, this policy none", () =>
      Effect.gen(function*() {
        const given = Array.from({ length: 20 }, (): Response => ({ status: 307, headers: { location: origin } }))
        const expected = yield* Effect.promise(() => theirs(given, chance(1), () => call("sqs", {})))
        assert.deepStrictEqual(expected, { delays: Array<number>(13).fill(0), succeeds: false })
        const actual = yield* ours(JavaScriptV2.defaultPolicy, given, 1, JavaScriptV2.classifier)
        assert.deepStrictEqual(actual, { delays: [0, 0, 0], succeeds: false })
      }))

    it.effect("the SDK takes a connection lost after a redirect for another redirect, this policy does not", () =>
      Effect.gen(function*() {
        const given: ReadonlyArray<Response> = [{ status: 307, headers: { location: origin } }, cut]
        const expected = yield* Effect.promise(() => theirs(given, () => 0.5, () => call("sqs", {})))
        assert.deepStrictEqual(expected, { delays: [0, 0], succeeds: true })
        const errors = given.map(errorOf)
        for (const driver of drivers) {
          const { delays } = yield* played(driver, JavaScriptV2.defaultPolicy, errors)
          assert.deepStrictEqual(delays, [0, 100])
        }
      }).pipe(withRandom(0.5), Effect.provide(JavaScriptV2.layer)))

    it.live("example listTables: a client of the SDK, retried by the policy", () =>
      Effect.gen(function*() {
        responses = [{ status: 500 }, json(400, "ThrottlingException"), { status: 200, body: `{"TableNames":["a"]}` }]
        sends = 0
        const client = new DynamoDB({
          region: "us-east-1",
          endpoint: origin,
          credentials: new AWS.Credentials(credentials),
          maxRetries: 0
        })
        assert.deepStrictEqual(yield* Example.listTables(client), { TableNames: ["a"] })
        assert.strictEqual(sends, 3)
        responses = [json(400, "ValidationException")]
        sends = 0
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Example.listTables(client))))
        assert.strictEqual(sends, 1)
      }).pipe(withRandom(0.01)))
  })

  describe("example", () => {
    it.effect("brisk: 20 and 40 ms, then it stops", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* played(drivers[0]!, Example.brisk, Array(9).fill(transient)), {
          delays: [20, 40],
          reason: "schedule"
        })
      }))
  })
})

type Service = "sqs" | "dynamodb"
type Classifier = RetryClassifier.RetryClassifier

interface ClientOptions {
  readonly maxRetries?: number | undefined
  readonly retryDelayOptions?: DelayOptions | undefined
  readonly correctClockSkew?: boolean | undefined
}

/** What the server answers; status 0 cuts the connection. */
interface Response {
  readonly status: number
  readonly body?: string
  readonly headers?: Record<string, string>
}

interface Outcome {
  readonly delays: ReadonlyArray<number>
  readonly succeeds: boolean
}

/** A timer takes whole milliseconds: ours are rounded up, but for the noise of floats. */
const wholeMillis = (millis: number): number => Math.max(0, Math.ceil(millis - 1e-6))

const defaultRetries: Record<Service, number> = { sqs: 3, dynamodb: 10 }

const json = (status: number, code: string, message = "no"): Response => ({
  status,
  body: JSON.stringify({ __type: `com.amazonaws#${code}`, message })
})

const oneOf = <A>(pick: () => number, choices: ReadonlyArray<A>): A => choices[Math.floor(pick() * choices.length)]!

const delayOptionsOf = (pick: () => number): DelayOptions | undefined =>
  oneOf<DelayOptions | undefined>(pick, [
    undefined,
    {},
    { base: Math.floor(pick() * 1000) },
    { base: 0 },
    { customBackoff: (retryCount) => retryCount * 10 },
    { base: 5, customBackoff: (retryCount) => 15 - retryCount * 10 }
  ])

const optionsOf = (pick: () => number): ClientOptions => ({
  maxRetries: oneOf(pick, [undefined, undefined, 0, 1, 5]),
  retryDelayOptions: delayOptionsOf(pick),
  correctClockSkew: pick() < 0.5
})

const cut: Response = { status: 0 }

const corrupt: Response = { status: 200, headers: { "x-amz-crc32": "1" } }

/** Failures in turn, after which the server answers well. */
const responsesOf = (service: Service, maxRetries: number, pick: () => number, origin: string) => {
  const redirect: Response = { status: 307, headers: { location: origin } }
  const common: ReadonlyArray<Response> = [
    cut,
    ...[429, 500, 501, 502, 503, 504, 505].map((status) => ({ status })),
    { status: 503, headers: { "retry-after": "9" } },
    json(503, "SlowDown"),
    json(400, "ThrottlingException"),
    json(400, "ProvisionedThroughputExceededException"),
    json(400, "TransactionInProgressException"),
    json(400, "ExpiredTokenException"),
    json(400, "ExpiredToken"),
    json(400, "RequestExpired"),
    json(403, "InvalidSignatureException", "Signature expired: now"),
    ...(service === "dynamodb" ? [corrupt] : [])
  ]
  const rare: ReadonlyArray<Response> = [
    { status: 304 },
    { status: 400 },
    { status: 404 },
    json(400, "ThrottledException"),
    json(400, "LimitExceededException"),
    json(403, "InvalidSignatureException"),
    json(403, "SignatureDoesNotMatch"),
    json(400, "RequestTimeTooSkewed")
  ]
  const given: Array<Response> = []
  const length = Math.floor(pick() * (maxRetries + 3))
  while (given.length < length) {
    const last = given.at(-1)
    const next = pick() < 0.1 ? redirect : oneOf(pick, pick() < 0.06 ? rare : common)
    // Two places where ours differs on purpose: see the tests of that.
    if (next === redirect && given.length >= maxRetries) continue
    if (next === cut && last === redirect) continue
    given.push(next)
  }
  return given
}

const hintedResponse = (pick: () => number): Response => {
  const hint = oneOf(pick, [undefined, undefined, "0", "1", "120", "2.9", "12x", "x", "Wed, 21 Oct 2026 07:28:00 GMT"])
  return {
    status: oneOf(pick, [0, 429, 429, 500, 501, 503, 503, 505, pick() < 0.3 ? 404 : 500]),
    headers: hint === undefined ? {} : { "retry-after": hint }
  }
}

/** The error of a response, as one reads it off the wire. */
const errorOf = (response: Response): unknown => {
  const { body = "{}", headers = {}, status } = response
  if (status === 0) return { code: "ECONNRESET" }
  if (response === corrupt) return { code: "CRC32CheckFailed", statusCode: status }
  const { __type, message } = JSON.parse(body) as { readonly __type?: string; readonly message?: string }
  return { code: __type?.slice(__type.indexOf("#") + 1), message, statusCode: status, headers }
}
