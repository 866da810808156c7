import { assert, describe, it } from "@effect/vitest"
import * as grpc from "@grpc/grpc-js"
import { Backoff, RetryClassifier, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import type { Retry } from "effect-retry/RetryDecision"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import { CurrentObserver } from "effect-retry/RetryObserver"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as http2 from "node:http2"
import type * as net from "node:net"
import * as Grpc from "../../examples/grpc.ts"
import { until } from "../utils/until.ts"

// The real client and server of grpc-js, on loopback.

const definition = {
  get: {
    path: "/test.Stock/Get",
    requestStream: false,
    responseStream: false,
    requestSerialize: (item: string) => Buffer.from(item),
    requestDeserialize: (bytes: Buffer) => bytes.toString(),
    responseSerialize: (amount: number) => Buffer.from(`${amount}`),
    responseDeserialize: (bytes: Buffer) => Number(bytes.toString())
  }
} as const

type Answer =
  | number
  | "hangs"
  | {
    readonly code: number
    readonly details?: string
    readonly metadata?: ReadonlyArray<readonly [string, string | Buffer]>
  }

const metadataOf = (entries: ReadonlyArray<readonly [string, string | Buffer]>): grpc.Metadata => {
  const metadata = new grpc.Metadata()
  for (const [key, value] of entries) metadata.add(key, value)
  return metadata
}

const clientOf = (port: number, options: grpc.ClientOptions = {}): Effect.Effect<Grpc.Stock, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), options)),
      (client) => Effect.sync(() => client.close())
    ),
    (client): Grpc.Stock => ({
      get: (item, metadata, options, callback) => {
        const { path, requestSerialize, responseDeserialize } = definition.get
        return client.makeUnaryRequest(path, requestSerialize, responseDeserialize, item, metadata, options, callback)
      }
    })
  )

/** A server that gives each answer in turn, then 1, and none for "late"; `seen` is the metadata of the requests, `cancelled` counts. */
const serverOf = (answers: ReadonlyArray<Answer>) =>
  Effect.gen(function*() {
    const seen: Array<grpc.Metadata> = []
    const state = { seen, cancelled: 0 }
    const get: grpc.handleUnaryCall<string, number> = (call, callback) => {
      if (call.request === "late") return
      const answer = answers[seen.push(call.metadata) - 1] ?? 1
      call.on("cancelled", () => state.cancelled++)
      if (answer === "hangs") return
      if (typeof answer === "number") return callback(null, answer)
      const { code, details = "", metadata = [] } = answer
      callback({ code, details, metadata: metadataOf(metadata) })
    }
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const server = new grpc.Server()
        server.addService(definition, { get })
        return server
      }),
      (server) => Effect.sync(() => server.forceShutdown())
    )
    const port = yield* Effect.callback<number>((resume) => {
      server.bindAsync(
        "127.0.0.1:0",
        grpc.ServerCredentials.createInsecure(),
        (_, port) => resume(Effect.succeed(port))
      )
    })
    return { state, port }
  })

/** A server that speaks HTTP/2 and no gRPC; `streams` counts the requests that reached it. */
const rawServer = (onStream: (stream: http2.ServerHttp2Stream) => void) =>
  Effect.gen(function*() {
    const state = { streams: 0 }
    const sessions = new Set<http2.ServerHttp2Session>()
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const server = http2.createServer()
        server.on("session", (session) => sessions.add(session))
        server.on("stream", (stream) => {
          state.streams++
          stream.on("error", () => {})
          onStream(stream)
        })
        return server
      }),
      (server) =>
        Effect.sync(() => {
          for (const session of sessions) session.destroy()
          server.close()
        })
    )
    yield* Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    })
    return { state, port: (server.address() as net.AddressInfo).port }
  })

const words = (classifier: RetryClassifier.RetryClassifier, error: unknown): string => {
  const info = Option.getOrUndefined(RetryClassifier.classify(classifier, error))
  if (info === undefined) return "unknown"
  const { retryAfter, safety, throttling, timeout } = info
  return [safety, throttling && "throttling", timeout && "timeout", retryAfter && `${Duration.toMillis(retryAfter)} ms`]
    .filter((word) => word !== false && word !== undefined).join(" ")
}

const careful = RetryGrpc.makeClassifier({ idempotent: false })
const fast = Backoff.fixed("1 millis").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)

/** One send without a timeout, so that a slow machine changes nothing. */
const send = (stock: Grpc.Stock, item: string) =>
  RetryGrpc.unary<number>((attempt, callback) =>
    stock.get(item, attempt.metadata(new grpc.Metadata()), { deadline: attempt.deadline }, callback)
  )

describe("errors of grpc-js", () => {
  for (
    const [name, answer, expected] of [
      ...[
        [1, "unknown"],
        [2, "unknown"],
        [3, "unknown"],
        [4, "Maybe timeout"],
        [5, "unknown"],
        [8, "Yes throttling"],
        [10, "unknown"],
        [13, "unknown"],
        [14, "Yes"],
        [16, "unknown"]
      ]
        .map(([code, expected]) => [`status ${code}`, { code: Number(code) }, expected] as const),
      ["a pushback", { code: 14, metadata: [["grpc-retry-pushback-ms", "250"]] }, "Yes 250 ms"],
      ["a pushback that forbids", { code: 14, metadata: [["grpc-retry-pushback-ms", "-1"]] }, "No"],
      ["a pushback that is none", { code: 14, metadata: [["grpc-retry-pushback-ms", "soon"]] }, "No"],
      [
        "two pushbacks",
        { code: 14, metadata: [["grpc-retry-pushback-ms", "1"], ["grpc-retry-pushback-ms", "2"]] },
        "No"
      ],
      ["RetryInfo", {
        code: 8,
        metadata: [[
          "grpc-status-details-bin",
          Buffer.from(
            "CAgSEGJ1c3kg4oCUIHNww6R0ZXIaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIHg==",
            "base64"
          )
        ]]
      }, "Yes throttling 30000 ms"]
    ] as ReadonlyArray<readonly [string, Answer, string]>
  ) {
    it.live(`${name}: ${expected}`, () =>
      Effect.gen(function*() {
        const { port } = yield* serverOf([answer])
        const stock = yield* clientOf(port)
        const error = yield* Effect.flip(send(stock, "a"))
        assert.strictEqual(words(RetryClassifier.defaultClassifier, error), expected)
        assert.instanceOf(error, Error)
      }).pipe(Effect.scoped))
  }

  it.live("a message that is too long is not retried", () =>
    Effect.gen(function*() {
      const { port, state } = yield* serverOf([123_456_789])
      const stock = yield* clientOf(port, { "grpc.max_receive_message_length": 4 })
      const error = yield* Effect.flip(withRetry(send(stock, "a"), fast))
      assert.deepStrictEqual([error.code, error.details], [8, "Received message larger than max (9 vs 4)"])
      assert.strictEqual(state.seen.length, 1)
      const sending = yield* clientOf(port, { "grpc.max_send_message_length": 4 })
      const unsent = yield* Effect.flip(withRetry(send(sending, "abcdefghi"), fast))
      assert.deepStrictEqual([unsent.code, words(careful, unsent)], [8, "unknown"])
      assert.strictEqual(state.seen.length, 1)
    }).pipe(Effect.scoped))

  it.live("a connection that was never made is safe to retry, whatever the method", () =>
    Effect.gen(function*() {
      const { port } = yield* Effect.scoped(rawServer(() => {}))
      const stock = yield* clientOf(port)
      const error = yield* Effect.flip(send(stock, "a"))
      assert.strictEqual(error.code, 14)
      assert.match(error.details, /^No connection established/)
      assert.strictEqual(words(careful, error), "Yes")
    }).pipe(Effect.scoped))

  it.live("a connection that breaks during a call is maybe safe to retry", () =>
    Effect.gen(function*() {
      const { port, state } = yield* rawServer((stream) => stream.session?.destroy())
      const stock = yield* clientOf(port)
      const error = yield* Effect.flip(send(stock, "a"))
      assert.strictEqual(error.code, 14)
      assert.strictEqual(words(careful, error), "Maybe")
      assert.strictEqual(words(RetryGrpc.classifier, error), "Yes")
      assert.strictEqual(state.streams, 1)
    }).pipe(Effect.scoped))

  for (const [retries, streams] of [[1, 2], [0, 1]] as const) {
    it.live(`a refused stream is safe to retry: grpc-js sends it ${streams} times with enable_retries ${retries}`, () =>
      Effect.gen(function*() {
        const { port, state } = yield* rawServer((stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM))
        const stock = yield* clientOf(port, { "grpc.enable_retries": retries })
        const error = yield* Effect.flip(send(stock, "a"))
        assert.deepStrictEqual([error.code, error.details, state.streams], [14, "Stream refused by server", streams])
        assert.strictEqual(words(careful, error), "Yes")
        const retried = withRetry(send(stock, "a"), fast)
        yield* Effect.flip(Effect.provide(retried, RetryClassifier.layer(careful)))
        assert.strictEqual(state.streams, 4 * streams)
      }).pipe(Effect.scoped))
  }
})

describe("calls of grpc-js", () => {
  it.live("are retried until they answer; a retry says how many sends came before; the quota pays and is paid back", () =>
    Effect.gen(function*() {
      const { port, state } = yield* serverOf([{ code: 14 }, { code: 8 }, 42])
      const stock = yield* clientOf(port)
      const policy = RetryPolicy.quotaGated({ cost: 5 })(fast)
      assert.strictEqual(yield* withRetry(send(stock, "a"), policy), 42)
      assert.deepStrictEqual(state.seen.map((metadata) => metadata.get("grpc-previous-rpc-attempts")), [[], ["1"], [
        "2"
      ]])
      assert.strictEqual(yield* RetryQuota.balance, 495)
    }).pipe(Effect.scoped, Effect.provide(RetryQuota.layer())))

  it.live("are given up at the deadline of each attempt, and retried if that is safe", () =>
    Effect.gen(function*() {
      const { port } = yield* serverOf([7])
      const stock = yield* clientOf(port)
      let sends = 0
      const brief = RetryGrpc.unary<number>(
        (attempt, callback) => {
          const [item, deadline] = ++sends < 3 ? ["late", attempt.deadline] : ["a", Infinity]
          return stock.get(item, new grpc.Metadata(), { deadline }, callback)
        },
        { timeout: "200 millis" }
      )
      const retried = withRetry(brief, fast)
      assert.strictEqual((yield* Effect.flip(retried)).code, 4)
      assert.strictEqual(sends, 1)
      assert.strictEqual(yield* Effect.provide(retried, Grpc.classifier), 7)
      assert.strictEqual(sends, 3)
    }).pipe(Effect.scoped))

  it.live("are canceled at the server when their fiber is interrupted, and not sent again", () =>
    Effect.gen(function*() {
      const { port, state } = yield* serverOf(["hangs"])
      const stock = yield* clientOf(port)
      const fiber = yield* Effect.forkChild(Grpc.amountOf(stock, "a").pipe(Effect.provide(RetryQuota.layer())))
      yield* until(() => state.seen.length === 1)
      yield* Fiber.interrupt(fiber)
      yield* until(() => state.cancelled === 1)
      assert.deepStrictEqual([state.cancelled, state.seen.length], [1, 1])
      assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
    }).pipe(Effect.scoped))

  it.live("wait as long as the server says, and stop when it says so", () =>
    Effect.gen(function*() {
      const pushback = (value: string): Answer => ({ code: 14, metadata: [["grpc-retry-pushback-ms", value]] })
      const { port, state } = yield* serverOf([pushback("120"), 5, pushback("0"), pushback("-1"), 6])
      const stock = yield* clientOf(port)
      const delays: Array<number> = []
      const observer = { onRetry: ({ delay }: Retry) => void delays.push(Duration.toMillis(delay)) }
      const slow = Backoff.fixed("1 hour").pipe(RetryGrpc.honorPushback(), RetryPolicy.whileRetryable)
      const observed = Effect.provideService(withRetry(send(stock, "a"), slow), CurrentObserver, observer)
      assert.strictEqual(yield* observed, 5)
      assert.strictEqual((yield* Effect.flip(observed)).code, 14)
      assert.deepStrictEqual([state.seen.length, delays], [4, [120, 0]])
    }).pipe(Effect.scoped))
})

describe("examples/grpc.ts", () => {
  it.live("retries a deadline and a throttle, follows the pushback", () =>
    Effect.gen(function*() {
      const { port, state } = yield* serverOf([
        { code: 8, metadata: [["grpc-retry-pushback-ms", "1"]] },
        { code: 4, metadata: [["grpc-retry-pushback-ms", "1"]] },
        3
      ])
      const stock = yield* clientOf(port)
      assert.strictEqual(yield* Grpc.amountOf(stock, "a"), 3)
      assert.strictEqual(state.seen.length, 3)
      assert.strictEqual(yield* RetryQuota.balance, 495)
    }).pipe(Effect.scoped, Effect.provide(RetryQuota.layer())))
})
