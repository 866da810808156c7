import { assert, describe, it } from "@effect/vitest"
import { CanceledError } from "axios"
import { RetryClassifier, RetryInfo, RetryPolicy, withRetryOrElse } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPolicyImport from "effect-retry/RetryPolicyImport"
import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { HttpClientError, TransportError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { clientOf } from "../reliability/utils/http.ts"
import { secondsOf } from "../utils/cpu.ts"

type Imported = RetryPolicyImport.Imported

/** The waits of a call that always fails, in milliseconds, and why it ended. */
const trace = ({ classifier, policy }: Imported, most: number, error: unknown = { _tag: "Down" }, failsFor = 0) =>
  Effect.gen(function*() {
    const waits: Array<number> = []
    let last: number | undefined = undefined
    const call = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      if (last !== undefined) waits.push(now - last)
      if (failsFor > 0) yield* Effect.sleep(failsFor)
      last = yield* Clock.currentTimeMillis
      return yield* waits.length === most ? Effect.succeed("enough") : Effect.fail(error)
    })
    const fiber = yield* Effect.forkChild(
      withRetryOrElse(call, policy, (_error: unknown, { reason }) => Effect.succeed(reason)).pipe(
        Effect.provide(RetryClassifier.layer(classifier))
      )
    )
    yield* TestClock.adjust("365 days")
    return [waits, yield* Fiber.join(fiber)] as const
  }).pipe(Effect.provide(TestClock.layer()))

const seconds = (...delays: ReadonlyArray<number>) => delays.map((delay) => delay * 1000)

/** The path of what is refused. */
const refused = <A>(imported: Effect.Effect<A, { readonly field: string }>) =>
  Effect.map(Effect.flip(imported), ({ field }) => field)

const assertData = ({ policy }: Imported) =>
  Effect.gen(function*() {
    const again = yield* RetryPolicyJson.fromJson(JSON.parse(JSON.stringify(policy)))
    assert.strictEqual(String(again), String(policy))
  })

const aborted = new DOMException("aborted", "AbortError")

const transport = (cause: unknown) =>
  new HttpClientError({ reason: new TransportError({ request: HttpClientRequest.get("http://a/"), cause }) })

/** What no policy repeats, whatever its document lists. */
class Sold extends RetryInfo.TaggedError("Sold", { safety: "No" })<{}> {}

const forbidden: ReadonlyArray<readonly [name: string, error: unknown]> = [
  ["whose facts forbid it", Object.assign(new Sold(), { code: 14, details: "down", status: 503 })],
  ["that a cause forbids", new Error("order", { cause: new Sold() })],
  ["of a caller who aborted", aborted],
  ["caused by that", new Error("order", { cause: aborted })],
  ["of Effect's client, caused by that", transport(aborted)],
  ["of axios for that", new CanceledError()],
  ["of a certificate", transport(new TypeError("fetch failed", { cause: { code: "CERT_HAS_EXPIRED" } }))],
  // Envoy: retry_state_impl.cc, Policy5xxRemote503Overloaded of its tests.
  ["with x-envoy-overloaded", { status: 503, headers: { "x-envoy-overloaded": "true" } }],
  ["with x-should-retry: false", { status: 503, headers: { "x-should-retry": "false" } }],
  // gRPC proposal A6: a pushback that is negative forbids the retry.
  ["with a negative pushback", { code: 14, details: "down", metadata: { "grpc-retry-pushback-ms": "-1" } }]
]

describe("a veto holds under an imported classifier: an error", () => {
  const endOf = (imported: Imported, error: unknown) => Effect.map(trace(imported, 1, error), ([, end]) => end)
  const none = ["enough", "max-attempts"]
  it.effect.each(forbidden)("%s", ([, error]) =>
    Effect.gen(function*() {
      const temporal = yield* RetryPolicyImport.fromTemporal({})
      const [states] = yield* RetryPolicyImport.fromStepFunctions([{ ErrorEquals: ["States.ALL"] }])
      const envoy = yield* RetryPolicyImport.fromEnvoyRoute({
        route: { retry_policy: { retry_on: "5xx,unavailable" } }
      })
      const { methods: [method] } = yield* RetryPolicyImport.fromGrpcServiceConfig({
        methodConfig: [{
          name: [{}],
          retryPolicy: {
            maxAttempts: 4,
            initialBackoff: "1s",
            maxBackoff: "1s",
            backoffMultiplier: 1,
            retryableStatusCodes: [14]
          }
        }]
      })
      for (const imported of [temporal, states!, envoy, method!]) assert.notInclude(none, yield* endOf(imported, error))
    }))

  it.effect("also where RetryHttp is given the classifier, or finds it", () =>
    Effect.gen(function*() {
      const overloaded = { status: 503, headers: { "x-envoy-overloaded": "true" } }
      const { classifier, policy } = yield* RetryPolicyImport.fromEnvoyRoute({
        route: { retry_policy: { retry_on: "5xx", num_retries: 2 } }
      })
      for (const own of [classifier, undefined]) {
        const { client, times } = clientOf([overloaded, overloaded, overloaded])
        yield* Kit.runToEnd(
          RetryHttp.retry(client, policy, { classifier: own }).get("http://a/").pipe(
            Effect.provide(RetryClassifier.layer(classifier))
          )
        )
        assert.strictEqual(times.length, 1)
      }
    }))

  it.effect("also of a body, where RetryHttp is given the classifier", () =>
    Effect.gen(function*() {
      const spent = {
        status: 429,
        headers: { "content-type": "application/json" },
        body: `{"error":{"code":"insufficient_quota"}}`
      }
      const route = {
        retry_policy: { retry_on: "retriable-status-codes", retriable_status_codes: [429], num_retries: 2 }
      }
      const { classifier, policy } = yield* RetryPolicyImport.fromEnvoyRoute({ route })
      for (const own of [classifier, RetryClassifier.defaultClassifier]) {
        const { client, times } = clientOf([spent, spent, spent])
        const response = yield* Kit.runToEnd(RetryHttp.retry(client, policy, { classifier: own }).get("http://a/"))
        assert.strictEqual(times.length, 1)
        assert.strictEqual(yield* response.text, spent.body)
      }
    }))

  it.effect("keeps its reason", () =>
    Effect.gen(function*() {
      const { policy, classifier } = yield* RetryPolicyImport.fromTemporal({})
      const vetoed = RetryInfo.vetoed
      const error = Object.assign(new Error("refused"), { [RetryInfo.TypeId]: vetoed })
      assert.strictEqual(yield* endOf({ policy, classifier }, error), "vetoed")
    }))
})

describe("fromTemporal", () => {
  it.effect("waits as the service does: its own tests", () =>
    Effect.gen(function*() {
      // service/history/workflow/retry_test.go: the delay after this many attempts; where it stops, its word for that.
      const rows = [
        { attempt: 1, maximumAttempts: 5, initialInterval: "5s", maximumInterval: "10s", delay: 5 },
        {
          attempt: 4,
          maximumAttempts: 5,
          initialInterval: "2s",
          maximumInterval: "200s",
          backoffCoefficient: 3,
          delay: 54
        },
        { attempt: 5, maximumAttempts: 20, initialInterval: "3s", maximumInterval: "1s", delay: 1 },
        { attempt: 10, maximumAttempts: 10, initialInterval: "3s", maximumInterval: "10s", delay: "max-attempts" },
        { attempt: 10, maximumAttempts: 0, initialInterval: "2s", maximumInterval: "1800s", delay: 1024 }
      ]
      for (const { attempt, delay, ...json } of rows) {
        const [waits, end] = yield* trace(yield* RetryPolicyImport.fromTemporal(json), attempt)
        assert.strictEqual(
          typeof delay === "number" ? waits[attempt - 1] : end,
          typeof delay === "number" ? delay * 1000 : delay
        )
      }
      const { classifier, policy } = yield* RetryPolicyImport.fromTemporal({
        initialInterval: "2s",
        maximumInterval: "1800s"
      })
      const expiring = { classifier, policy: RetryPolicy.deadline(policy, "60 seconds") }
      assert.strictEqual((yield* trace(expiring, 10))[1], "deadline")
    }))

  it.effect("has the defaults of the service", () =>
    Effect.gen(function*() {
      const imported = yield* RetryPolicyImport.fromTemporal({})
      assert.deepStrictEqual(yield* trace(imported, 10), [seconds(1, 2, 4, 8, 16, 32, 64, 100, 100, 100), "enough"])
      assert.strictEqual(
        String(imported.policy),
        `Backoff.exponential("1 second").pipe(RetryPolicy.capped("100 seconds"), RetryPolicy.whileRetryable)`
      )
      yield* assertData(imported)
    }))

  it.effect("does not overflow, from a nanosecond on", () =>
    Effect.gen(function*() {
      const imported = yield* RetryPolicyImport.fromTemporal({ initialInterval: 1e-6, maximumInterval: "1h" })
      const [waits] = yield* trace(imported, 65)
      assert.strictEqual(waits.at(-1), 3_600_000)
    }))

  it.effect("retries anything but the types that it lists", () =>
    Effect.gen(function*() {
      const imported = yield* RetryPolicyImport.fromTemporal({ nonRetryableErrorTypes: ["CardStolen"] })
      assert.deepStrictEqual(yield* trace(imported, 1, { _tag: "CardStolen" }), [[], "final"])
      assert.deepStrictEqual(yield* trace(imported, 1, new Error("anything")), [[1000], "enough"])
    }))

  // The failures of temporalio/sdk-typescript, `common/src/failure.ts`; what the service does with each: `isRetryable` of
  // service/history/workflow/retry.go.
  const failures: ReadonlyArray<readonly [failure: object, end: string]> = [
    [{ name: "ApplicationFailure", type: "Down", nonRetryable: false }, "enough"],
    [{ name: "ApplicationFailure", type: "Down", nonRetryable: true }, "final"],
    [{ name: "ServerFailure", nonRetryable: true }, "final"],
    [{ name: "ServerFailure", nonRetryable: false }, "enough"],
    [{ name: "CancelledFailure" }, "final"],
    [{ name: "TerminatedFailure" }, "final"],
    [{ name: "TimeoutFailure", timeoutType: "START_TO_CLOSE" }, "enough"],
    [{ name: "TimeoutFailure", timeoutType: "HEARTBEAT" }, "enough"],
    [{ name: "TimeoutFailure", timeoutType: "SCHEDULE_TO_START" }, "final"],
    [{ name: "TimeoutFailure", timeoutType: "SCHEDULE_TO_CLOSE" }, "final"],
    [{ name: "ActivityFailure", cause: { name: "ApplicationFailure", nonRetryable: true } }, "enough"]
  ]
  it.effect.each(failures)("a failure %j ends with %s", ([failure, end]) =>
    Effect.gen(function*() {
      const imported = yield* RetryPolicyImport.fromTemporal({})
      assert.strictEqual((yield* trace(imported, 1, Object.assign(new Error(), failure)))[1], end)
    }))

  // temporalio/sdk-typescript reads durations with the npm package ms: these are its documented forms.
  const durations: ReadonlyArray<readonly [text: string, millis: number]> = [
    ["1 second", 1000],
    ["2 seconds", 2000],
    ["50 milliseconds", 50],
    ["1 minute", 60_000],
    ["2 mins", 120_000],
    ["1 hour", 3_600_000],
    ["2 hrs", 7_200_000],
    ["2.5 hrs", 9_000_000],
    ["2 days", 172_800_000],
    ["5s", 5000],
    ["1 sec", 1000],
    ["100 msecs", 100],
    ["10h", 36_000_000],
    ["1 Second", 1000],
    // What this library prints.
    ["50 millis", 50],
    ["1 millis", 1]
  ]
  it.effect.each(durations)("reads %j", ([initialInterval, millis]) =>
    Effect.gen(function*() {
      const imported = yield* RetryPolicyImport.fromTemporal({ initialInterval })
      assert.deepStrictEqual(yield* trace(imported, 1), [[millis], "enough"])
    }))

  it.effect.each(["1 fortnight", "1 secondly", "second", "1 s s", "1,5s", "-1 second"])(
    "refuses %j",
    (initialInterval) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* refused(RetryPolicyImport.fromTemporal({ initialInterval })), "initialInterval")
      })
  )

  it.effect("names what is wrong", () =>
    Effect.gen(function*() {
      const field = (json: unknown) => refused(RetryPolicyImport.fromTemporal(json))
      assert.strictEqual(yield* field({ initialInterval: "soon" }), "initialInterval")
      assert.strictEqual(yield* field({ backoffCoefficient: 0.5 }), "backoffCoefficient")
      assert.strictEqual(yield* field({ maximumAttempts: 1.5 }), "maximumAttempts")
      assert.strictEqual(yield* field({ nonRetryableErrorTypes: ["a", 1] }), "nonRetryableErrorTypes[1]")
      assert.strictEqual(yield* field({ maxAttempts: 3 }), "maxAttempts")
      assert.strictEqual(yield* field({ initial_interval: "5s" }), "initial_interval")
    }))
})

describe("fromStepFunctions", () => {
  it("takes time that grows as its retriers do", () => {
    const retriers = Array.from({ length: 4000 }, (_, n) => ({ ErrorEquals: [`E${n}`] }))
    const seconds = secondsOf(() => {
      const made = Effect.runSync(RetryPolicyImport.fromStepFunctions(retriers))
      assert.isTrue(Option.isSome(RetryClassifier.classify(made.at(-1)!.classifier, { name: "E3999" })))
    })
    assert.isBelow(seconds, 3)
  })

  const first = (retrier: object) =>
    Effect.map(RetryPolicyImport.fromStepFunctions([{ ErrorEquals: ["States.ALL"], ...retrier }]), ([only]) => only!)

  it.effect("waits as the language says: its own examples, and rows computed from its rule", () =>
    Effect.gen(function*() {
      const rows: ReadonlyArray<readonly [object, ReadonlyArray<number>]> = [
        [{ IntervalSeconds: 3, MaxAttempts: 2, BackoffRate: 1.5 }, [3, 4.5]],
        [{ IntervalSeconds: 3, MaxAttempts: 3, BackoffRate: 2 }, [3, 6, 12]],
        [{ MaxAttempts: 8, MaxDelaySeconds: 5 }, [1, 2, 4, 5, 5, 5, 5, 5]],
        [{ IntervalSeconds: 3, MaxAttempts: 5 }, [3, 6, 12, 24, 48]],
        [{ IntervalSeconds: 2, BackoffRate: 1, MaxAttempts: 4 }, [2, 2, 2, 2]],
        [{}, [1, 2, 4]],
        [{ MaxAttempts: 0 }, []]
      ]
      for (const [retrier, delays] of rows) {
        const imported = yield* first(retrier)
        assert.deepStrictEqual(yield* trace(imported, 100), [seconds(...delays), "max-attempts"])
        yield* assertData(imported)
      }
    }))

  it.effect("uses full jitter if configured", () =>
    Effect.gen(function*() {
      const imported = yield* first({ IntervalSeconds: 4, JitterStrategy: "FULL" })
      assert.deepStrictEqual((yield* trace(imported, 3))[0], seconds(1, 2, 4))
      assert.include(String(imported.policy), `RetryPolicy.jittered("full")`)
    }).pipe(Effect.provide(Kit.fixedRandom(0.25))))

  it.effect("gives each error to the first retrier that takes it", () =>
    Effect.gen(function*() {
      const retriers = yield* RetryPolicyImport.fromStepFunctions({
        Type: "Task",
        Retry: [
          { ErrorEquals: ["Busy", "States.Timeout"] },
          { ErrorEquals: ["Never"], MaxAttempts: 0 },
          { ErrorEquals: ["States.ALL"] }
        ]
      })
      const takers = (error: unknown) =>
        retriers.flatMap(({ classifier }, index) =>
          Option.exists(classifier(error), ({ safety }) => safety === "Yes") ? [index] : []
        )
      assert.deepStrictEqual(takers({ name: "Busy" }), [0])
      assert.deepStrictEqual(takers({ name: "TimeoutError" }), [0])
      assert.deepStrictEqual(takers({ _tag: "Never" }), [1])
      assert.deepStrictEqual(takers({ _tag: "Other" }), [2])
      assert.deepStrictEqual(takers({ name: "States.Runtime" }), [])
    }))

  it.effect("names what is wrong", () =>
    Effect.gen(function*() {
      const field = (...Retry: ReadonlyArray<object>) => refused(RetryPolicyImport.fromStepFunctions({ Retry }))
      const all = { ErrorEquals: ["States.ALL"] }
      assert.strictEqual(yield* field(all, { ErrorEquals: ["A"] }), "Retry[0].ErrorEquals")
      assert.strictEqual(yield* field({ ErrorEquals: ["States.ALL", "A"] }), "Retry[0].ErrorEquals")
      assert.strictEqual(yield* field({ ErrorEquals: [] }), "Retry[0].ErrorEquals")
      assert.strictEqual(yield* field({ ...all, BackoffRate: 0.9 }), "Retry[0].BackoffRate")
      assert.strictEqual(yield* field({ ...all, MaxDelaySeconds: 31_622_400 }), "Retry[0].MaxDelaySeconds")
      assert.strictEqual(yield* field({ ...all, JitterStrategy: "HALF" }), "Retry[0].JitterStrategy")
      assert.strictEqual(yield* field({ ...all, IntervalSeconds: 0 }), "Retry[0].IntervalSeconds")
      assert.strictEqual(yield* field({ ...all, MaxAttempt: 1 }), "Retry[0].MaxAttempt")
      yield* RetryPolicyImport.fromStepFunctions([{ ...all, Comment: "all of them" }])
    }))
})

describe("fromGrpcServiceConfig", () => {
  // The example of proposal A6, word for word.
  const retryPolicy = JSON.parse(`{
    "maxAttempts": 4,
    "initialBackoff": ".1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": [
      "UNAVAILABLE"
    ]
  }`)
  const imported = (json: object) => RetryPolicyImport.fromGrpcServiceConfig(json)
  const only = (json: object, config: object = {}) =>
    Effect.map(
      imported({
        methodConfig: [{ name: [{ service: "orders" }], retryPolicy: { ...retryPolicy, ...json }, ...config }]
      }),
      ({ methods }) => methods[0]!
    )
  const unavailable = { code: 14, details: "down", metadata: {} }

  it.effect("waits 0.8 to 1.2 times the growing delay", () =>
    Effect.gen(function*() {
      const shares = [[0, 0.8], [0.5, 1], [0.999999999, 1.2]] as const
      for (const [random, share] of shares) {
        const method = yield* only({ maxAttempts: 5 })
        const [waits, end] = yield* Effect.provide(trace(method, 100, unavailable), Kit.fixedRandom(random))
        assert.deepStrictEqual(waits, [100, 200, 400, 800].map((delay) => Math.round(delay * share)))
        assert.strictEqual(end, "max-attempts")
        yield* assertData(method)
      }
    }))

  it.effect("takes more than five attempts as five, and the timeout as the deadline", () =>
    Effect.gen(function*() {
      assert.strictEqual(RetryPolicy.limits((yield* only({ maxAttempts: 10 })).policy).maxAttempts, 5)
      const { deadline } = RetryPolicy.limits((yield* only({}, { timeout: "2.5s" })).policy)
      assert.strictEqual(Duration.toMillis(deadline), 2500)
    }))

  it.effect("retries the statuses that it lists, by name in any case or by number, and no others", () =>
    Effect.gen(function*() {
      const method = yield* only({ retryableStatusCodes: ["unavailable", 8] })
      const ends = []
      for (const code of [14, 8, 5, 13]) ends.push((yield* trace(method, 1, { ...unavailable, code }))[1])
      assert.deepStrictEqual(ends, ["enough", "enough", "final", "final"])
    }))

  it.effect("returns the methods and the throttle, whose ratio has three decimals", () =>
    Effect.gen(function*() {
      const { methods, throttling } = yield* imported({
        loadBalancingConfig: [],
        methodConfig: [
          { name: [{ service: "orders", method: "Place" }, { service: "orders", method: "Cancel" }], retryPolicy },
          { name: [{ service: "stock" }], timeout: "1s" },
          { name: [{}], retryPolicy }
        ],
        retryThrottling: { maxTokens: 10, tokenRatio: 0.5466 }
      })
      assert.deepStrictEqual(methods.map(({ names }) => names), [
        [{ service: "orders", method: "Place" }, { service: "orders", method: "Cancel" }],
        [{ service: "", method: undefined }]
      ])
      assert.deepStrictEqual(throttling, { maxTokens: 10, tokenRatio: 0.546 })
    }))

  it.effect("names what is wrong", () =>
    Effect.gen(function*() {
      const field = (json: object, config?: object) => refused(only(json, config))
      const policy = "methodConfig[0].retryPolicy"
      assert.strictEqual(yield* field({ maxAttempts: 1 }), `${policy}.maxAttempts`)
      assert.strictEqual(yield* field({ initialBackoff: "0s" }), `${policy}.initialBackoff`)
      assert.strictEqual(yield* field({ maxBackoff: undefined }), `${policy}.maxBackoff`)
      assert.strictEqual(yield* field({ backoffMultiplier: 0 }), `${policy}.backoffMultiplier`)
      assert.strictEqual(yield* field({ retryableStatusCodes: [] }), `${policy}.retryableStatusCodes`)
      assert.strictEqual(yield* field({ retryableStatusCodes: ["DOWN"] }), `${policy}.retryableStatusCodes[0]`)
      assert.strictEqual(yield* field({}, { hedgingPolicy: {} }), "methodConfig[0].hedgingPolicy")
      assert.strictEqual(yield* field({}, { name: [{ method: "Place" }] }), "methodConfig[0].name[0].service")
      assert.strictEqual(yield* field({ perAttemptRecvTimeout: "1s" }), `${policy}.perAttemptRecvTimeout`)
      const place = { service: "orders", method: "Place" }
      const twice = [{ name: [{ service: "orders" }, place], retryPolicy }, { name: [{}, place], timeout: "1s" }]
      assert.strictEqual(yield* refused(imported({ methodConfig: twice })), "methodConfig[1].name[1]")
      const throttle = (retryThrottling: object) => refused(imported({ retryThrottling }))
      assert.strictEqual(yield* throttle({ maxTokens: 1001, tokenRatio: 0.1 }), "retryThrottling.maxTokens")
      assert.strictEqual(yield* throttle({ maxTokens: 0, tokenRatio: 0.1 }), "retryThrottling.maxTokens")
      assert.strictEqual(yield* throttle({ maxTokens: 10, tokenRatio: 0.0004 }), "retryThrottling.tokenRatio")
    }))
})

describe("fromEnvoyRoute", () => {
  const imported = (retry_policy: object, route: object = {}) =>
    RetryPolicyImport.fromEnvoyRoute({
      route: { timeout: "0s", ...route, retry_policy: { retry_on: "5xx", ...retry_policy } }
    })

  it.effect("jitters as Envoy does: its own tests", () =>
    Effect.gen(function*() {
      // retry_state_impl_test.cc: random numbers, of which the remainder by the ceiling is taken.
      const rows = [
        { ceilings: [25, 50, 100], random: [190, 190, 190], delays: [15, 40, 90] },
        {
          base_interval: "0.1s",
          max_interval: "1.2s",
          ceilings: [100, 200, 400, 800, 1200],
          random: [149, 350, 751, 2399, 2399],
          delays: [49, 150, 351, 799, 1199]
        },
        {
          base_interval: "0.1s",
          ceilings: [100, 200, 400, 800, 1000],
          random: [149, 350, 751, 2999, 2999],
          delays: [49, 150, 351, 599, 999]
        }
      ]
      for (const { ceilings, delays, random, ...retry_back_off } of rows) {
        const own = "base_interval" in retry_back_off ? { retry_back_off } : {}
        const route = yield* imported({ num_retries: delays.length, ...own })
        const [one, ...others] = random.map((n, index) => (n % ceilings[index]!) / ceilings[index]!)
        const [waits, end] = yield* Effect.provide(trace(route, 100, { status: 503 }), Kit.fixedRandom(one!, ...others))
        assert.deepStrictEqual(waits, delays)
        assert.strictEqual(end, "max-attempts")
        yield* assertData(route)
      }
    }))

  it.effect("has the defaults of a route, in camel case too", () =>
    Effect.gen(function*() {
      const route = yield* RetryPolicyImport.fromEnvoyRoute({
        route: { retryPolicy: { retryOn: "reset", perTryTimeout: "0.5s" } }
      })
      const { deadline, maxAttempts } = RetryPolicy.limits(route.policy)
      assert.deepStrictEqual([Duration.toMillis(deadline), maxAttempts], [15_000, 2])
      assert.deepStrictEqual(route.perTryTimeout, Option.some(Duration.millis(500)))
    }))

  it.effect("retries what is configured, and nothing else", () =>
    Effect.gen(function*() {
      const ends = (retry_on: string, codes: ReadonlyArray<number> = []) =>
        Effect.gen(function*() {
          const route = yield* imported({ retry_on, retriable_status_codes: codes })
          const retried = []
          const errors = [500, 503, 409, 429].map((status) => ({ status }))
          for (
            const error of [...errors, { code: "ECONNRESET" }, { code: "ECONNREFUSED" }, { code: 14, details: "" }]
          ) {
            if ((yield* trace(route, 1, error))[1] === "enough") {
              retried.push("status" in error ? error.status : error.code)
            }
          }
          return retried
        })
      assert.deepStrictEqual(yield* ends("5xx"), [500, 503, "ECONNRESET", "ECONNREFUSED"])
      assert.deepStrictEqual(yield* ends("gateway-error, retriable-4xx"), [503, 409, "ECONNRESET", "ECONNREFUSED"])
      assert.deepStrictEqual(yield* ends("retriable-status-codes", [429]), [429])
      assert.deepStrictEqual(yield* ends("connect-failure"), ["ECONNREFUSED"])
      assert.deepStrictEqual(yield* ends("unavailable"), [14])
    }))

  it.effect("finds resets, timeouts and statuses as clients show them", () =>
    Effect.gen(function*() {
      const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })
      const fetchFailed = new TypeError("fetch failed", { cause: reset })
      const errors = {
        bare: reset,
        "of fetch": fetchFailed,
        "of Effect's client": transport(fetchFailed),
        "time of the try": new Cause.TimeoutError(),
        "time of a signal": new DOMException("late", "TimeoutError"),
        "time of Effect's client": transport(new Cause.TimeoutError()),
        "a 503 within": new Error("order", { cause: { status: 503, cause: reset } }),
        "a 404 within": new Error("order", { cause: { status: 404, cause: reset } }),
        "a refused stream within": transport(
          { code: "ERR_HTTP2_STREAM_ERROR", message: "Stream closed with error code NGHTTP2_REFUSED_STREAM" }
        ),
        "a gRPC status within": new Error("order", { cause: { code: 14, details: "down" } }),
        "a redirect": { status: 301 },
        "of a program": new Error("order")
      }
      const retried = (on: string, codes: ReadonlyArray<number> = []) =>
        Effect.map(imported({ retry_on: on, retriable_status_codes: codes }), ({ classifier }) =>
          Object.entries(errors).filter(([, error]) =>
            Option.getOrThrow(classifier(error)).safety === "Yes"
          )
            .map(([name]) => name))
      const resets = Object.keys(errors).slice(0, 6)
      const [unavailable, , stream, grpc] = Object.keys(errors).slice(6)
      assert.deepStrictEqual(yield* retried("reset"), [...resets, stream])
      assert.deepStrictEqual(yield* retried("5xx"), [...resets, unavailable, stream])
      assert.deepStrictEqual(yield* retried("gateway-error"), [...resets, unavailable, stream])
      assert.deepStrictEqual(yield* retried("refused-stream"), [stream])
      assert.deepStrictEqual(yield* retried("unavailable"), [grpc])
      assert.deepStrictEqual(yield* retried("retriable-status-codes", [301, 404]), ["a 404 within", "a redirect"])
    }))

  it.effect("names what is wrong", () =>
    Effect.gen(function*() {
      const path = "route.retry_policy"
      assert.strictEqual(yield* refused(imported({ retry_on: "5xx,mondays" })), `${path}.retry_on`)
      assert.strictEqual(yield* refused(imported({ num_retries: -1 })), `${path}.num_retries`)
      assert.strictEqual(yield* refused(imported({ retry_back_off: {} })), `${path}.retry_back_off.base_interval`)
      assert.strictEqual(
        yield* refused(imported({ retry_back_off: { base_interval: "1s", max_interval: "0.5s" } })),
        `${path}.retry_back_off.max_interval`
      )
      assert.strictEqual(yield* refused(imported({ retriable_headers: [] })), `${path}.retriable_headers`)
      assert.strictEqual(yield* refused(imported({}, { hedge_policy: {} })), "route.hedge_policy")
      assert.strictEqual(yield* refused(imported({}, { hedgePolicy: {} })), "route.hedgePolicy")
      for (const name of ["retriableHeaders", "retryHostPredicate", "per_try_idle_timeout", "retryOptionsPredicates"]) {
        assert.strictEqual(yield* refused(imported({ [name]: [] })), `${path}.${name}`)
      }
      assert.strictEqual(yield* refused(imported({ num_retrys: 3 })), `${path}.num_retrys`)
      assert.strictEqual(
        yield* refused(imported({ retry_back_off: { base_interval: "1s", jitter: 0 } })),
        `${path}.retry_back_off.jitter`
      )
      assert.strictEqual(yield* refused(RetryPolicyImport.fromEnvoyRoute({ route: {} })), path)
      assert.strictEqual(yield* refused(RetryPolicyImport.fromEnvoyRoute(null)), "")
      const said = (json: unknown) => Effect.map(Effect.flip(RetryPolicyImport.fromEnvoyRoute(json)), String)
      assert.include(yield* said([]), "fromEnvoyRoute: it must be an object, got an array")
      assert.include(
        yield* said({ route: { retry_policy: { retry_on: {} } } }),
        "retry_on must be a string, got an object"
      )
    }))
})
