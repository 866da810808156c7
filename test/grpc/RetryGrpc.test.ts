import { assert, describe, it } from "@effect/vitest"
import { Backoff, InvalidOption, RetryClassifier, RetryDecision, RetryInfo, RetryPolicy, withRetry } from "effect-retry"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import { constantRandom } from "../utils/call.ts"
import { secondsOf } from "../utils/cpu.ts"
import { sweep } from "../utils/sweep.ts"

const words = (info: RetryInfo.RetryInfo | undefined): string =>
  info === undefined ? "unknown" : [
    info.safety,
    info.throttling ? "throttling" : "",
    info.timeout ? "timeout" : "",
    info.retryAfter === undefined ? "" : `${Duration.toMillis(info.retryAfter)} ms`
  ].filter((word) => word !== "").join(" ")

const by = (classifier: RetryClassifier.RetryClassifier, error: unknown) =>
  words(Option.getOrUndefined(RetryClassifier.classify(classifier, error)))

/** Metadata as that of grpc-js: all values of a key, in an array. */
const metadataOf = (values: Record<string, ReadonlyArray<unknown>>) => ({ get: (key: string) => values[key] ?? [] })

const failure = (code: number, metadata: Record<string, ReadonlyArray<unknown>> = {}, details = "") =>
  Object.assign(new Error(`${code}: ${details}`), { code, details, metadata: metadataOf(metadata) })

const pushedBack = (...values: ReadonlyArray<unknown>) => failure(14, { "grpc-retry-pushback-ms": values })

describe("the table of statuses", () => {
  const idempotent = RetryGrpc.makeClassifier({ idempotent: true })
  const other = RetryGrpc.makeClassifier({ idempotent: false })
  const refused = "Stream refused by server"
  const rows: ReadonlyArray<readonly [string, number, string, string, string, string]> = [
    ["CANCELLED", 1, "", "unknown", "unknown", "unknown"],
    ["UNKNOWN", 2, "", "unknown", "unknown", "unknown"],
    ["INVALID_ARGUMENT", 3, "", "unknown", "unknown", "unknown"],
    ["DEADLINE_EXCEEDED", 4, "", "Maybe timeout", "Yes timeout", "Maybe timeout"],
    ["NOT_FOUND", 5, "", "unknown", "unknown", "unknown"],
    ["ALREADY_EXISTS", 6, "", "unknown", "unknown", "unknown"],
    ["PERMISSION_DENIED", 7, "", "unknown", "unknown", "unknown"],
    ["RESOURCE_EXHAUSTED", 8, "", "Yes throttling", "Yes throttling", "Yes throttling"],
    ["... of grpc-js", 8, "Received message larger than max (9 vs 4)", "unknown", "unknown", "unknown"],
    ["... of grpc-js", 8, "Attempted to send message with a size larger than 4", "unknown", "unknown", "unknown"],
    [
      "... of grpc-js",
      8,
      "Received message that decompresses to a size larger than 4",
      "unknown",
      "unknown",
      "unknown"
    ],
    ["... of grpc-go", 8, "grpc: received message larger than max (9 vs. 4)", "unknown", "unknown", "unknown"],
    ["... of grpc-java", 8, "gRPC message exceeds maximum size 4: 9", "unknown", "unknown", "unknown"],
    ["FAILED_PRECONDITION", 9, "", "unknown", "unknown", "unknown"],
    ["ABORTED", 10, "", "unknown", "unknown", "unknown"],
    ["OUT_OF_RANGE", 11, "", "unknown", "unknown", "unknown"],
    ["UNIMPLEMENTED", 12, "", "unknown", "unknown", "unknown"],
    ["INTERNAL", 13, "", "unknown", "unknown", "unknown"],
    ["UNAVAILABLE", 14, "", "Yes", "Yes", "Maybe"],
    ["... a broken connection", 14, "Connection dropped", "Yes", "Yes", "Maybe"],
    ["... a refused stream", 14, refused, "Yes", "Yes", "Yes"],
    ["... no connection", 14, "No connection established. Last error: ECONNREFUSED", "Yes", "Yes", "Yes"],
    ["... no connection", 14, "round_robin: No connection established. Last error: x", "Yes", "Yes", "Yes"],
    ["... no name", 14, "Name resolution failed for target dns:x", "Yes", "Yes", "Yes"],
    ["... which a server says", 14, `backend: ${refused}`, "Yes", "Yes", "Maybe"],
    ["... which a server says", 14, "backend: No connection established", "Yes", "Yes", "Maybe"],
    ["DATA_LOSS", 15, "", "unknown", "unknown", "unknown"],
    ["UNAUTHENTICATED", 16, "", "unknown", "unknown", "unknown"],
    ["OK", 0, "", "unknown", "unknown", "unknown"],
    ["no status", 17, "", "unknown", "unknown", "unknown"],
    ["no status", 14.5, "", "unknown", "unknown", "unknown"]
  ]
  for (const [name, code, details, any, ifIdempotent, ifNot] of rows) {
    it(`${name} (${code}) ${details}: ${any}; idempotent ${ifIdempotent}; not idempotent ${ifNot}`, () => {
      const error = failure(code, {}, details)
      assert.deepStrictEqual(
        [by(RetryGrpc.classifier, error), by(idempotent, error), by(other, error)],
        [any, ifIdempotent, ifNot]
      )
      assert.strictEqual(by(RetryClassifier.defaultClassifier, error), any)
    })
  }

  it("is in docs/grpc.md", () => {
    const page = fs.readFileSync(new URL("../../docs/grpc.md", import.meta.url), "utf8")
    assert.include(page, "| `UNKNOWN`, `INTERNAL`, `ABORTED` whose `cause` is a network failure | Yes | Yes | Maybe |")
    for (const [name, , , any, ifIdempotent, ifNot] of rows) {
      if (any === "unknown" || name.startsWith("...")) continue
      assert.match(page, new RegExp(`\\| \`${name}\` \\| ${any} \\| ${ifIdempotent} \\| ${ifNot}\\b`))
    }
  })

  it("a broken call whose cause says that it was never sent is safe", () => {
    const cause = Object.assign(new Error("connect"), { code: "ECONNREFUSED" })
    assert.strictEqual(by(other, Object.assign(failure(14), { cause })), "Yes")
    assert.strictEqual(by(other, Object.assign(failure(14), { cause: cause.message })), "Maybe")
  })

  it("an error that wraps one is as safe as the one it wraps", () => {
    const chained = (classifier: RetryClassifier.RetryClassifier) =>
      RetryClassifier.orElse(classifier, RetryClassifier.defaultClassifier)
    for (const [code, ifIdempotent, ifNot] of [[14, "Yes", "Maybe"], [4, "Yes timeout", "Maybe timeout"]] as const) {
      for (const wrapped of [{ _tag: "Mine", cause: failure(code) }, { reason: { cause: failure(code) } }]) {
        assert.strictEqual(by(chained(idempotent), wrapped), ifIdempotent)
        assert.strictEqual(by(chained(other), wrapped), ifNot)
      }
    }
  })

  it("an error that wraps one and carries facts of its own is what these say", () => {
    const wrapping = (facts: RetryInfo.Facts) =>
      Object.assign(new Error("mine", { cause: failure(14) }), RetryInfo.annotation(facts))
    for (const classifier of [idempotent, other]) {
      assert.strictEqual(by(classifier, wrapping({ safety: "No" })), "No")
      assert.strictEqual(by(classifier, wrapping({ throttling: true })), "Yes throttling")
      assert.strictEqual(by(classifier, wrapping({ safety: "Maybe" })), "Maybe")
      const query = { _tag: "SqlError", isRetryable: false, reason: { cause: failure(14) } }
      assert.strictEqual(by(classifier, query), "No")
    }
  })

  // What Connect makes of failures that no server has answered.
  const network = (code: string, message = "") => Object.assign(new Error(message), { code })
  const fetchFailed = (code: string) => new TypeError("fetch failed", { cause: network(code) })
  const refusedStream = network("ERR_HTTP2_STREAM_ERROR", "Stream closed with error code NGHTTP2_REFUSED_STREAM")
  for (
    const [name, code, cause, any, ifNot] of [
      ["ABORTED by a reset", 10, network("ECONNRESET"), "Yes", "Maybe"],
      ["INTERNAL by a refused stream", 13, refusedStream, "Yes", "Yes"],
      ["UNKNOWN by fetch, not sent", 2, fetchFailed("ECONNREFUSED"), "Yes", "Yes"],
      ["UNKNOWN by fetch, broken", 2, fetchFailed("UND_ERR_SOCKET"), "Yes", "Maybe"],
      ["UNKNOWN by a browser", 2, new TypeError("Failed to fetch"), "Yes", "Maybe"],
      ["UNKNOWN by a timeout", 2, fetchFailed("UND_ERR_HEADERS_TIMEOUT"), "Yes timeout", "Maybe timeout"],
      ["INTERNAL by a parser", 13, network("HPE_INVALID_CONSTANT"), "unknown", "unknown"],
      ["UNKNOWN by a status", 2, { status: 503 }, "unknown", "unknown"],
      ["CANCELLED by a reset", 1, network("ECONNRESET"), "unknown", "unknown"],
      ["NOT_FOUND by a reset", 5, network("ECONNRESET"), "unknown", "unknown"]
    ] as const
  ) {
    it(`${name}: ${any}; not idempotent ${ifNot}`, () => {
      const error = Object.assign(new Error("[x]"), { code, metadata: new Headers(), details: [], cause })
      assert.deepStrictEqual([by(RetryClassifier.defaultClassifier, error), by(idempotent, error), by(other, error)], [
        any,
        any,
        ifNot
      ])
    })
  }

  it("what caused a status is not a reason to retry it", () => {
    const error = Object.assign(failure(3), { cause: { status: 503 } })
    assert.strictEqual(by(RetryClassifier.defaultClassifier, error), "unknown")
    assert.strictEqual(by(RetryClassifier.defaultClassifier, { cause: failure(14) }), "Yes")
    for (const code of [0, 17]) {
      const other = Object.assign(failure(code), { cause: { status: 503 } })
      assert.strictEqual(by(RetryClassifier.defaultClassifier, other), "Yes")
    }
  })
})

describe("grpc-retry-pushback-ms", () => {
  const rows: ReadonlyArray<readonly [ReadonlyArray<unknown>, string]> = [
    [[], "Yes"],
    [["0"], "Yes 0 ms"],
    [["250"], "Yes 250 ms"],
    [[" 250 "], "Yes 250 ms"],
    [["007"], "Yes 7 ms"],
    [["2147483647"], "Yes 2147483647 ms"],
    [["2147483648"], "No"],
    [["9".repeat(400)], "No"],
    [["0".repeat(300)], "No"],
    ...["-1", "-0", "+5", "", " ", "1.5", "1e3", "0x10", "soon", "NaN", "Infinity", "5 s", "１２"]
      .map((value) => [[value], "No"] as const),
    [["5", "5"], "No"],
    [["5", "-1"], "No"],
    [[new Uint8Array([53])], "No"],
    [[5], "No"],
    [[null], "No"],
    [[{ toString: () => "5" }], "No"]
  ]
  for (const [values, expected] of rows) {
    it(`${JSON.stringify(values)?.slice(0, 40)}: ${expected}`, () => {
      assert.strictEqual(by(RetryGrpc.classifier, pushedBack(...values)), expected)
    })
  }

  it("never revives a status that is not retried, and forbids any", () => {
    assert.strictEqual(by(RetryGrpc.classifier, failure(3, { "grpc-retry-pushback-ms": ["5"] })), "unknown")
    assert.strictEqual(by(RetryGrpc.classifier, failure(3, { "grpc-retry-pushback-ms": ["-1"] })), "No")
    assert.strictEqual(by(RetryGrpc.makeClassifier({ idempotent: true }), pushedBack("-1")), "No")
    assert.strictEqual(by(RetryGrpc.makeClassifier({ idempotent: false }), pushedBack("-1")), "No")
  })
})

describe("metadata and errors of other clients", () => {
  const pushback = (value: string) => ({ "grpc-retry-pushback-ms": value })
  const connect = (metadata: unknown, details: ReadonlyArray<unknown> = [], code = 14) =>
    Object.assign(new Error("[unavailable]"), { name: "ConnectError", code, metadata, details, rawMessage: "" })
  const grpcWeb = (code: number, metadata: Record<string, string> = {}) =>
    Object.assign(new Error(), { name: "RpcError", code, metadata })
  const retryInfo = { type: "google.rpc.RetryInfo", value: Buffer.from("CgQIAhAB", "base64") }
  const rows: ReadonlyArray<readonly [string, unknown, string]> = [
    ["Connect", connect(new Headers()), "Yes"],
    ["Connect: a status", connect(new Headers(), [], 3), "unknown"],
    ["Connect: a pushback", connect(new Headers(pushback("250"))), "Yes 250 ms"],
    ["Connect: a pushback that forbids", connect(new Headers(pushback("-1"))), "No"],
    [
      "Connect: two pushbacks",
      connect(new Headers([...Object.entries(pushback("5")), ...Object.entries(pushback("6"))])),
      "No"
    ],
    [
      "Connect: RetryInfo",
      connect(new Headers(), [{ type: "x", value: new Uint8Array() }, retryInfo]),
      "Yes 2000.000001 ms"
    ],
    ["Connect: a pushback and RetryInfo", connect(new Headers(pushback("7")), [retryInfo]), "Yes 7 ms"],
    ["Connect: details of other forms", connect(new Headers(), [null, 1, { type: "google.rpc.RetryInfo" }]), "Yes"],
    ["nice-grpc", { code: 14, details: "", path: "/a/b" }, "Yes"],
    [
      "nice-grpc: metadata",
      { code: 14, details: "", metadata: { get: () => "250", getAll: () => ["250"] } },
      "Yes 250 ms"
    ],
    [
      "nice-grpc: two pushbacks",
      { code: 14, details: "", metadata: { get: () => "5", getAll: () => ["5", "6"] } },
      "No"
    ],
    ["trailers", { code: 14, details: "", trailers: new Headers(pushback("250")) }, "Yes 250 ms"],
    ["a record", { code: 14, details: "", metadata: pushback("250") }, "Yes 250 ms"],
    ["a Map", { code: 14, metadata: new Map(Object.entries(pushback("250"))) }, "Yes 250 ms"],
    ["a Map with bytes", { code: 14, metadata: new Map([["grpc-retry-pushback-ms", Buffer.from("250")]]) }, "No"],
    ["grpc-web", grpcWeb(14), "Yes"],
    ["grpc-web: a status", grpcWeb(3), "unknown"],
    ["grpc-web: a pushback", grpcWeb(14, pushback("250")), "Yes 250 ms"],
    ["grpc-web: a pushback that forbids", grpcWeb(14, pushback("-1")), "No"],
    ["a status in words", Object.assign(new Error(), { name: "RpcError", code: "UNAVAILABLE" }), "unknown"],
    ["metadata that throws", {
      code: 14,
      details: "",
      metadata: {
        get: () => {
          throw new Error("no")
        }
      }
    }, "unknown"],
    ["an exit code", { code: 14, killed: false, cmd: "" }, "unknown"]
  ]
  for (const [name, error, expected] of rows) {
    it(`${name}: ${expected}`, () => assert.strictEqual(by(RetryGrpc.classifier, error), expected))
  }
})

describe("google.rpc.RetryInfo in grpc-status-details-bin", () => {
  const info = (base64: string) =>
    by(RetryGrpc.classifier, failure(8, { "grpc-status-details-bin": [Buffer.from(base64, "base64")] }))
  // Encoded with protobufjs from google/rpc/status.proto and error_details.proto.
  const encoded = {
    halfAndOne:
      "CAgSEGJ1c3kg4oCUIHNww6R0ZXIaNQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxIJCgRSQVRFEgF4GjYKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SCgoICAEQgMq17gE=",
    thirty: "CAgSEGJ1c3kg4oCUIHNww6R0ZXIaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIHg==",
    zero: "CAgSEGJ1c3kg4oCUIHNww6R0ZXIaLgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxICCgA=",
    negative:
      "CAgSEGJ1c3kg4oCUIHNww6R0ZXIaOQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxINCgsI////////////AQ==",
    longest: "CAgSEGJ1c3kg4oCUIHNww6R0ZXIaNQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIJCgcIgLyuzpcJ",
    none: "CAgSAW0aNQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxIJCgRSQVRFEgF4"
  }
  for (
    const [name, base64, expected] of [
      ["1.5 s, after another detail", encoded.halfAndOne, "Yes throttling 1500 ms"],
      ["30 s", encoded.thirty, "Yes throttling 30000 ms"],
      ["0 s", encoded.zero, "Yes throttling 0 ms"],
      ["-1 s", encoded.negative, "Yes throttling"],
      ["10,000 years", encoded.longest, "Yes throttling 315576000000000 ms"],
      ["another detail only", encoded.none, "Yes throttling"],
      ["nothing", "", "Yes throttling"]
    ] as const
  ) {
    it(`${name}: ${expected}`, () => assert.strictEqual(info(base64), expected))
  }

  it("is read from the base64 of Headers, padded or not", () => {
    for (const text of [encoded.thirty, encoded.thirty.replace(/=+$/, "")]) {
      const error = { code: 8, details: "", metadata: new Headers({ "grpc-status-details-bin": text }) }
      assert.strictEqual(by(RetryGrpc.classifier, error), "Yes throttling 30000 ms")
    }
    const none = { code: 8, details: "", metadata: new Headers({ "grpc-status-details-bin": "?!" }) }
    assert.strictEqual(by(RetryGrpc.classifier, none), "Yes throttling")
  })

  it("whatever the bytes, a hint is a duration or none: 5,000 mutations", () => {
    let state = 7
    const next = (below: number) => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) % below
    const originals = Object.values(encoded).map((text) => Buffer.from(text, "base64"))
    for (let round = 0; round < 5000; round++) {
      const bytes = Uint8Array.from(originals[next(originals.length)]!)
      for (let change = next(4); change >= 0; change--) bytes[next(bytes.length)] = next(256)
      const cut = bytes.subarray(0, next(3) === 0 ? next(bytes.length) : bytes.length)
      const found = RetryClassifier.classify(RetryGrpc.classifier, failure(8, { "grpc-status-details-bin": [cut] }))
      const { retryAfter, throttling } = Option.getOrThrow(found)
      assert.isTrue(throttling)
      const millis = retryAfter === undefined ? 0 : Duration.toMillis(retryAfter)
      assert.isTrue(millis >= 0 && millis <= Number.MAX_SAFE_INTEGER)
    }
  })

  it("is read quickly, however long it is", () => {
    const seconds = secondsOf(() => {
      for (const length of [65_536, 1_000_000]) {
        const many = new Uint8Array(length).fill(26).map((byte, index) => index % 2 === 0 ? byte : 0)
        by(RetryGrpc.classifier, failure(8, { "grpc-status-details-bin": [many] }))
        by(RetryGrpc.classifier, failure(8, { "grpc-status-details-bin": [new Uint8Array(length).fill(255)] }))
      }
    })
    assert.isBelow(seconds, 1)
  })
})

describe("honorPushback", () => {
  const base = Backoff.exponential("1 second").pipe(RetryPolicy.jittered("full"))

  /** When a call is sent that fails with each of the errors in turn. */
  const timesOf = (policy: RetryPolicy.RetryPolicy, errors: ReadonlyArray<unknown>, chance = 0.5) =>
    Effect.gen(function*() {
      const drivers = [
        <A, E>(self: Effect.Effect<A, E>) => withRetry(self, policy),
        <A, E>(self: Effect.Effect<A, E>) => Effect.retry(self, policy)
      ]
      const seen: Array<Array<number>> = []
      for (const run of drivers) {
        const start = yield* Clock.currentTimeMillis
        const times: Array<number> = []
        const send = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const sends = times.push(now - start)
          return sends > errors.length ? Effect.void : Effect.fail(errors[sends - 1])
        })
        const fiber = yield* run(send).pipe(
          Effect.provideService(Random.Random, constantRandom(chance)),
          Effect.exit,
          Effect.forkChild
        )
        yield* TestClock.adjust("1 hour")
        yield* Fiber.join(fiber)
        seen.push(times)
      }
      assert.deepStrictEqual(seen[0], seen[1])
      return seen[0]!
    })

  const plain = failure(14)
  const wrapped = { _tag: "Mine", cause: pushedBack("300") }
  for (
    const [name, errors, expected] of [
      ["waits exactly as long, earlier than the backoff or later", [pushedBack("10"), pushedBack("30000")], [
        0,
        10,
        30_010
      ]],
      ["resets the backoff", [plain, plain, pushedBack("300"), plain, plain], [0, 500, 1500, 1800, 2300, 3300]],
      ["each call begins at its own", [plain, plain, plain], [0, 500, 1500, 3500]],
      ["follows a minute, the default", [pushedBack("60000")], [0, 60_000]],
      ["stops at more than that", [pushedBack("60001"), plain], [0]],
      ["stops when the server says so", [pushedBack("-1"), plain], [0]],
      ["stops when the server makes no sense", [plain, pushedBack("soon"), plain], [0, 500]],
      ["reads it from a cause", [wrapped], [0, 300]],
      ["reads it from the cause of a reason", [{ _tag: "Mine", reason: { cause: pushedBack("300") } }], [0, 300]],
      ["of 0 retries immediately", [pushedBack("0")], [0, 0]]
    ] as const
  ) {
    it.effect(name, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* timesOf(RetryGrpc.honorPushback()(base), errors), [...expected])
      }))
  }

  it.effect("applies no jitter, and no other hint, to a pushback", () =>
    Effect.gen(function*() {
      const policy = base.pipe(RetryPolicy.honorRetryAfter(), RetryGrpc.honorPushback())
      for (const chance of [0, 0.3, 0.999]) {
        assert.deepStrictEqual(yield* timesOf(policy, [pushedBack("250")], chance), [0, 250])
      }
    }))

  it.effect("is a floor if honorRetryAfter is used instead", () =>
    Effect.gen(function*() {
      const policy = base.pipe(RetryPolicy.honorRetryAfter())
      assert.deepStrictEqual(yield* timesOf(policy, [pushedBack("250"), pushedBack("3000")]), [0, 500, 3500])
    }))

  it.effect("cuts what is too long, if asked to", () =>
    Effect.gen(function*() {
      const policy = RetryGrpc.honorPushback({ atMost: "2 seconds", beyond: "clamp" })(base)
      assert.deepStrictEqual(yield* timesOf(policy, [pushedBack("60000"), plain]), [0, 2000, 2500])
    }))

  it.effect("is capped by what comes after it, and not by what comes before", () =>
    Effect.gen(function*() {
      const before = base.pipe(RetryPolicy.capped("100 millis"), RetryGrpc.honorPushback())
      assert.deepStrictEqual(yield* timesOf(before, [pushedBack("5000"), plain]), [0, 5000, 5100])
      const after = base.pipe(RetryGrpc.honorPushback(), RetryPolicy.capped("100 millis"))
      assert.deepStrictEqual(yield* timesOf(after, [pushedBack("5000"), plain]), [0, 100, 200])
    }))

  it.effect("leaves a lifted schedule where it was", () =>
    Effect.gen(function*() {
      const policy = RetryGrpc.honorPushback()(RetryPolicy.fromSchedule(Schedule.exponential("1 second")))
      assert.deepStrictEqual(yield* timesOf(policy, [plain, pushedBack("10"), plain]), [0, 1000, 1010, 5010])
    }))

  it.effect("restarts the delays for a new call", () =>
    Effect.gen(function*() {
      const seen: Array<readonly [number, number]> = []
      const policy = RetryGrpc.honorPushback()(RetryPolicy.fromDelay(({ attempt, previous }) => {
        seen.push([attempt, Duration.toMillis(previous)])
        return attempt * 100
      }))
      yield* timesOf(policy, [plain, plain, pushedBack("10"), plain, plain])
      assert.deepStrictEqual(seen.slice(0, 5), [[1, 0], [2, 100], [3, 200], [1, 0], [2, 100]])
    }))

  it.effect("says why it stopped", () =>
    Effect.gen(function*() {
      const reason = yield* Effect.retryOrElse(
        Effect.fail(pushedBack("70000")),
        RetryGrpc.honorPushback()(base),
        (_, output) => Effect.succeed(RetryDecision.isStop(output) ? output.reason : "retried")
      )
      assert.strictEqual(reason, "retry-after-too-long")
    }))

  it("refuses impossible bounds", () => {
    assert.throws(() => RetryGrpc.honorPushback({ atMost: -1 }), InvalidOption, "atMost")
    assert.throws(() => RetryGrpc.honorPushback({ atMost: Infinity }), InvalidOption, "atMost")
    assert.throws(() => RetryGrpc.honorPushback({ beyond: JSON.parse(`"cut"`) }), InvalidOption, "beyond")
  })
})

describe("unary", () => {
  class Metadata {
    readonly values: Map<string, string>
    constructor(values = new Map<string, string>()) {
      this.values = values
    }
    readonly clone = () => new Metadata(new Map(this.values))
    readonly set = (key: string, value: string) => this.values.set(key, value)
  }

  it.effect("fails with the error itself, succeeds with the value, whenever it is called back", () =>
    Effect.gen(function*() {
      const error = failure(14)
      const cancel = () => {}
      const results = [
        RetryGrpc.unary<number>((_, callback) => (callback(error), { cancel })),
        RetryGrpc.unary<number>((_, callback) => (callback(null, 7), { cancel })),
        RetryGrpc.unary<number>((_, callback) => (queueMicrotask(() => callback(error)), { cancel })),
        RetryGrpc.unary<number>((_, callback) => (queueMicrotask(() => callback(null, 7)), { cancel }))
      ]
      const exits = yield* Effect.forEach(results, Effect.exit)
      assert.deepStrictEqual(exits, [Exit.fail(error), Exit.succeed(7), Exit.fail(error), Exit.succeed(7)])
      assert.strictEqual(yield* Effect.flip(results[0]!), error)
    }))

  it.effect("has a deadline of its own for each attempt, and says how many came before", () =>
    Effect.gen(function*() {
      const base = new Metadata(new Map([["tenant", "a"]]))
      const seen: Array<readonly [number, number, Record<string, string>]> = []
      const call = RetryGrpc.unary<number>((attempt, callback) => {
        seen.push([attempt.previousAttempts, attempt.deadline, Object.fromEntries(attempt.metadata(base).values)])
        callback(failure(14))
        return { cancel: () => {} }
      }, { timeout: "500 millis" })
      const policy = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)
      for (
        const retried of [
          withRetry(call, policy),
          Effect.retry(call, policy),
          Effect.retry(call, Schedule.upTo(Schedule.spaced("1 second"), { times: 2 }))
        ]
      ) {
        const start = yield* Clock.currentTimeMillis
        seen.length = 0
        const fiber = yield* Effect.forkChild(Effect.exit(retried))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(seen, [
          [0, start + 500, { tenant: "a" }],
          [1, start + 1500, { tenant: "a", "grpc-previous-rpc-attempts": "1" }],
          [2, start + 2500, { tenant: "a", "grpc-previous-rpc-attempts": "2" }]
        ])
      }
      assert.deepStrictEqual([...base.values.keys()], ["tenant"])
    }))

  it.effect("counts earlier sends whatever the error was mapped to", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(3))
      const seen: Array<number> = []
      const call = RetryGrpc.unary<number>((attempt, callback) => {
        seen.push(attempt.previousAttempts)
        callback(failure(14))
        return { cancel: () => {} }
      }).pipe(Effect.mapError((cause) => ({ _tag: "StockError", cause })))
      for (const retried of [withRetry(call, policy), Effect.retry(call, policy)]) {
        seen.length = 0
        const fiber = yield* Effect.forkChild(Effect.exit(retried))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(seen, [0, 1, 2])
      }
    }))

  it.effect("has no deadline without a timeout, and no previous attempts when it is repeated", () =>
    Effect.gen(function*() {
      const seen: Array<readonly [number, number]> = []
      const call = RetryGrpc.unary<number>((attempt, callback) => {
        seen.push([attempt.previousAttempts, attempt.deadline])
        callback(null, 1)
        return { cancel: () => {} }
      })
      yield* Effect.repeat(call, { times: 1 })
      assert.deepStrictEqual(seen, [[0, Infinity], [0, Infinity]])
    }))

  it.effect("cancels the call when it is interrupted, once", () =>
    Effect.gen(function*() {
      let cancelled = 0
      let late: RetryGrpc.UnaryCallback<number> | undefined
      const call = RetryGrpc.unary<number>((_, callback) => {
        late = callback
        return { cancel: () => cancelled++ }
      })
      const fiber = yield* Effect.forkChild(call, { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(cancelled, 1)
      late!(failure(1))
      assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
    }))

  it.effect("interrupted at any step, leaves no call behind", () =>
    Effect.gen(function*() {
      const open = new Set<number>()
      let sends = 0
      const call = RetryGrpc.unary<number>((_, callback) => {
        const send = ++sends
        open.add(send)
        const close = () => open.delete(send)
        if (send === 1) queueMicrotask(() => close() && callback(failure(14)))
        return { cancel: close }
      })
      const program = Effect.suspend(() => {
        sends = 0
        return withRetry(call, Backoff.fixed("1 second"))
      })
      const steps = yield* sweep(Effect.timeout(program, "3 seconds"), () =>
        Effect.sync(() => assert.strictEqual(open.size, 0)))
      assert.isAbove(steps, 5)
      assert.strictEqual(sends, 2)
    }))

  it.effect("dies with what the client throws, and is not sent again", () =>
    Effect.gen(function*() {
      const closed = new Error("Channel has been shut down")
      let sends = 0
      const call = RetryGrpc.unary(() => {
        sends++
        throw closed
      })
      const exit = yield* Effect.exit(withRetry(call, Backoff.fixed("1 second")))
      assert.deepStrictEqual([exit, sends], [Exit.die(closed), 1])
    }))

  it("refuses an impossible timeout", () => {
    const call = () => ({ cancel: () => {} })
    assert.throws(() => RetryGrpc.unary(call, { timeout: 0 }), InvalidOption, "timeout")
    assert.throws(() => RetryGrpc.unary(call, { timeout: "-1 second" }), InvalidOption, "timeout")
  })
})
