import { assert, describe, it } from "@effect/vitest"
import { Metadata } from "@grpc/grpc-js"
import {
  AdaptiveRateLimiter,
  Backoff,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Criticality from "effect-retry/Criticality"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as RetryPropagationRpc from "effect-retry/RetryPropagationRpc"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as RpcTest from "effect/rpc/RpcTest"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { dynamo, failure, getItem, played } from "../utils/awsSdk.ts"
import { sweep } from "../utils/sweep.ts"

const policy = Backoff.fixed("100 millis").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)

type Told = { readonly [name: string]: string }

/** Runs while time passes. */
const timed = <A, E, R>(self: Effect.Effect<A, E, R>, time: Duration.Input = "1 minute") =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.exit(self))
    yield* TestClock.adjust(time)
    return yield* Fiber.join(fiber)
  })

/** The headers of the sends of a failing call. */
const toldBy = <R>(
  way: (send: Effect.Effect<never, Kit.Transient>) => Effect.Effect<unknown, unknown, R>,
  latency = 10
) =>
  Effect.gen(function*() {
    const told: Array<Told> = []
    const send = Effect.flatMap(RetryPropagation.headers, (headers) => {
      told.push(headers)
      return Effect.andThen(Effect.sleep(latency), Effect.fail(new Kit.Transient()))
    })
    yield* timed(way(send))
    return told
  })

/** A request that a server works on. */
const requested = (
  headers: Told,
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, HttpServerRequest.HttpServerRequest>,
  options?: RetryPropagation.ServerOptions
) =>
  RetryPropagation.server(options)(app).pipe(
    Effect.provideService(
      HttpServerRequest.HttpServerRequest,
      HttpServerRequest.fromWeb(new Request("http://here/", { headers }))
    )
  )

const ok = Effect.succeed(HttpServerResponse.empty({ status: 200 }))

/** The headers that the work on a request sends on. */
const toldWithin = (headers: Told, way = (send: Effect.Effect<never, Kit.Transient>) => Effect.asVoid(send)) =>
  Effect.gen(function*() {
    const told: Array<Told> = []
    const send = Effect.flatMap(RetryPropagation.headers, (headers) => {
      told.push(headers)
      return Effect.fail(new Kit.Transient())
    })
    yield* timed(requested(headers, Effect.andThen(Effect.exit(way(send)), ok)))
    return told
  })

describe("what a send says", () => {
  const ways: Readonly<
    Record<string, (self: Effect.Effect<never, Kit.Transient>) => Effect.Effect<never, Kit.Transient>>
  > = {
    withRetry: withRetry(RetryPolicy.deadline(policy, "1 second")),
    "Effect.retry": (self) => Effect.retry(self, RetryPolicy.deadline(policy, "1 second")),
    "RetryStrategy.run": (self) =>
      RetryStrategy.run(self).pipe(Effect.provide(RetryStrategy.layer(RetryPolicy.deadline(policy, "1 second"))))
  }
  for (const [name, way] of Object.entries(ways)) {
    it.effect(`under ${name}: which it is, of how many, what is left, and how much it matters`, () =>
      Effect.gen(function*() {
        const expected = (attempt: string, left: string) => ({
          "x-retry-attempt": attempt,
          "x-retry-max-attempts": "3",
          "x-deadline-ms": left,
          "x-criticality": "critical"
        })
        assert.deepStrictEqual(
          yield* toldBy(way).pipe(
            Effect.provideService(Criticality.CurrentCriticality, "critical"),
            Effect.provide(RetryPropagation.layer())
          ),
          [expected("1", "1000"), expected("2", "890"), expected("3", "780")]
        )
      }))

    it.effect(`under ${name}: nothing, unless it is asked for`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* toldBy(way), [{}, {}, {}])
      }))

    it.effect(`under ${name}: an outer deadline that is earlier, which also ends the retries`, () =>
      Effect.gen(function*() {
        const told = yield* toldBy((self) => RetryPropagation.withDeadline("150 millis")(way(self)))
        assert.deepStrictEqual(told.map((headers) => headers["x-deadline-ms"]), ["150", "40"])
      }))
  }

  it.effect.each<[given: string | undefined, sent: string]>([
    [undefined, "1000"],
    ["604800000", "1000"],
    ["1001", "1000"],
    ["999", "999"]
  ])(
    "within a deadline of the server's own of 1000 ms, a client that says %s has %s",
    ([given, sent]) =>
      Effect.gen(function*() {
        const headers = given === undefined ? {} : { "x-deadline-ms": given }
        const app = Effect.map(RetryPropagation.headers, (told) => HttpServerResponse.empty({ headers: told }))
        const response = yield* requested(headers, app).pipe(RetryPropagation.withDeadline("1 second"))
        assert.strictEqual(response.headers["x-deadline-ms"], sent)
      })
  )

  it.effect("under custom names, and in gRPC's time format", () =>
    Effect.gen(function*() {
      const names = { deadline: "grpc-timeout", attempt: "X-Attempt", maxAttempts: "X-Max", criticality: "X-Class" }
      const rows: ReadonlyArray<[Duration.Input, string]> = [
        ["1500 millis", "1500m"],
        ["2 days", "172800S"],
        ["1 week", "604800S"],
        ["20000 days", "28800000M"]
      ]
      for (const [limit, expected] of rows) {
        const [told] = yield* toldBy((self) => RetryPropagation.withDeadline(limit)(self)).pipe(
          Effect.provide(RetryPropagation.layer(names))
        )
        assert.deepStrictEqual(told, {
          "grpc-timeout": expected,
          "x-attempt": "1",
          "x-max": "1",
          "x-class": "normal"
        })
      }
    }))

  const refused: ReadonlyArray<[RetryPropagation.HeaderNames, field: string]> = [
    [{ deadline: "" }, "deadline"],
    [{ attempt: "a b" }, "attempt"],
    [{ maxAttempts: "x:y" }, "maxAttempts"],
    [{ criticality: "x\r\nset-cookie" }, "criticality"],
    [{ deadline: 3 as never }, "deadline"],
    [{ deadline: "x-a", attempt: "X-A" }, "headers"]
  ]
  for (const [names, field] of refused) {
    it(`no header is called ${JSON.stringify(names)}`, () => {
      assert.throws(() => RetryPropagation.layer(names), new RegExp(`${field} must be`))
      assert.throws(() => RetryPropagation.server({ headers: names }), new RegExp(`${field} must be`))
      assert.throws(() => RetryPropagationRpc.layer({ headers: names }), new RegExp(`${field} must be`))
    })
  }

  it("a deadline is above 0, a limiter is a ConcurrencyLimiter", () => {
    for (const bad of [0, -1, Infinity, "soon" as never]) {
      assert.throws(() => RetryPropagation.withDeadline(bad), /deadline must be a finite duration above 0/)
    }
    assert.throws(() => RetryPropagation.server({ limiter: {} as never }), /limiter must be a ConcurrencyLimiter/)
  })
})

describe("what a server makes of it", () => {
  const retried = (told: Told) =>
    Effect.map(toldWithin(told, (send) => withRetry(send, RetryPolicy.outermostOnly(policy))), (sends) => sends.length)

  const rows: ReadonlyArray<[Told, sends: number]> = [
    [{}, 3],
    [{ "x-retry-attempt": "1", "x-retry-max-attempts": "1" }, 3],
    [{ "x-retry-attempt": "1", "x-retry-max-attempts": "3" }, 1],
    [{ "x-retry-attempt": "3", "x-retry-max-attempts": "3" }, 1],
    [{ "x-retry-attempt": "1" }, 1],
    [{ "x-envoy-attempt-count": "1" }, 3],
    [{ "x-envoy-attempt-count": "2" }, 1],
    [{ "grpc-previous-rpc-attempts": "1" }, 1],
    ...["", "0", "-1", "1e9", "NaN", "Infinity", "1, 2", "９", "0x10", " "].map((bad) =>
      [{ "x-retry-attempt": encodeURI(bad) }, 3] as const
    )
  ] as never
  for (const [told, sends] of rows) {
    it.effect(`a policy that is outermostOnly sends ${sends} under ${JSON.stringify(told)}`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* retried(told), sends)
      }))
  }

  const times: ReadonlyArray<[Told, left: number | undefined]> = [
    [{}, undefined],
    [{ "x-deadline-ms": "250" }, 250],
    [{ "grpc-timeout": "3S" }, 3000],
    [{ "grpc-timeout": "20000000u" }, 20_000],
    [{ "x-deadline-ms": "999999999999999" }, 604_800_000],
    ...["", "-5", "soon", "1.5", "1e3", "99999999999999999999"].map((bad) => [{ "x-deadline-ms": bad }, undefined]),
    ...["5", "5s", "123456789m", "m"].map((bad) => [{ "grpc-timeout": bad }, undefined])
  ] as never
  for (const [told, left] of times) {
    it.effect(`what is left under ${JSON.stringify(told)} is ${left}`, () =>
      Effect.gen(function*() {
        let found: Option.Option<Duration.Duration> | undefined
        yield* requested(
          told,
          Effect.flatMap(RetryPropagation.remaining, (remaining) => {
            found = remaining
            return ok
          })
        )
        assert.strictEqual(Option.getOrUndefined(Option.map(found!, Duration.toMillis)), left)
      }))
  }

  it.effect("work whose time is over is refused before it begins, and cut off when it runs out; it is not retried", () =>
    Effect.gen(function*() {
      let begun = 0
      let cut = 0
      const app = Effect.onInterrupt(
        Effect.suspend(() => {
          begun++
          return Effect.andThen(Effect.sleep("1 second"), ok)
        }),
        () => Effect.sync(() => cut++)
      )
      const statusOf = (told: Told) =>
        Effect.flatMap(
          timed(requested(told, app)),
          (exit) => Effect.map(exit, ({ headers, status }) => [status, headers["x-should-retry"]])
        )
      assert.deepStrictEqual(yield* statusOf({ "x-deadline-ms": "0" }), [504, "false"])
      assert.deepStrictEqual([begun, cut], [0, 0])
      assert.deepStrictEqual(yield* statusOf({ "x-deadline-ms": "999" }), [504, "false"])
      assert.deepStrictEqual([begun, cut], [1, 1])
      assert.deepStrictEqual(yield* statusOf({ "x-deadline-ms": "1001" }), [200, undefined])
      assert.deepStrictEqual(yield* statusOf({}), [200, undefined])
      const response = new Response(null, { status: 504, headers: { "x-should-retry": "false" } })
      const client = HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, response)))
      const info = RetryHttp.classifier(yield* client.get("http://a/"))
      assert.strictEqual(Option.getOrThrow(info).safety, "No")
    }))

  it.effect("sheds what matters least, while the rest waits its turn", () =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.make({
        rule: ConcurrencyLimiter.fixed(1),
        maxWaiters: 2,
        maxWait: "1 hour"
      })
      const answers: Array<string> = []
      const ask = (name: string, criticality: string) =>
        Effect.forkChild(
          Effect.map(
            requested({ "x-criticality": criticality }, Effect.andThen(Effect.sleep("1 second"), ok), { limiter }),
            ({ headers, status }) => void answers.push(`${name} ${status} ${headers["x-should-retry"] ?? ""}`.trim())
          ),
          { startImmediately: true }
        )
      yield* ask("a", "normal")
      yield* ask("b", "sheddable")
      yield* ask("c", "normal")
      yield* ask("d", "critical")
      yield* ask("e", "sheddable")
      yield* ask("f", "whatever")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(answers, ["e 503 false", "f 503", "b 503 false", "a 200", "d 200", "c 200"])
      assert.deepStrictEqual(yield* limiter.state, { limit: 1, inFlight: 0, waiting: 0 })
    }))

  it.effect("whatever interrupts it, it holds no slot", () =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(1), maxWait: "1 second" })
      const one = requested(
        { "x-deadline-ms": "40" },
        RetryPropagation.headers.pipe(
          Effect.andThen(Effect.sleep(10)),
          Effect.andThen(RetryPropagation.remaining),
          Effect.andThen(ok),
          RetryPropagation.withDeadline("30 millis")
        ),
        { limiter }
      )
      const steps = yield* sweep(
        Effect.all([Effect.exit(one), Effect.exit(one)], { concurrency: 2 }).pipe(
          Effect.provide(RetryPropagation.layer())
        ),
        () => Effect.map(limiter.state, ({ inFlight, waiting }) => assert.deepStrictEqual([inFlight, waiting], [0, 0]))
      )
      assert.isAtLeast(steps, 30)
    }))
})

describe("clients", () => {
  it.effect("RetryHttp tells the server send by send, and aborts at the deadline", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      let aborted = 0
      const client = HttpClient.make((request) => {
        told.push(
          `${request.headers["x-retry-attempt"]}/${request.headers["x-retry-max-attempts"]} ${
            request.headers["x-deadline-ms"]
          }`
        )
        return told.length < 3
          ? Effect.as(Effect.sleep(50), HttpClientResponse.fromWeb(request, new Response(null, { status: 503 })))
          : Effect.onInterrupt(Effect.never, () => Effect.sync(() => aborted++))
      }).pipe(RetryHttp.retry(RetryPolicy.deadline(policy, "1 second")))
      const exit = yield* Effect.forkChild(Effect.exit(client.get("http://a/"))).pipe(
        Effect.provide(RetryPropagation.layer())
      )
      yield* TestClock.adjust("999 millis")
      assert.strictEqual(aborted, 0)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(aborted, 1)
      assert.include(String(yield* Fiber.join(exit)), "no response within 700ms")
      assert.deepStrictEqual(told, ["1/3 1000", "2/3 850", "3/3 700"])
    }))

  it.effect("RetryHttp sends nothing when the time is over", () =>
    Effect.gen(function*() {
      let sends = 0
      const client = HttpClient.make((request) => {
        sends++
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("")))
      }).pipe(RetryHttp.retry(policy))
      let failure = ""
      yield* requested(
        { "x-deadline-ms": "10" },
        Effect.uninterruptible(Effect.gen(function*() {
          yield* Effect.sleep(20)
          failure = String(yield* Effect.exit(client.get("http://a/")))
          return yield* ok
        }))
      ).pipe(timed)
      assert.include(failure, "the deadline of the call has passed: it was not sent")
      assert.strictEqual(sends, 0)
    }))

  it.effect("RetryGrpc gives the client what is left, and tells the server the rest", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const call = RetryGrpc.unary((attempt, callback) => {
        const metadata = attempt.metadata(new Metadata())
        seen.push([attempt.deadline, metadata.getMap()])
        callback(Object.assign(new Error("14"), { code: 14, details: "", metadata: new Metadata() }))
        return { cancel: () => undefined }
      }, { timeout: "700 millis" })
      yield* timed(withRetry(call, RetryPolicy.deadline(policy, "750 millis"))).pipe(
        Effect.provide(RetryPropagation.layer({ deadline: "grpc-timeout" }))
      )
      const rest = { "x-retry-max-attempts": "3", "x-criticality": "normal" }
      assert.deepStrictEqual(seen, [
        [700, { ...rest, "x-retry-attempt": "1" }],
        [750, { ...rest, "x-retry-attempt": "2", "grpc-previous-rpc-attempts": "1" }],
        [750, { ...rest, "x-retry-attempt": "3", "grpc-previous-rpc-attempts": "2" }]
      ])
    }))

  it.effect("amz-sdk-request has a ttl that is not after the deadline", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const send = Effect.gen(function*() {
        yield* RequestHeaders.observeDate("Thu, 01 Jan 1970 00:00:00 GMT")
        seen.push((yield* RequestHeaders.headers({ maxAttempts: 3, readTimeout: "1 minute" }))["amz-sdk-request"])
        seen.push((yield* RequestHeaders.headers({ maxAttempts: 3 }))["amz-sdk-request"])
        return yield* Effect.fail(new Kit.Transient())
      })
      yield* timed(RequestHeaders.withInvocation(withRetry(send, RetryPolicy.deadline(policy, "5 seconds")))).pipe(
        Effect.provide(RetryPropagation.layer())
      )
      assert.deepStrictEqual(
        seen.slice(0, 2),
        Array.from({ length: 2 }, () => "ttl=19700101T000005Z; attempt=1; max=3")
      )
    }))

  it.effect("a custom strategy tells which send it is, and one without a token sends as if it were not there", () =>
    Effect.gen(function*() {
      const token = (attempt: number): RetryStrategy.Token => ({
        attempt,
        delay: Duration.zero,
        waited: Duration.zero,
        cost: 0,
        markSent: Effect.succeed(true),
        abandon: Effect.succeed(false)
      })
      const stop = { _tag: "Stop", reason: "max-attempts", attempts: 2 } as never
      const own = (acquire: RetryStrategy.Service["acquireInitialToken"]) =>
        Layer.succeed(RetryStrategy.RetryStrategy, {
          acquireInitialToken: acquire,
          refreshRetryToken: ({ attempt }) =>
            attempt === 1 ? Effect.succeed(token(2)) : Effect.fail(new RetryStrategy.RetryRefused({ stop })),
          recordSuccess: () => Effect.void
        })
      const told = (acquire: RetryStrategy.Service["acquireInitialToken"]) =>
        toldBy((send) => Effect.provide(RetryStrategy.run(send), own(acquire))).pipe(
          Effect.provide(RetryPropagation.layer()),
          Effect.map((sends) => sends.map((headers) => [headers["x-retry-attempt"], headers["x-retry-max-attempts"]]))
        )
      assert.deepStrictEqual(yield* told(() => Effect.succeed(token(1))), [["1", undefined], ["2", undefined]])
      const limited = new AdaptiveRateLimiter.RateLimitExceeded({ rate: 1, retryAfter: Duration.zero } as never)
      assert.deepStrictEqual(yield* told(() => Effect.fail(limited)), [["1", "1"]])
    }))

  it.effect("AwsSdk is aborted at the deadline, and its retries say when that is", () =>
    Effect.gen(function*() {
      const late = failure("InternalServerError", 500, { date: "Thu, 01 Jan 1970 00:00:10 GMT" })
      const { client, requests } = dynamo([late, late, { hangs: true }])
      const stops: Array<string> = []
      const patient = RetryPolicy.deadline(policy, "5 seconds")
      const call = (layer: Layer.Layer<never>) =>
        played(Effect.flip(AwsSdk.sendWithRetry(client, getItem(), patient))).pipe(
          Effect.provide(layer),
          Effect.provideService(RetryObserver.CurrentObserver, { onStop: (stop) => void stops.push(stop.reason) })
        )
      const error = yield* call(RetryPropagation.layer())
      const told = requests.map(({ headers }) => headers["amz-sdk-request"]!)
      assert.strictEqual(told[0], "attempt=1; max=3")
      assert.match(told[1]!, /^ttl=19700101T00001[45]Z; attempt=2; max=3$/)
      assert.match(told[2]!, /^ttl=19700101T00001[45]Z; attempt=3; max=3$/)
      assert.strictEqual(error.name, "TimeoutError")
      assert.match(error.message, /^no answer within 4s \d+ms, the deadline of the call$/)
      assert.deepStrictEqual([requests[2]!.aborted(), stops], [true, ["max-attempts"]])
    }))

  it.effect("AwsSdk sends nothing when the time is over, and has no ttl without the layer", () =>
    Effect.gen(function*() {
      const dated = failure("InternalServerError", 500, { date: "Thu, 01 Jan 1970 00:00:10 GMT" })
      const { client, requests } = dynamo([dated])
      let failed: unknown
      yield* requested(
        { "x-deadline-ms": "10" },
        Effect.uninterruptible(Effect.gen(function*() {
          yield* Effect.sleep(20)
          failed = yield* Effect.flip(AwsSdk.send(client, getItem()))
          return yield* ok
        }))
      ).pipe(timed)
      assert.include(String(failed), "TimeoutError: the deadline of the call has passed: it was not sent")
      assert.lengthOf(requests, 0)
      yield* played(Effect.flip(AwsSdk.sendWithRetry(client, getItem(), policy)))
      assert.deepStrictEqual(
        requests.map(({ headers }) => headers["amz-sdk-request"]),
        ["attempt=1; max=3", "attempt=2; max=3", "attempt=3; max=3"]
      )
    }))

  it.effect("tokens of the quota are settled as always", () =>
    Effect.gen(function*() {
      const gated = RetryPolicy.quotaGated(policy, { cost: 5 })
      yield* toldBy((self) => withRetry(self, gated))
      yield* toldBy((self) => Effect.retry(self, gated))
      assert.strictEqual(yield* RetryQuota.balance, 480)
      yield* Effect.retry(Effect.void, gated)
      assert.strictEqual(yield* RetryQuota.balance, 481)
    }).pipe(Effect.provide([RetryQuota.layer(), RetryPropagation.layer()])))
})

describe("RPC", () => {
  const Get = Rpc.make("Get", { payload: { id: Schema.String }, success: Schema.String, error: Schema.String })
  const group = RpcGroup.make(Get).middleware(RetryPropagationRpc.Propagation)

  it.effect("a procedure has what is left, fails when it is over, and leaves retrying to its caller", () =>
    Effect.gen(function*() {
      let sends = 0
      const handlers = group.toLayer({
        Get: ({ id }) =>
          id === "slow"
            ? Effect.as(Effect.sleep("10 seconds"), id)
            : withRetry(
              Effect.suspend(() => {
                sends++
                return Effect.fail(new Kit.Transient())
              }),
              RetryPolicy.outermostOnly(policy)
            ).pipe(Effect.mapError(() => "down"))
      })
      const client = yield* RpcTest.makeClient(group).pipe(Effect.provide([handlers, RetryPropagationRpc.layer()]))
      const call = (id: string) => client.Get({ id }).pipe(RetryPropagationRpc.withPropagation)
      const slow = yield* timed(
        call("slow").pipe(RetryPropagation.withDeadline("1 second"), Effect.exit),
        "2 seconds"
      )
      assert.match(String(slow), /DeadlineExceeded/)
      yield* timed(withRetry(call("a"), Backoff.fixed("10 millis").pipe(RetryPolicy.maxAttempts(3)))).pipe(
        Effect.provide(RetryPropagation.layer())
      )
      assert.strictEqual(sends, 3)
      sends = 0
      yield* timed(call("a"))
      assert.strictEqual(sends, 3)
    }).pipe(Effect.scoped))

  it.effect("sheds what matters least, and a shed procedure is retried unless it is sheddable", () =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.make({
        rule: ConcurrencyLimiter.fixed(1),
        maxWaiters: 1,
        maxWait: "1 hour"
      })
      const handlers = group.toLayer({ Get: ({ id }) => Effect.as(Effect.sleep("1 second"), id) })
      const client = yield* RpcTest.makeClient(group).pipe(
        Effect.provide([handlers, RetryPropagationRpc.layer({ limiter })])
      )
      const answers: Array<string> = []
      const ask = (id: string, criticality: string) =>
        client.Get({ id }).pipe(
          RpcClient.withHeaders({ "x-criticality": criticality }),
          Effect.match({
            onSuccess: (value) => answers.push(value),
            onFailure: (error) => {
              const safety = Option.getOrThrow(RetryInfo.fromError(error)).safety
              answers.push(`${id} ${(error as { readonly _tag: string })._tag} ${safety}`)
            }
          }),
          (asked) => Effect.forkChild(asked, { startImmediately: true })
        )
      yield* ask("a", "normal")
      yield* ask("b", "sheddable")
      yield* ask("c", "critical")
      yield* ask("d", "normal")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(answers, ["d RpcOverloaded Yes", "b RpcOverloaded No", "a", "c"])
      assert.deepStrictEqual(yield* limiter.state, { limit: 1, inFlight: 0, waiting: 0 })
      assert.throws(() => RetryPropagationRpc.layer({ limiter: {} as never }), /limiter/)
    }).pipe(Effect.scoped))

  it.effect("whatever interrupts a procedure, it holds no slot", () =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(1), maxWait: "1 second" })
      const handlers = group.toLayer({ Get: ({ id }) => Effect.as(Effect.sleep(10), id) })
      const client = yield* RpcTest.makeClient(group).pipe(
        Effect.provide([handlers, RetryPropagationRpc.layer({ limiter })])
      )
      const one = RpcClient.withHeaders(Effect.exit(client.Get({ id: "a" })), { "x-deadline-ms": "15" })
      const call = Effect.all([one, one], { concurrency: 2 })
      const steps = yield* sweep(call, () =>
        Effect.gen(function*() {
          yield* TestClock.adjust("1 minute")
          const { inFlight, waiting } = yield* limiter.state
          assert.deepStrictEqual([inFlight, waiting], [0, 0])
        }))
      assert.isAtLeast(steps, 20)
    }).pipe(Effect.scoped))
})
