import { assert, describe, it } from "@effect/vitest"
import DynamoDB from "aws-sdk/clients/dynamodb.js"
import SQS from "aws-sdk/clients/sqs.js"
import AWS from "aws-sdk/global.js"
import { RetryClassifier, RetryQuota } from "effect-retry"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Random from "effect/Random"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, afterEach, beforeAll, vi } from "vitest"
import * as Example from "../../../examples/legacy-modes.ts"
import { budget } from "../../utils/budget.ts"
import { constantRandom, Throttled, Transient } from "../../utils/call.ts"
import { type CallVector, verdictOf } from "../../utils/conformance.ts"
import { refuses } from "../../utils/refuses.ts"
import { drivers, played, type Policy, sdkError, steppedDelays, type Wire } from "../../utils/vectors.ts"
import { calls, clockSkewCodes, errors } from "../../vectors/javaScriptV2.ts"

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

/** The greatest random number. */
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

const policyOf = (given: CallVector["given"]) => {
  const { addRetryAfter, baseMs, customBackoffMs, dynamoDB, maxAttempts, maxRetryAfterMs } = given
  const custom = customBackoffMs && ((retryCount: number) => customBackoffMs[retryCount] as number)
  const own = { base: baseMs, addRetryAfter, maxRetryAfter: maxRetryAfterMs, customBackoff: custom }
  if (dynamoDB) return JavaScriptV2.dynamoDBPolicy
  if (maxAttempts === undefined && Object.values(own).every((value) => value === undefined)) {
    return JavaScriptV2.defaultPolicy
  }
  return JavaScriptV2.policy({ ...own, maxRetries: maxAttempts === undefined ? undefined : maxAttempts - 1 })
}

/** The shapes in which an error comes, that of the SDK first. */
const shapesOf = (wire: Wire): readonly [unknown, ...ReadonlyArray<unknown>] => {
  const { code, headers, message, network, status } = wire
  if (network !== undefined) return [sdkError(wire)]
  const rest = { ...(message !== undefined && { message }), ...(headers !== undefined && { headers }) }
  const first = { ...(code !== undefined && { code }), ...(status !== undefined && { statusCode: status }), ...rest }
  if (headers !== undefined) {
    return [first, { statusCode: status, headers: new Headers(headers) }, {
      statusCode: status,
      $response: { headers }
    }, statusError(status!, headers)]
  }
  if (code === undefined) {
    return [first, { $metadata: { httpStatusCode: status } }, { status }, statusError(status!), {
      message: "wrapped",
      cause: first
    }]
  }
  return message === undefined ? [first, { name: code, status }, { Code: code, status }] : [first]
}

describe("JavaScriptV2", () => {
  describe("policy", () => {
    const { policy } = JavaScriptV2

    for (const driver of drivers) {
      it.effect.each(calls)(`vector: $name, ${driver.name}`, ({ errors, expected, given }) =>
        Effect.gen(function*() {
          const raised = errors.map((error) => shapesOf(error)[0])
          assert.deepStrictEqual(yield* played(driver, policyOf(given), raised), expected)
        }).pipe(withRandom(given.random), Effect.provide(JavaScriptV2.layer)))
    }

    it.effect("treats a custom backoff of NaN or undefined as none", () =>
      Effect.gen(function*() {
        const nothing = policy({ customBackoff: (retryCount) => [NaN, undefined][retryCount] as number })
        assert.deepStrictEqual(yield* played(drivers[0]!, nothing, [transient, transient]), {
          delays: [0, 0],
          outcome: "success"
        })
      }))

    it.effect("knows redirects and hints of every shape of an error", () =>
      Effect.gen(function*() {
        const errors = [
          { redirect: true },
          { statusCode: 503, retryable: true, retryAfter: 2000 },
          { statusCode: 503, headers: { "Retry-After": "3" } },
          { status: 503, response: { headers: new Headers({ "Retry-After": "2" }) } },
          statusError(503, { "Retry-After": "1" })
        ]
        assert.deepStrictEqual(yield* played(drivers[0]!, policy({ addRetryAfter: true, maxRetries: 9 }), errors), {
          delays: [0, 2100, 3200, 2400, 1800],
          outcome: "success"
        })
      }).pipe(withRandom(0.5), Effect.provide(JavaScriptV2.layer)))

    it.effect("passes the retries made so far and the error to the custom backoff", () =>
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
      refuses(make, { constructorName: "JavaScriptV2.policy", field })
    })
  })

  describe("classifier", () => {
    const decided = (error: unknown, classifier = JavaScriptV2.classifier) => {
      const { timeout, verdict } = { timeout: false, ...verdictOf(classifier, error) }
      return timeout ? "timeout" : verdict
    }

    it.each(errors)("vector: $error is $verdict", ({ error, timeout, verdict }) => {
      for (const shape of shapesOf(error)) {
        assert.strictEqual(decided(shape), timeout ? "timeout" : verdict, JSON.stringify(shape))
      }
    })

    it.each<[expected: string, error: unknown]>([
      ["transient", transportError()],
      ["timeout", transportError({ code: "ETIMEDOUT" })],
      ["transient", { message: "wrapped", cause: transportError() }],
      ["final", { _tag: "Other", reason: { _tag: "TransportError" } }],
      ["final", encodeError],
      ["throttling", { name: "Throttling" }],
      ["transient", { code: "Unknown", statusCode: 400, retryable: true }],
      ["throttling", { code: "Throttling", statusCode: 400, retryable: true }],
      ["final", { code: "Throttling", statusCode: 503, retryable: false }],
      ["transient", new Transient()],
      ["throttling", new Throttled({})],
      ["final", new Error("no such table")],
      ["final", undefined],
      ["final", "Throttling"]
    ])("%s: %j", (expected, error) => {
      assert.strictEqual(decided(error), expected)
    })

    it.each(clockSkewCodes)("vector: correctingClockSkew retries %s", (code) => {
      assert.strictEqual(decided({ code, statusCode: 403 }, JavaScriptV2.correctingClockSkew), "transient")
    })

    it("correctingClockSkew retries nothing else", () => {
      for (const { error, timeout, verdict } of errors) {
        if (clockSkewCodes.includes(error.code ?? "")) continue
        for (const shape of shapesOf(error)) {
          assert.strictEqual(decided(shape, JavaScriptV2.correctingClockSkew), timeout ? "timeout" : verdict)
        }
      }
    })

    it("differential: every code at every status, as the service of the SDK decides", () => {
      const { prototype } = internals.Service
      const codes = errors.flatMap(({ error: { code } }) => code ?? [])
      // What event listeners decide later, or the SDK never meets.
      const later = new Set(["ExpiredToken", "RequestExpired", "CRC32CheckFailed", "UnknownEndpoint", "ECONNRESET"])
      let compared = 0
      for (const code of new Set([...codes, "Unknown"])) {
        if (later.has(code)) continue
        for (let statusCode = 100; statusCode < 600; statusCode++) {
          const error = { code, statusCode }
          const ours = decided(error)
          assert.strictEqual(ours !== "final", prototype.retryableError(error), JSON.stringify(error))
          assert.strictEqual(ours === "throttling", prototype.throttledError(error), JSON.stringify(error))
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

    /** What the SDK does with these responses: its delays, and whether it succeeded. Its timers fire immediately. */
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
        return { delays: first!.delays, succeeds: first!.outcome === "success" }
      }).pipe(Effect.provide(RetryClassifier.layer(classifier)))

    const seeds = budget(200, 40)

    for (const service of ["sqs", "dynamodb"] as const) {
      it.effect(`differential: ${seeds} calls of ${service}, random outcomes and options`, () =>
        Effect.gen(function*() {
          const tally = { retries: 0, failures: 0, successes: 0 }
          for (let seed = 1; seed <= seeds; seed++) {
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
          assert.isAtLeast(tally.retries, seeds)
          assert.isAtLeast(tally.successes, seeds / 5)
          assert.isAtLeast(tally.failures, seeds / 5)
        }))
    }

    it.effect(`differential: ${seeds} credential requests, random outcomes, options and hints`, () =>
      Effect.gen(function*() {
        const tally = { retries: 0, failures: 0, successes: 0 }
        for (let seed = 1; seed <= seeds; seed++) {
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
        // The first seeds retry less than most.
        assert.isAtLeast(tally.retries, budget(200, 30))
        assert.isAtLeast(tally.successes, seeds * 0.15)
        assert.isAtLeast(tally.failures, seeds * 0.15)
      }))

    it.effect("the SDK follows 10 more redirects after its retries, this policy none", () =>
      Effect.gen(function*() {
        const given = Array.from({ length: 20 }, (): Response => ({ status: 307, headers: { location: origin } }))
        const expected = yield* Effect.promise(() => theirs(given, chance(1), () => call("sqs", {})))
        assert.deepStrictEqual(expected, { delays: Array<number>(13).fill(0), succeeds: false })
        const actual = yield* ours(JavaScriptV2.defaultPolicy, given, 1, JavaScriptV2.classifier)
        assert.deepStrictEqual(actual, { delays: [0, 0, 0], succeeds: false })
      }))

    it.effect("the SDK treats a connection lost after a redirect as another redirect, this policy does not", () =>
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

    it.live("example: a client of the SDK, retried by the policy", () =>
      Effect.gen(function*() {
        responses = [{ status: 500 }, json(400, "ThrottlingException"), { status: 200, body: `{"TableNames":["a"]}` }]
        sends = 0
        const client = new DynamoDB({
          region: "us-east-1",
          endpoint: origin,
          credentials: new AWS.Credentials(credentials),
          maxRetries: 0
        })
        const listed = Example.asJavaScript(() => client.listTables({}).promise())
        assert.deepStrictEqual((yield* listed).TableNames, ["a"])
        assert.strictEqual(sends, 3)
        responses = [json(400, "ValidationException")]
        sends = 0
        assert.isTrue(Exit.isFailure(yield* Effect.exit(listed)))
        assert.strictEqual(sends, 1)
      }).pipe(withRandom(0.01)))
  })

  describe("example", () => {
    it.effect("brisk: 20 and 40 ms, then it stops", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* played(drivers[0]!, Example.brisk, Array(9).fill(transient)), {
          delays: [20, 40],
          outcome: "stopped"
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

/** A timer takes whole milliseconds: ours are rounded up, except for float noise. */
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
    // Two places where ours differs on purpose: see their tests.
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

/** The error of a response, as read off the wire. */
const errorOf = (response: Response): unknown => {
  const { body = "{}", headers = {}, status } = response
  if (status === 0) return { code: "ECONNRESET" }
  if (response === corrupt) return { code: "CRC32CheckFailed", statusCode: status }
  const { __type, message } = JSON.parse(body) as { readonly __type?: string; readonly message?: string }
  return { code: __type?.slice(__type.indexOf("#") + 1), message, statusCode: status, headers }
}
