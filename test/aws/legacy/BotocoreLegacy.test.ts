import { assert, describe, it } from "@effect/vitest"
import { InvalidOption, RetryClassifier, RetryObserver, type RetryPolicy, withRetry } from "effect-retry"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as EffectHeaders from "effect/http/Headers"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../../examples/legacy-modes.ts"
import { inTime } from "../../utils/inTime.ts"
import { millis, sdkError, withRandom } from "../../utils/vectors.ts"
import * as vectors from "../../vectors/botocore-legacy.ts"

const drivers: ReadonlyArray<{
  readonly name: string
  readonly retry: <A, E>(self: Effect.Effect<A, E>, policy: RetryPolicy.RetryPolicy) => Effect.Effect<A, E>
}> = [
  { name: "withRetry", retry: (self, policy) => withRetry(self, policy) },
  { name: "Effect.retry", retry: (self, policy) => Effect.retry(self, policy) }
]

describe("BotocoreLegacy", () => {
  describe("decisions", () => {
    for (const service of ["codecommit", ...Object.keys(vectors.services)]) {
      const own = vectors.services[service] ?? []
      for (const probe of vectors.decisions) {
        const { code, retry, status } = own.find((row) => row.status === probe.status && row.code === probe.code) ??
          probe
        it(`vector: ${service} ${retry ? "retries" : "does not retry"} ${status} ${code ?? "without a code"}`, () =>
          assert.strictEqual(retries(service, sdkError(code === undefined ? { status } : { status, code })), retry))
      }
    }

    it.each(vectors.special)("vector: $service and $status $code: $retry", ({ code, retry, service, status }) => {
      assert.strictEqual(retries(service, sdkError({ status, code })), retry)
    })

    it("a plain 429 of organizations stays unretried in front of the default chain", () => {
      const { classifier } = BotocoreLegacy.forService(BotocoreLegacy.document, "organizations")
      const chain = RetryClassifier.orElse(classifier, RetryClassifier.defaultClassifier)
      assert.strictEqual(Option.getOrThrow(chain(sdkError({ status: 429 }))).safety, "No")
      assert.strictEqual(Option.getOrThrow(chain({ code: "ECONNRESET" })).safety, "Yes")
    })

    for (const name of ["__proto__", "constructor", "toString", "__default__", ""]) {
      it(`a service named ${JSON.stringify(name)} has the default's policies`, () => {
        assert.isTrue(retries(name, sdkError({ status: 503 })))
        assert.isFalse(retries(name, sdkError({ status: 501 })))
      })
    }
  })

  describe("the built-in document", () => {
    type Policies = BotocoreLegacy.Document["fallback"]["policies"]
    const ruleOf = ({ applies_when: { response } }: Policies[string]) => {
      if (response === undefined) return { _tag: "SocketErrors" }
      const { crc32body: header, http_status_code: status, service_error_code: code } = response
      return header === undefined ? { _tag: "Response", status, code } : { _tag: "Crc32", header }
    }
    const told = (policies: Policies) =>
      Object.fromEntries(Object.entries(policies).map(([name, policy]) => [name, ruleOf(policy)]))

    const { fallback, services } = BotocoreLegacy.document

    it("vector: the default", () => {
      assert.deepStrictEqual([fallback.max_attempts, fallback.delay.base, fallback.delay.growth_factor], [5, "rand", 2])
      assert.deepStrictEqual(told(fallback.policies), vectors.defaultPolicies)
    })

    for (const [service, { base, maxAttempts, policies }] of Object.entries(vectors.overrides)) {
      it(`vector: the overrides of ${service}`, () => {
        const settings = services.get(service)!
        assert.deepStrictEqual([settings.max_attempts, settings.delay.base, settings.delay.growth_factor], [
          maxAttempts,
          base,
          2
        ])
        assert.deepStrictEqual(told(settings.policies), policies)
      })
    }

    it("vector: no other service has overrides", () =>
      assert.deepStrictEqual([...services.keys()].sort(), Object.keys(vectors.overrides).sort()))
  })

  describe("errors of other shapes", () => {
    const request = HttpClientRequest.post("http://service.test/")
    for (
      const [name, error, expected] of [
        ["a code in Code", { Code: "Throttling", $metadata: { httpStatusCode: 400 } }, "throttling"],
        [
          "a code in __type, with a URL",
          { __type: "a.b#Throttling:http://internal.amazon.com/coral/", $metadata: { httpStatusCode: 400 } },
          "throttling"
        ],
        ["a code in __type", { __type: "a.b#Throttling", $metadata: { httpStatusCode: 400 } }, "throttling"],
        ["a code in code", { code: "Throttling", statusCode: 400 }, "throttling"],
        ["a 503 with the code of a throttle", { name: "SlowDown", $metadata: { httpStatusCode: 503 } }, "throttling"],
        ["a status", { status: 500 }, "server"],
        ["the status of a response", { response: { status: 504 } }, "server"],
        ["a status of Effect's HTTP client", statusError(request, 502), "server"],
        ["a 429 of Effect's HTTP client", statusError(request, 429), "throttling"],
        ["a transport error of a POST", transportError(request), "server"],
        ["a cause", { message: "wrapped", cause: { cause: { status: 500 } } }, "server"],
        ["a failed connection", { code: "ENOTFOUND" }, "server"],
        ["a broken connection", { code: "EPIPE" }, "server"],
        ["a read timeout", { code: "UND_ERR_HEADERS_TIMEOUT" }, "timeout"],
        ["the TimeoutError of an SDK", { name: "TimeoutError", $metadata: { attempts: 1 } }, "timeout"],
        ["the TimeoutError of Effect", { _tag: "TimeoutError" }, "timeout"],
        ["a code without a status", { name: "ThrottlingException" }, "unknown"],
        ["a programming error", new TypeError("x is not a function"), "unknown"],
        ["a response that failed by a broken connection", { status: 400, cause: { code: "EPIPE" } }, "veto"],
        ["a gRPC status", { code: 14, details: "" }, "unknown"],
        ["a string", "ECONNRESET", "unknown"],
        ["nothing", undefined, "unknown"],
        ["an error that throws", throwing(), "unknown"],
        ["a checksum of another header", checksumError("x-other"), "veto"]
      ] as const
    ) {
      it(`${name}: ${expected}`, () => assert.strictEqual(shortly("dynamodb", error), expected))
    }

    it("a document without socket errors does not retry them", () => {
      const document = decodeSync(minimal({}))
      const { classifier } = BotocoreLegacy.forService(document, "any")
      for (const error of [{ code: "ECONNRESET" }, { name: "TimeoutError" }, transportError(request)]) {
        assert.isTrue(Option.isNone(classifier(error)))
      }
      assert.isTrue(Option.isSome(classifier({ status: 500 })))
    })
  })

  for (const { name, retry } of drivers) {
    describe(`delays, by ${name}`, () => {
      for (const { attempts, base, delay, growth } of vectors.delays) {
        const document = minimal({ max_attempts: 20, delay: { type: "exponential", base, growth_factor: growth } })
        if (delay === "refused") {
          it.effect(`vector: base ${base} is refused`, () =>
            Effect.gen(function*() {
              const error = yield* Effect.flip(BotocoreLegacy.decode(document))
              assert.deepStrictEqual([error.path, error.value], [["retry", "__default__", "delay", "base"], base])
            }))
          continue
        }
        for (const chance of base === "rand" ? [0, 0.25, 0.9] : [0, 0.9]) {
          const expected = millis(base === "rand" ? delay * chance : delay)
          it.effect(`vector: base ${base} after attempt ${attempts} at random ${chance}: ${expected} ms`, () =>
            Effect.gen(function*() {
              const { policy, layer } = BotocoreLegacy.forService(yield* BotocoreLegacy.decode(document), "any")
              const { send, times } = recording(Array<object>(attempts).fill({ status: 500 }))
              const exit = yield* inTime(retry(send, policy).pipe(Effect.provide(layer), withRandom(chance)))
              assert.deepStrictEqual(exit, Exit.succeed("ok"))
              assert.strictEqual(times[attempts]! - times[attempts - 1]!, expected)
            }))
        }
      }

      it.effect("dynamodb waits 50, 100, ... 12800 ms, whatever the random number", () =>
        Effect.gen(function*() {
          const { policy, layer } = BotocoreLegacy.forService(BotocoreLegacy.document, "dynamodb")
          const { send, times } = recording(Array<object>(20).fill({ status: 500 }))
          const fiber = yield* Effect.forkChild(retry(send, policy).pipe(Effect.provide(layer), withRandom(0.3)), {
            startImmediately: true
          })
          const sent = [0, 50, 150, 350, 750, 1550, 3150, 6350, 12_750, 25_550]
          for (let n = 1; n < sent.length; n++) {
            yield* TestClock.adjust(sent[n]! - sent[n - 1]! - 1)
            assert.strictEqual(times.length, n, `still waits 1 ms before send ${n + 1}`)
            yield* TestClock.adjust(1)
          }
          assert.deepStrictEqual(times, sent)
          assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
        }))

      it.effect("the default draws again at every retry, and has no cap", () =>
        Effect.gen(function*() {
          const { policy, layer } = BotocoreLegacy.forService(BotocoreLegacy.document, "any", { maxAttempts: 10 })
          const { send, times } = recording(Array<object>(20).fill({ status: 500 }))
          yield* inTime(retry(send, policy).pipe(Effect.provide(layer), withRandom(0.5)))
          assert.deepStrictEqual(times, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511].map((n) => n * 500))
        }))
    })

    describe(`limits, by ${name}`, () => {
      for (const vector of vectors.limits) {
        const { attempt, failure, max, outcome } = vector
        it.effect(`vector: ${failure} at attempt ${attempt} of ${max}: ${outcome}`, () =>
          Effect.gen(function*() {
            const document = yield* BotocoreLegacy.decode(minimal({
              max_attempts: max,
              delay: { type: "exponential", base: 1, growth_factor: 1 },
              policies: {
                error: { applies_when: { response: { http_status_code: 500 } } },
                crc32: { applies_when: { response: { crc32body: "x-amz-crc32" } } },
                socket: { applies_when: { socket_errors: ["GENERAL_CONNECTION_ERROR"] } }
              }
            }))
            const { policy, layer } = BotocoreLegacy.forService(document, "any")
            const error = failures[failure]
            const errors = Array<object>(attempt).fill(error)
            if (failure === "success") errors.pop()
            const { send, times } = recording(errors)
            const stops: Array<string> = []
            const observing = RetryObserver.layer({ onStop: ({ reason }) => void stops.push(reason) })
            const exit = yield* inTime(retry(send, policy).pipe(Effect.provide([layer, observing])))
            if (outcome === "retry") {
              assert.strictEqual(times[attempt]! - times[attempt - 1]!, millis(vector.delay ?? 1))
              assert.deepStrictEqual(exit, Exit.succeed("ok"))
            } else {
              assert.strictEqual(times.length, Math.min(attempt, failure === "ValueError" ? 1 : max))
              if (failure === "success") return assert.deepStrictEqual(exit, Exit.succeed("ok"))
              assert.strictEqual(yield* Effect.flip(exit), error, "the call's own error")
              assert.deepStrictEqual(stops, [failure === "ValueError" ? "unknown-error" : "max-attempts"])
            }
          }))
      }

      for (const { maxRetries, retries, service } of vectors.retries) {
        it.effect(`vector: ${service} with max_attempts ${maxRetries ?? "unset"}: ${retries} retries`, () =>
          Effect.gen(function*() {
            const { policy, layer } = BotocoreLegacy.forService(BotocoreLegacy.document, service, { maxRetries })
            const { send, times } = recording(Array<object>(20).fill({ status: 500 }))
            yield* inTime(retry(send, policy).pipe(Effect.provide(layer), withRandom(0.5)))
            assert.strictEqual(times.length, retries + 1)
          }))
      }

      it.effect("maxAttempts counts attempts, and wins over maxRetries and the document", () =>
        Effect.gen(function*() {
          for (const maxAttempts of [1, 4, 7]) {
            const { policy, layer } = BotocoreLegacy.forService(BotocoreLegacy.document, "any", {
              maxAttempts,
              maxRetries: 2
            })
            const { send, times } = recording(Array<object>(20).fill({ status: 500 }))
            yield* inTime(retry(send, policy).pipe(Effect.provide(layer), withRandom(0.5)))
            assert.strictEqual(times.length, maxAttempts)
          }
        }))
    })
  }

  describe("options", () => {
    for (
      const [field, value] of [
        ["maxAttempts", 0],
        ["maxAttempts", -1],
        ["maxAttempts", 1.5],
        ["maxAttempts", NaN],
        ["maxRetries", -1],
        ["maxRetries", 0.5],
        ["maxRetries", "3"]
      ] as const
    ) {
      it(`refuses ${field} ${value}`, () => {
        const thrown = Result.getOrThrow(Result.flip(Result.try({
          try: () => BotocoreLegacy.forService(BotocoreLegacy.document, "s3", { [field]: value as number }),
          catch: (error) => error
        })))
        assert.isTrue(thrown instanceof InvalidOption)
        const { constructorName, field: named, value: given } = thrown as InvalidOption
        assert.deepStrictEqual([constructorName, named, given], ["BotocoreLegacy.forService", field, value])
      })
    }
  })

  describe("checkBody", () => {
    const body = new TextEncoder().encode("foo")
    const check = (service: string, headers: BotocoreLegacy.CheckedResponse["headers"], bytes = body) =>
      Effect.exit(BotocoreLegacy.forService(BotocoreLegacy.document, service).checkBody({ headers, body: bytes }))

    for (const { header, retry, service } of vectors.checksums) {
      it.effect(`vector: ${service} with x-amz-crc32 ${header}`, () =>
        Effect.gen(function*() {
          const exit = yield* check(service, { "x-amz-crc32": header })
          if (!retry) return assert.deepStrictEqual(exit, Exit.void)
          const error = yield* Effect.flip(exit)
          assert.deepStrictEqual([error.header, error.expected, error.actual], ["x-amz-crc32", 2356372768, 2356372769])
          assert.isTrue(retries(service, error))
          assert.isFalse(retries("s3", error))
        }))
    }

    for (
      const [text, crc] of [["", 0], ["a", 3904355907], ["123456789", 3421780262], [
        "\u00ff\u0000",
        267731836
      ]] as const
    ) {
      it.effect(`the CRC-32 of ${JSON.stringify(text)} is ${crc}`, () =>
        Effect.gen(function*() {
          const bytes = new TextEncoder().encode(text)
          assert.deepStrictEqual(yield* check("dynamodb", { "X-Amz-Crc32": ` ${crc} ` }, bytes), Exit.void)
          assert.isTrue(Exit.isFailure(yield* check("dynamodb", { "X-Amz-Crc32": ` ${crc + 1} ` }, bytes)))
        }))
    }

    for (const header of ["", "abc", "-1", "1e3", "0x1", "1.5"]) {
      it.effect(`does not compare a header that says ${JSON.stringify(header)}`, () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* check("dynamodb", { "x-amz-crc32": header }), Exit.void)
        }))
    }

    for (
      const [name, headersOf] of [
        ["a record", (crc) => ({ "x-amz-crc32": crc })],
        ["a record as HTTP writes it", (crc) => ({ "X-Amz-Crc32": crc })],
        ["a record in capitals", (crc) => ({ "X-AMZ-CRC32": crc })],
        ["a record without a prototype", (crc) => Object.assign(Object.create(null), { "x-amz-crc32": crc })],
        ["a record with a header named get", (crc) => ({ get: "1", "x-amz-crc32": crc })],
        ["Headers of fetch", (crc) => new Headers({ "X-Amz-Crc32": crc })],
        ["Headers of Effect", (crc) => EffectHeaders.fromInput({ "X-Amz-Crc32": crc })],
        ["a Map", (crc) => new Map([["x-amz-crc32", crc]])]
      ] as ReadonlyArray<readonly [string, (crc: string) => BotocoreLegacy.CheckedResponse["headers"]]>
    ) {
      it.effect(`reads ${name}`, () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* check("dynamodb", headersOf("2356372769")), Exit.void)
          const error = yield* Effect.flip(yield* check("dynamodb", headersOf("2356372768")))
          assert.deepStrictEqual([error.expected, error.actual], [2356372768, 2356372769])
        }))
    }

    it.effect("compares no other header", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* check("dynamodb", new Headers({ "content-length": "3" })), Exit.void)
        assert.deepStrictEqual(yield* check("dynamodb", { "content-length": "3" }), Exit.void)
      }))

    it("the error carries facts for the default chain too", () => {
      const info = Option.getOrThrow(RetryClassifier.defaultClassifier(checksumError("x-amz-crc32")))
      assert.deepStrictEqual([info.safety, info.fault], ["Yes", "server"])
    })
  })

  describe("documents", () => {
    it.effect("the built-in document survives JSON", () =>
      Effect.gen(function*() {
        const decoded = yield* BotocoreLegacy.decodeJson(JSON.stringify(BotocoreLegacy.documentJson))
        assert.deepStrictEqual(decoded, BotocoreLegacy.document)
      }))

    it.effect("an override changes the keys that it has, of the policy that it has", () =>
      Effect.gen(function*() {
        const document = yield* BotocoreLegacy.decode({
          ...minimal({ delay: { type: "exponential", base: 4, growth_factor: 3 } }),
          definitions: { gone: { applies_when: { response: { http_status_code: 410 } } } },
          retry: {
            ...minimal({ delay: { type: "exponential", base: 4, growth_factor: 3 } }).retry,
            steep: { __default__: { max_attempts: 4, delay: { growth_factor: 10 } } },
            coded: {
              __default__: {
                delay: { base: 2 },
                policies: { error: { applies_when: { response: { service_error_code: "Crash" } } } }
              }
            },
            moved: { __default__: { policies: { error: { $ref: "gone" } } } },
            untouched: { __default__: {} },
            bare: {}
          }
        })
        const asked = (service: string, error: object) =>
          Option.getOrThrow(BotocoreLegacy.forService(document, service).classifier(error)).safety === "Yes"
        assert.isFalse(asked("coded", { status: 500 }))
        assert.isTrue(asked("coded", { status: 500, code: "Crash" }))
        assert.isFalse(asked("moved", { status: 500 }))
        assert.isTrue(asked("moved", { status: 410 }))
        assert.isFalse(asked("untouched", { status: 410 }))
        for (const service of ["untouched", "bare", "unnamed"]) assert.isTrue(asked(service, { status: 500 }))
        for (
          const [service, expected] of [["coded", [0, 2000, 8000]], ["steep", [0, 4000, 44_000, 444_000]]] as const
        ) {
          const { layer, policy } = BotocoreLegacy.forService(document, service)
          const { send, times } = recording(Array<object>(20).fill({ status: 500, code: "Crash" }))
          const start = yield* Clock.currentTimeMillis
          yield* inTime(withRetry(send, policy).pipe(Effect.provide(layer)))
          assert.deepStrictEqual(times.map((at) => at - start), [...expected])
        }
      }))

    it.effect("an operation adds policies to its service's, and to no other's", () =>
      Effect.gen(function*() {
        const document = yield* BotocoreLegacy.decode({
          ...minimal({}),
          retry: {
            ...minimal({}).retry,
            kinesis: {
              DescribeStream: { policies: { error: { applies_when: { response: { http_status_code: 400 } } } } }
            }
          }
        })
        const safety = (status: number, service: string, operation?: string) =>
          Option.getOrThrow(BotocoreLegacy.forService(document, service, { operation }).classifier({ status })).safety
        assert.strictEqual(safety(400, "kinesis", "DescribeStream"), "Yes")
        assert.strictEqual(safety(500, "kinesis", "DescribeStream"), "Yes")
        assert.strictEqual(safety(400, "kinesis", "PutRecord"), "No")
        assert.strictEqual(safety(400, "kinesis"), "No")
        assert.strictEqual(safety(400, "other", "DescribeStream"), "No")
        assert.strictEqual(safety(400, "kinesis", "constructor"), "No")
      }))

    it.effect("delays saturate when a base or a growth is immense", () =>
      Effect.gen(function*() {
        for (const delay of [{ base: 1e308, growth_factor: 1 }, { base: 1, growth_factor: 1.7e308 }]) {
          const document = yield* BotocoreLegacy.decode(minimal({ delay: { type: "exponential", ...delay } }))
          const { layer, policy } = BotocoreLegacy.forService(document, "any")
          const delays: Array<number> = []
          const observing = RetryObserver.layer({ onRetry: ({ delayMillis }) => void delays.push(delayMillis) })
          yield* Effect.forkChild(
            withRetry(Effect.fail({ status: 500 }), policy).pipe(Effect.provide([layer, observing])),
            { startImmediately: true }
          )
          yield* TestClock.adjust(1000)
          yield* TestClock.adjust(Number.MAX_SAFE_INTEGER)
          assert.strictEqual(delays.at(-1), Number.MAX_SAFE_INTEGER)
        }
      }))

    it.effect("the last of two equal keys counts, and lone surrogates are text like any other", () =>
      Effect.gen(function*() {
        const json = JSON.stringify(minimal({ max_attempts: 2 })).replace("\"max_attempts\":2", "$&,\"max_attempts\":4")
        assert.strictEqual((yield* BotocoreLegacy.decodeJson(json)).fallback.max_attempts, 4)
        const surrogate = minimal({ policies: { "\ud800": { applies_when: { response: { http_status_code: 500 } } } } })
        assert.strictEqual(Object.keys((yield* BotocoreLegacy.decode(surrogate)).fallback.policies).length, 1)
      }))
  })

  describe("bad documents", () => {
    for (const [name, json, path, value, problem] of badDocuments()) {
      it.effect(`${name}: ${problem}`, () =>
        Effect.gen(function*() {
          const decoded = typeof json === "string" ? BotocoreLegacy.decodeJson(json) : BotocoreLegacy.decode(json)
          const error = yield* Effect.flip(decoded)
          assert.isTrue(error instanceof BotocoreLegacy.BotocoreLegacyError)
          assert.strictEqual(error.path.map(String).join("."), path)
          assert.deepStrictEqual(error.value, value)
          assert.strictEqual(error.problem, problem)
          assert.isTrue(error.message.startsWith(`${path === "" ? "the document" : path}: ${problem}, got `))
          assert.isBelow(error.message.length, 700)
        }))
    }

    it.effect("stops reading after ten thousand values", () =>
      Effect.gen(function*() {
        let reads = 0
        const endless = new Proxy([], {
          get: (_, key) => key === "length" ? 4_000_000_000 : ++reads
        })
        const error = yield* Effect.flip(BotocoreLegacy.decode({ definitions: endless }))
        assert.strictEqual(error.problem, "Expected at most 10000 values in all")
        assert.isAtMost(reads, 10_000)
      }))

    it.effect("does not multiply services by policies", () =>
      Effect.gen(function*() {
        const policies = Object.fromEntries(Array.from({ length: 800 }, (_, n) => [`p${n}`, statusPolicy(500)]))
        const services = Object.fromEntries(
          Array.from({ length: 900 }, (_, n) => [`s${n}`, { __default__: { policies: { p0: statusPolicy(400) } } }])
        )
        const document = yield* BotocoreLegacy.decode({
          retry: { __default__: { ...minimal({}).retry.__default__, policies }, ...services }
        })
        assert.strictEqual(document.services.size, 900)
        for (const { policies } of document.services.values()) assert.strictEqual(Object.keys(policies).length, 1)
      }))

    it.effect("pollutes nothing", () =>
      Effect.gen(function*() {
        const before = Reflect.ownKeys(Object.prototype)
        for (const key of ["__proto__", "constructor", "prototype"]) {
          for (const place of ["", "retry", "definitions"]) {
            const json = `{${place === "" ? "" : `"${place}":{`}"${key}":{"polluted":1,"prototype":{"polluted":1}}}`
            yield* Effect.flip(BotocoreLegacy.decodeJson(place === "" ? json : `${json}}`))
          }
        }
        assert.deepStrictEqual(Reflect.ownKeys(Object.prototype), before)
        assert.isUndefined(({} as { polluted?: unknown }).polluted)
        assert.isUndefined((Object as { polluted?: unknown }).polluted)
      }))

    it.effect.prop(
      "law: any JSON decodes or fails with a typed error",
      [Schema.Json],
      ([json]) =>
        Effect.gen(function*() {
          const exit = yield* Effect.exit(BotocoreLegacy.decode(json))
          assert.isTrue(isTyped(exit))
          assert.isTrue(isTyped(yield* Effect.exit(BotocoreLegacy.decodeJson(JSON.stringify(json)))))
        })
    )

    it.effect.prop(
      "law: any JSON anywhere in a document decodes or fails with a typed error",
      [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1000 })), Schema.Json],
      ([at, json]) =>
        Effect.gen(function*() {
          const paths = pathsOf(BotocoreLegacy.documentJson)
          const exit = yield* Effect.exit(
            BotocoreLegacy.decode(replaced(BotocoreLegacy.documentJson, paths[at % paths.length]!, json))
          )
          assert.isTrue(isTyped(exit))
          if (Exit.isSuccess(exit)) BotocoreLegacy.forService(exit.value, "dynamodb", { operation: "GetItem" })
        })
    )

    it.effect.prop(
      "law: any text decodes or fails with a typed error",
      [Schema.String],
      ([text]) =>
        Effect.gen(function*() {
          assert.isTrue(isTyped(yield* Effect.exit(BotocoreLegacy.decodeJson(text))))
        })
    )
  })

  for (const json of [undefined, null, 5, {}, throwing(), Symbol.iterator]) {
    it.effect(`decodeJson refuses ${typeof json === "object" ? "an object or null" : String(json)} in place of text`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(BotocoreLegacy.decodeJson(json as unknown as string))
        assert.deepStrictEqual([error._tag, error.path, error.problem], [
          "BotocoreLegacyError",
          [],
          "Expected a string"
        ])
        assert.include(error.message, "the document: Expected a string, got ")
      }))
  }

  describe("example", () => {
    it.effect("dynamodb: ten attempts", () =>
      Effect.gen(function*() {
        const error = { name: "InternalServerError", $metadata: { httpStatusCode: 500 } }
        const { send, times } = recording(Array<object>(20).fill(error))
        const exit = yield* inTime(Example.asBotocore(Effect.as(send, { headers: {}, body: new Uint8Array() })))
        assert.deepStrictEqual(exit, Exit.fail(error))
        assert.deepStrictEqual(times, [0, 50, 150, 350, 750, 1550, 3150, 6350, 12_750, 25_550])
      }))

    it.effect("dynamodb: a damaged body is requested again", () =>
      Effect.gen(function*() {
        const bodies = ["bar", "f00", "foo"].map((text) => new TextEncoder().encode(text))
        const { send, times } = recording([])
        const respond = Effect.map(send, () => ({
          headers: { "x-amz-crc32": "2356372769" },
          body: bodies[times.length - 1]!
        }))
        const { body } = yield* yield* inTime(Example.asBotocore(respond))
        assert.strictEqual(new TextDecoder().decode(body), "foo")
        assert.deepStrictEqual(times, [0, 50, 150])
      }))

    it.effect("orders: as the file says", () =>
      Effect.gen(function*() {
        const error = { code: "OutOfStock", status: 409 }
        const { send, times } = recording(Array<object>(20).fill(error))
        assert.deepStrictEqual(yield* inTime(Example.order(Example.withOrders, send)), Exit.fail(error))
        assert.deepStrictEqual(times, [0, 200, 600])
        assert.isTrue(isTyped(yield* inTime(Example.order("{}", send))))
        assert.strictEqual(times.length, 3)
      }))
  })
})

/** A call that fails with each of the errors in turn, then succeeds; `times` says when it was sent. */
const recording = (errors: ReadonlyArray<object>) => {
  const times: Array<number> = []
  const send: Effect.Effect<string, object> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const sends = times.push(now)
    return sends > errors.length ? Effect.succeed("ok") : Effect.fail(errors[sends - 1]!)
  })
  return { send, times }
}

const of = (service: string, error: unknown) =>
  Option.getOrUndefined(BotocoreLegacy.forService(BotocoreLegacy.document, service).classifier(error))

const retries = (service: string, error: unknown): boolean => of(service, error)?.safety === "Yes"

const shortly = (service: string, error: unknown): string => {
  const info = of(service, error)
  if (info === undefined) return "unknown"
  if (info.safety === "No") return "veto"
  if (info.throttling) return "throttling"
  return info.timeout ? "timeout" : info.fault
}

const statusError = (request: HttpClientRequest.HttpClientRequest, status: number) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.StatusCodeError({
      request,
      response: HttpClientResponse.fromWeb(request, new Response(null, { status }))
    })
  })

const transportError = (request: HttpClientRequest.HttpClientRequest) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause: {} }) })

const throwing = () =>
  new Proxy({}, {
    get: () => {
      throw new Error("do not look")
    }
  })

const checksumError = (header: string) => new BotocoreLegacy.ChecksumError({ header, expected: 1, actual: 2 })

const failures: Record<vectors.LimitVector["failure"], object> = {
  response: { status: 500 },
  success: { status: 500 },
  ECONNREFUSED: { code: "ECONNREFUSED" },
  ETIMEDOUT: { code: "ETIMEDOUT" },
  ValueError: new RangeError("no such value"),
  crc32: checksumError("x-amz-crc32")
}

const statusPolicy = (http_status_code: unknown) => ({ applies_when: { response: { http_status_code } } })

/** A document of one policy, with changes to its default. */
const minimal = (changes: object) => ({
  retry: {
    __default__: {
      max_attempts: 3,
      delay: { type: "exponential", base: 1, growth_factor: 2 },
      policies: { error: statusPolicy(500) },
      ...changes
    }
  }
})

const decodeSync = (document: unknown) => Effect.runSync(BotocoreLegacy.decode(document))

const isTyped = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isSuccess(exit) ||
  Option.getOrUndefined(Exit.findErrorOption(exit)) instanceof BotocoreLegacy.BotocoreLegacyError

const pathsOf = (value: unknown): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value === "object" && value !== null
    ? [[], ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner).map((path) => [key, ...path]))]
    : [[]]

const replaced = (value: any, [key, ...path]: ReadonlyArray<string>, by: unknown): unknown => {
  if (key === undefined) return by
  const inner = replaced(value[key], path, by)
  return Array.isArray(value) ? value.map((item, n) => String(n) === key ? inner : item) : { ...value, [key]: inner }
}

/** What it is; a document or the text of one; the path, the value and the problem that the error names. */
type BadDocument = readonly [name: string, json: unknown, path: string, value: unknown, problem: string]

const unreadable = () => ({
  get retry() {
    throw new Error("do not look")
  }
})

const cycle = () => {
  const document: { retry?: object } = {}
  document.retry = document
  return document
}

const deep = (levels: number) => `{"definitions":${"[".repeat(levels)}${"]".repeat(levels)}}`

function badDocuments(): ReadonlyArray<BadDocument> {
  const delay = (changes: object) => ({ delay: { type: "exponential", base: 1, growth_factor: 2, ...changes } })
  const policy = (policy: unknown) => ({ policies: { error: policy } })
  const when = (applies_when: unknown) => policy({ applies_when })
  const service = (sections: unknown) => ({ retry: { ...minimal({}).retry, s3: sections } })
  const text = (search: string, by: string) => JSON.stringify(minimal({})).replace(search, by)
  const long = "x".repeat(257)
  return [
    ["nothing", undefined, "", undefined, "Expected object"],
    ["null", null, "", null, "Expected object"],
    ["a number", 5, "", 5, "Expected object"],
    ["a text that is not valid JSON", "{", "", "{", "Expected JSON"],
    ["an empty text", "", "", "", "Expected JSON"],
    ["an immense text", " ".repeat(1_000_001), "", `${" ".repeat(100)}...`, "Expected at most 1000000 characters"],
    ["an empty document", {}, "retry", undefined, "Missing key"],
    ["no default", { retry: {} }, "retry.__default__", undefined, "Expected object"],
    ["an unknown key", { ...minimal({}), mode: 1 }, "mode", 1, "Unexpected key"],
    ["a service that is not an object", service(3), "retry.s3", 3, "Expected object"],
    ["an unknown key of the default", minimal({ jitter: 1 }), "retry.__default__.jitter", 1, "Unexpected key"],
    ["an unknown key of the delay", minimal(delay({ cap: 20 })), "retry.__default__.delay.cap", 20, "Unexpected key"],
    [
      "an unknown key of a policy",
      minimal(policy({ ...statusPolicy(1), x: 1 })),
      "retry.__default__.policies.error.x",
      1,
      "Unexpected key"
    ],
    [
      "an unknown condition",
      minimal(when({ weather: 1 })),
      "retry.__default__.policies.error.applies_when.weather",
      1,
      "Unexpected key"
    ],
    [
      "an unknown key of a response",
      minimal(when({ response: { status: 1 } })),
      "retry.__default__.policies.error.applies_when.response.status",
      1,
      "Unexpected key"
    ],
    [
      "attempts 0",
      minimal({ max_attempts: 0 }),
      "retry.__default__.max_attempts",
      0,
      "Expected a value greater than or equal to 1"
    ],
    [
      "attempts -0",
      minimal({ max_attempts: -0 }),
      "retry.__default__.max_attempts",
      -0,
      "Expected a value greater than or equal to 1"
    ],
    ["attempts 1.5", minimal({ max_attempts: 1.5 }), "retry.__default__.max_attempts", 1.5, "Expected an integer"],
    [
      "attempts 2^53",
      minimal({ max_attempts: 2 ** 53 }),
      "retry.__default__.max_attempts",
      2 ** 53,
      "Expected an integer"
    ],
    ["attempts as text", minimal({ max_attempts: "5" }), "retry.__default__.max_attempts", "5", "Expected number"],
    ["attempts 1e999", text(":3,", ":1e999,"), "retry.__default__.max_attempts", Infinity, "Expected an integer"],
    ["base 1e999", text(":1,", ":1e999,"), "retry.__default__.delay.base", Infinity, "Expected a finite number"],
    [
      "growth 1e999",
      text("factor\":2", "factor\":1e999"),
      "retry.__default__.delay.growth_factor",
      Infinity,
      "Expected a finite number"
    ],
    [
      "status -1e999",
      text(":500", ":-1e999"),
      "retry.__default__.policies.error.applies_when.response.http_status_code",
      -Infinity,
      "Expected an integer"
    ],
    ["base 0", minimal(delay({ base: 0 })), "retry.__default__.delay.base", 0, "Expected a value greater than 0"],
    ["base -0", minimal(delay({ base: -0 })), "retry.__default__.delay.base", -0, "Expected a value greater than 0"],
    ["base -1", minimal(delay({ base: -1 })), "retry.__default__.delay.base", -1, "Expected a value greater than 0"],
    ["base NaN", minimal(delay({ base: NaN })), "retry.__default__.delay.base", NaN, "Expected a finite number"],
    [
      "another word for base",
      minimal(delay({ base: "RAND" })),
      "retry.__default__.delay.base",
      "RAND",
      "Expected \"rand\" | number"
    ],
    [
      "growth 0.5",
      minimal(delay({ growth_factor: 0.5 })),
      "retry.__default__.delay.growth_factor",
      0.5,
      "Expected a value greater than or equal to 1"
    ],
    [
      "another type",
      minimal(delay({ type: "linear" })),
      "retry.__default__.delay.type",
      "linear",
      "Expected \"exponential\""
    ],
    [
      "no base",
      minimal({ delay: { type: "exponential", growth_factor: 2 } }),
      "retry.__default__.delay.base",
      undefined,
      "Missing key"
    ],
    ["no delay", minimal({ delay: undefined }), "retry.__default__.delay", undefined, "Expected object"],
    ["policies in a list", minimal({ policies: [] }), "retry.__default__.policies", [], "Expected object"],
    [
      "status 600",
      minimal(policy(statusPolicy(600))),
      "retry.__default__.policies.error.applies_when.response.http_status_code",
      600,
      "Expected a value between 100 and 599"
    ],
    [
      "an empty code",
      minimal(when({ response: { http_status_code: 400, service_error_code: "" } })),
      "retry.__default__.policies.error.applies_when.response.service_error_code",
      "",
      "Expected a value with a length of at least 1"
    ],
    [
      "a code without a status",
      minimal(when({ response: { service_error_code: "Throttling" } })),
      "retry.__default__.policies.error.applies_when.response.http_status_code",
      undefined,
      "Missing key"
    ],
    [
      "an empty response",
      minimal(when({ response: {} })),
      "retry.__default__.policies.error.applies_when.response.http_status_code",
      undefined,
      "Missing key"
    ],
    [
      "a checksum and a status",
      minimal(when({ response: { crc32body: "x", http_status_code: 200 } })),
      "retry.__default__.policies.error.applies_when.response",
      { crc32body: "x", http_status_code: 200 },
      "Expected crc32body to stand alone"
    ],
    [
      "no condition",
      minimal(when({})),
      "retry.__default__.policies.error.applies_when",
      {},
      "Expected response or socket_errors"
    ],
    [
      "another socket error",
      minimal(when({ socket_errors: ["GENERAL_CONNECTION_ERROR", "EPIPE"] })),
      "retry.__default__.policies.error.applies_when.socket_errors.1",
      "EPIPE",
      "Expected \"GENERAL_CONNECTION_ERROR\""
    ],
    ["an empty policy", minimal(policy({})), "retry.__default__.policies.error.applies_when", undefined, "Missing key"],
    [
      "a reference to nothing",
      minimal(policy({ $ref: "gone" })),
      "retry.__default__.policies.error.$ref",
      "gone",
      "Expected the name of a definition"
    ],
    [
      "a reference to a property of all objects",
      minimal(policy({ $ref: "constructor" })),
      "retry.__default__.policies.error.$ref",
      "constructor",
      "Expected the name of a definition"
    ],
    [
      "a reference and a condition",
      minimal(policy({ $ref: "a", applies_when: {} })),
      "retry.__default__.policies.error",
      { $ref: "a", applies_when: {} },
      "Expected $ref to stand alone"
    ],
    ["a reference elsewhere", minimal({ delay: { $ref: "a" } }), "retry.__default__.delay.$ref", "a", "Unexpected key"],
    [
      "a definition that refers",
      { ...minimal({}), definitions: { a: { $ref: "a" } } },
      "definitions.a.$ref",
      "a",
      "Unexpected key"
    ],
    [
      "an override out of range",
      service({ __default__: { delay: { base: 0 } } }),
      "retry.s3.__default__.delay.base",
      0,
      "Expected a value greater than 0"
    ],
    [
      "an override that does not fit what it overrides",
      service({ __default__: { policies: { error: { applies_when: { response: { crc32body: "x" } } } } } }),
      "retry.s3.__default__.policies.error.applies_when.response",
      { crc32body: "x", http_status_code: 500 },
      "Expected crc32body to stand alone"
    ],
    [
      "an operation with limits",
      service({ GetObject: { max_attempts: 2, policies: {} } }),
      "retry.s3.GetObject.max_attempts",
      2,
      "Unexpected key"
    ],
    [
      "an operation without policies",
      service({ GetObject: {} }),
      "retry.s3.GetObject.policies",
      undefined,
      "Missing key"
    ],
    ["a long key", { [long]: 1 }, "", `${"x".repeat(100)}...`, "Expected keys of at most 256 characters"],
    ["a long text", { definitions: long }, "definitions", `${"x".repeat(100)}...`, "Expected at most 256 characters"],
    [
      "a depth bomb",
      deep(100_000),
      ["definitions", ...Array.from({ length: 15 }, () => 0)].join("."),
      "an object",
      "Expected at most 16 levels"
    ],
    ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"].flatMap((
      key
    ): ReadonlyArray<BadDocument> => [
      [`the name ${key} at the top`, `{"${key}":1}`, key, 1, "Unexpected prototype name"],
      [`the service ${key}`, `{"retry":{"${key}":{"x":1}}}`, `retry.${key}`, "an object", "Unexpected prototype name"]
    ]),
    ["a date", { retry: new Date(0) }, "retry", "an object", "Expected a plain object"],
    ["inherited keys", Object.create(minimal({})), "", "an object", "Expected a plain object"],
    ["an object that throws", unreadable(), "", "an object", "Expected plain data"],
    [
      "a cycle",
      cycle(),
      Array.from({ length: 16 }, () => "retry").join("."),
      "an object",
      "Expected at most 16 levels"
    ],
    ["a function", { retry: Math.max }, "retry", Math.max, "Expected object"]
  ]
}
