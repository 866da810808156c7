import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { type InvalidOption, RetryObserver, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { budget, firstOf } from "../utils/budget.ts"
import { Unsure } from "../utils/call.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const attempts = (maxAttempts: number, delay: string = "1 second") => ({
  steps: [{ fixed: { delay } }, { maxAttempts }, "whileRetryable", { quotaGated: { cost: 1 } }]
})

const orders = (entry: object, others: object = {}) => ({ ...others, resources: { orders: entry } })

/** A call that fails, and counts its sends. */
const failing = () => {
  const call = { sends: 0, effect: Effect.void as Effect.Effect<void, Kit.Transient> }
  call.effect = Effect.suspend(() => {
    call.sends++
    return Effect.fail(new Kit.Transient())
  })
  return call
}

/** What is logged, as text. */
const logged = () => {
  const lines: Array<string> = []
  const layer = Logger.layer([Logger.make(({ logLevel, message }) => {
    lines.push(`${logLevel}: ${Array.isArray(message) ? message.join(" ") : String(message)}`)
  })])
  return { lines, layer }
}

/** The ways to call by what is configured. */
const ways: Readonly<
  Record<string, (self: Effect.Effect<void, Kit.Transient>) => Effect.Effect<void, unknown, RetryConfig.RetryConfig>>
> = {
  "RetryConfig.retry": RetryConfig.retry("orders"),
  "Effect.retry(attempt, live)": (self) =>
    Effect.provide(Effect.retry(self, RetryConfig.live("orders")), RetryConfig.resource("orders")),
  "withRetry(live)": (self) =>
    Effect.provide(withRetry(self, RetryConfig.live("orders")), RetryConfig.resource("orders"))
}

const inFlight = budget(1000, 100)

for (const [name, way] of Object.entries(ways)) {
  describe(`a call by ${name}`, () => {
    it.effect(`follows the policy that was in force when it began, to its end, with ${inFlight} in flight`, () =>
      Effect.gen(function*() {
        const limits: Array<ReadonlyArray<number>> = []
        const one = (began: number) => {
          const call = failing()
          const seen: Array<number> = []
          limits.push(seen)
          return Effect.exit(way(call.effect)).pipe(
            Effect.provide(RetryObserver.layer({ onRetry: ({ maxAttempts }) => void seen.push(maxAttempts) })),
            Effect.andThen(Effect.sync(() => {
              // No call has seen two: all its retries were of one policy, that of its beginning.
              assert.deepStrictEqual([...new Set(seen)], [began])
              assert.strictEqual(call.sends, began)
            }))
          )
        }
        const many = (began: number) =>
          Effect.forEach(Array.from({ length: inFlight / 4 }), () => Effect.forkChild(one(began)))
        const fibers: Array<Fiber.Fiber<void>> = []
        for (const maxAttempts of [4, 2, 7, 3]) {
          yield* RetryConfig.set(orders({ policy: attempts(maxAttempts), quota: { capacity: 10_000 } }))
          fibers.push(...(yield* many(maxAttempts)))
          yield* TestClock.adjust("400 millis")
        }
        assert.isAtLeast(fibers.filter((fiber) => fiber.pollUnsafe() === undefined).length, inFlight * 0.75)
        yield* TestClock.adjust("1 minute")
        yield* Fiber.joinAll(fibers)
        assert.strictEqual(limits.length, inFlight)
      }).pipe(Effect.provide(RetryConfig.layer({}))))

    it.effect("pays from the quota of the resource, which keeps its share when it is resized", () =>
      Effect.gen(function*() {
        const balance = RetryQuota.balance.pipe(Effect.provide(RetryConfig.resource("orders")))
        const call = failing()
        const fiber = yield* Effect.forkChild(Effect.exit(way(call.effect)))
        yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(fiber)
        assert.strictEqual(yield* balance, 75)
        yield* RetryConfig.set(orders({ policy: attempts(26), quota: { capacity: 1000 } }))
        assert.strictEqual(yield* balance, 750)
        yield* RetryConfig.set(orders({ policy: attempts(26), quota: { capacity: 40 } }))
        assert.strictEqual(yield* balance, 30)
        yield* RetryConfig.set(orders({ policy: attempts(2), quota: { capacity: 40 } }))
        assert.strictEqual(yield* balance, 30)
      }).pipe(
        Effect.provide(
          RetryConfig.layer(orders({ policy: attempts(26, "100 millis"), quota: { capacity: 100 } })).pipe(
            Layer.provide(RetryConfig.atMost({ attempts: 26 }))
          )
        )
      ))

    for (const [where, off] of [["the resource", orders({ retries: "off" })], ["all", { retries: "off" }]] as const) {
      it.effect(`is sent once while retries are off for ${where}; one in progress stops at its next failure`, () =>
        Effect.gen(function*() {
          const before = failing()
          const fiber = yield* Effect.forkChild(Effect.exit(way(before.effect)))
          yield* TestClock.adjust("2500 millis")
          assert.strictEqual(before.sends, 3)
          yield* RetryConfig.set(off)
          const after = failing()
          yield* Effect.exit(way(after.effect))
          assert.strictEqual(after.sends, 1)
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(fiber)
          assert.strictEqual(before.sends, 4)
          yield* RetryConfig.set(orders({ policy: attempts(3) }))
          const again = failing()
          const last = yield* Effect.forkChild(Effect.exit(way(again.effect)))
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(last)
          assert.strictEqual(again.sends, 3)
        }).pipe(Effect.provide(RetryConfig.layer(orders({ policy: attempts(10) })))))
    }
  })
}

describe("a document is below the ceiling that code sets", () => {
  /** A policy without an end, and the sends of a call under it. */
  const endless = { steps: [{ fixed: { delay: "1 millis" } }, "whileMaybeRetryable"] }
  const sendsUnder = (
    ceiling: RetryConfig.AtMost | undefined,
    error: Effect.Effect<never, unknown> = Effect.fail(new Kit.Transient())
  ) =>
    Effect.gen(function*() {
      const times: Array<number> = []
      const begun = yield* Clock.currentTimeMillis
      const call = Effect.andThen(
        Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => void times.push(now - begun))),
        error
      )
      const layer = RetryConfig.layer({ default: { policy: endless, quota: { capacity: 1e6 } } })
      const under = ceiling === undefined ? layer : Layer.provide(layer, RetryConfig.atMost(ceiling))
      const fiber = yield* Effect.forkChild(Effect.exit(Effect.provide(RetryConfig.retry("a")(call), under)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      return times
    })

  it.effect("a policy without an end sends ten times, or as often as the ceiling says", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* sendsUnder(undefined)).length, 10)
      assert.deepStrictEqual(yield* sendsUnder({ attempts: 3 }), [0, 1, 2])
    }))

  it.effect("delays are as long as the sends per second need", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* sendsUnder({ attempts: 4, sendsPerSecond: 8 }), [0, 125, 250, 375])
    }))

  /** When the sends of a hedged call leave that fail after so long. */
  const hedgedUnder = (ceiling: RetryConfig.AtMost, entry: object, millis: number) =>
    Effect.gen(function*() {
      const times: Array<number> = []
      const send = Clock.currentTimeMillis.pipe(
        Effect.tap((now) => Effect.sync(() => times.push(now))),
        Effect.andThen(Effect.sleep(millis)),
        Effect.andThen(Effect.fail(new Kit.Transient()))
      )
      yield* Kit.runToEnd(Effect.exit(send.pipe(RetryConfig.hedged("orders"), RetryConfig.retry("orders"))))
      return times
    }).pipe(Effect.provide(Layer.provide(RetryConfig.layer(orders(entry)), RetryConfig.atMost(ceiling))))

  for (
    const [millis, times] of [[0, [0, 200, 400, 600]], [300, [0, 200, 700, 900]]] as Array<[number, Array<number>]>
  ) {
    it.effect(`hedges count as sends, and leave no faster: all fail after ${millis} ms`, () =>
      Effect.gen(function*() {
        const entry = { policy: endless, hedge: { after: 0, share: 1 } }
        assert.deepStrictEqual(yield* hedgedUnder({ attempts: 4, sendsPerSecond: 5 }, entry, millis), times)
        assert.lengthOf(yield* hedgedUnder({ attempts: 5 }, entry, millis), 4)
      }))
  }

  for (
    const [attempts, maxAttempts, atMost, most] of [
      [10, 5, 1, undefined],
      [10, 5, 2, 1],
      [10, 10, 1, 0],
      [4, "Infinity", 3, undefined],
      [4, "Infinity", 4, 3]
    ] as const
  ) {
    it.effect(`${maxAttempts} attempts with ${atMost} hedges each are within ${attempts} sends, or refused`, () =>
      Effect.gen(function*() {
        const document = orders({ policy: { maxAttempts }, hedge: { atMost } })
        const exit = yield* Effect.result(RetryConfig.set(document))
        if (most === undefined) return assert.isTrue(Result.isSuccess(exit))
        assert.isTrue(Result.isFailure(exit))
        const { failure } = exit as Result.Failure<void, InvalidOption>
        assert.strictEqual(failure.field, "resources.orders.hedge.atMost")
        assert.include(failure.message, `at most ${most}, so that a call has at most ${attempts} sends`)
      }).pipe(Effect.provide(Layer.provide(RetryConfig.layer({}), RetryConfig.atMost({ attempts })))))
  }

  it.effect("a ceiling below the defaults of the library cuts them, for they are no request", () =>
    Effect.gen(function*() {
      const sendsOf = (document: object) =>
        Effect.gen(function*() {
          let sends = 0
          const call = Effect.suspend(() => {
            sends++
            return Effect.fail(new Kit.Transient())
          })
          const layer = Layer.provide(RetryConfig.layer(document), RetryConfig.atMost({ attempts: 2 }))
          yield* Kit.runToEnd(Effect.exit(call.pipe(RetryConfig.retry("orders"), Effect.provide(layer))))
          return sends
        })
      assert.strictEqual(yield* sendsOf({ resources: {} }), 2)
      assert.strictEqual(yield* sendsOf(orders({ hedge: { after: "1 second" } })), 1)
    }))

  it.effect("what may not be safe is sent once, if the ceiling says so", () =>
    Effect.gen(function*() {
      const broken = Effect.fail(new Unsure())
      assert.strictEqual((yield* sendsUnder({ unsafe: true }, broken)).length, 10)
      assert.strictEqual((yield* sendsUnder({ unsafe: false }, broken)).length, 1)
      assert.strictEqual((yield* sendsUnder({ unsafe: false })).length, 10)
    }))

  it.effect("one that asks for more by number is refused with its path, and changes nothing", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(RetryConfig.set(orders({ policy: { maxAttempts: 11 } })))
      assert.strictEqual(error.field, "resources.orders.policy")
      assert.include(error.message, "at most 10 attempts, which RetryConfig.atMost changes, got 11")
      assert.strictEqual((yield* RetryConfig.status).version, 1)
    }).pipe(Effect.provide(RetryConfig.layer(orders({ policy: { maxAttempts: 10 } })))))

  it.effect("none of its values is in the log but the beginning of one that is wrong", () => {
    const { layer, lines } = logged()
    const secret = "sk-live-51H8xSECRET"
    const documents = Stream.make(
      orders({ policy: { maxAttempts: 2 } }),
      { apiKey: secret },
      orders({ policy: { maxAttempts: 2, apiKey: secret } }),
      orders({ quota: { capacity: "x".repeat(1_000_000) + secret } }),
      { ["k".repeat(1_000_000)]: 1 }
    )
    return Effect.gen(function*() {
      yield* Effect.andThen(RetryConfig.RetryConfig, Effect.sleep("1 second")).pipe(
        Effect.provide(RetryConfig.layerStream(documents)),
        Kit.runToEnd
      )
      assert.strictEqual(lines.length, 4)
      for (const line of lines) {
        assert.isBelow(line.length, 400)
        assert.notInclude(line, secret)
      }
    }).pipe(Effect.provide(layer))
  })
})

describe("a live policy", () => {
  it.effect("takes what is added to it, whatever the document says later", () =>
    Effect.gen(function*() {
      const policy = RetryConfig.live("orders").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.capped("10 millis"))
      const run = Effect.gen(function*() {
        const call = failing()
        const fiber = yield* Effect.forkChild(Effect.exit(withRetry(call.effect, policy)))
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(fiber)
        return call.sends
      }).pipe(Effect.provide(RetryConfig.resource("orders")))
      assert.strictEqual(yield* run, 3)
      yield* RetryConfig.set(orders({ policy: attempts(2) }))
      assert.strictEqual(yield* run, 2)
    }).pipe(Effect.provide(RetryConfig.layer(orders({ policy: attempts(9) })))))

  it.effect("is the policy of an HTTP client, made once", () =>
    Effect.gen(function*() {
      let sends = 0
      const unavailable = HttpClient.make((request) => {
        sends++
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status: 503 })))
      })
      const client = yield* HttpClient.HttpClient.pipe(Effect.provide(
        RetryHttp.layer(RetryConfig.live("orders")).pipe(
          Layer.provide([RetryConfig.resource("orders"), Layer.succeed(HttpClient.HttpClient, unavailable)])
        )
      ))
      const run = Effect.gen(function*() {
        sends = 0
        const fiber = yield* Effect.forkChild(client.get("http://orders/"))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* Fiber.join(fiber)).status, 503)
        return sends
      })
      assert.strictEqual(yield* run, 4)
      yield* RetryConfig.set(orders({ policy: attempts(2) }))
      assert.strictEqual(yield* run, 2)
      yield* RetryConfig.set({ retries: "off" })
      assert.strictEqual(yield* run, 1)
    }).pipe(Effect.provide(RetryConfig.layer(orders({ policy: attempts(4) })))))

  it.effect("a resource that is resized while in use holds its new limit", () =>
    Effect.gen(function*() {
      let inFlight = 0
      let most = 0
      const slow = Effect.acquireUseRelease(
        Effect.sync(() => {
          most = Math.max(most, ++inFlight)
        }),
        () => Effect.sleep("1 second"),
        () => Effect.sync(() => inFlight--)
      )
      const fibers = yield* Effect.forEach(
        Array.from({ length: 1000 }),
        () => Effect.forkChild(slow.pipe(RetryConfig.retry("orders")))
      )
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(inFlight, 50)
      const resize = (limit: number) => RetryConfig.set(orders({ concurrency: { limit, maxWait: "1 hour" } }))
      yield* resize(10)
      yield* TestClock.adjust("600 millis")
      assert.strictEqual(inFlight, 10)
      most = 0
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(most, 10)
      yield* resize(20)
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(inFlight, 20)
      yield* RetryConfig.set({})
      yield* TestClock.adjust("2 hours")
      yield* Fiber.joinAll(fibers)
      assert.strictEqual(inFlight, 0)
    }).pipe(Effect.provide(RetryConfig.layer(orders({ concurrency: { limit: 50, maxWait: "1 hour" } })))))

  it.effect("code that keeps the quota of a resource sees its new capacity, and what happens without tokens", () =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.RetryQuota.pipe(Effect.provide(RetryConfig.resource("orders")))
      yield* RetryConfig.set(orders({ quota: { capacity: 900, refillPerSecond: 1, onExceeded: "wait" } }))
      assert.deepStrictEqual([quota.capacity, quota.onExceeded], [900, "wait"])
      assert.strictEqual((yield* quota.reserve(700))._tag, "Some")
    }).pipe(Effect.provide(RetryConfig.layer(orders({ quota: { capacity: 500 } })))))

  it.effect("a gate that is named later holds calls back, one that is no longer named does not", () =>
    Effect.gen(function*() {
      const gates = Effect.contextWith((context: Context.Context<never>) =>
        Effect.succeed(Context.getOrUndefined(context, ConcurrencyLimiter.ConcurrencyLimiter) !== undefined)
      ).pipe(RetryConfig.retry("orders"))
      assert.isFalse(yield* gates)
      yield* RetryConfig.set(orders({ concurrency: { limit: 1, onExceeded: "fail" } }))
      assert.isTrue(yield* gates)
      const held = yield* Effect.forkChild(Effect.never.pipe(RetryConfig.retry("orders")), { startImmediately: true })
      const refused = yield* Effect.exit(Effect.void.pipe(RetryConfig.retry("orders")))
      assert.include(String(refused), "ConcurrencyLimitExceeded")
      yield* RetryConfig.set({})
      yield* Effect.void.pipe(RetryConfig.retry("orders"))
      yield* Fiber.interrupt(held)
    }).pipe(Effect.provide(RetryConfig.layer({}))))

  it.effect("a call that waits for tokens goes without once the quota makes none wait", () =>
    Effect.gen(function*() {
      const call = failing()
      const fiber = yield* Effect.forkChild(Effect.exit(call.effect.pipe(RetryConfig.retry("orders"))))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(call.sends, 2)
      assert.isUndefined(fiber.pollUnsafe())
      yield* RetryConfig.set(orders({ policy: attempts(9), quota: { capacity: 1 } }))
      yield* TestClock.adjust("1 millis")
      assert.isDefined(fiber.pollUnsafe())
      assert.strictEqual(call.sends, 2)
    }).pipe(Effect.provide(RetryConfig.layer(orders({
      policy: attempts(9),
      quota: { capacity: 1, refillPerSecond: 0.000_001, onExceeded: "wait" }
    })))))
})

describe("interruption", () => {
  const document = orders({ policy: attempts(4), quota: { capacity: 10 }, concurrency: { limit: 2 }, coolDown: {} })

  for (const [name, way] of firstOf(Object.entries(ways), 2)) {
    it.effect(`whatever interrupts a call by ${name}, while documents change, it leaves no slot taken`, () =>
      Effect.gen(function*() {
        const context = yield* Layer.build(RetryConfig.layer(document))
        const send = () => {
          let sends = 0
          return Effect.suspend(() => {
            const isLast = ++sends === 3
            return Effect.andThen(Effect.sleep(5), isLast ? Effect.void : Effect.fail(new Kit.Transient()))
          })
        }
        const change = (capacity: number) =>
          Effect.andThen(
            Effect.sleep(500),
            RetryConfig.set(orders({ ...document.resources.orders, quota: { capacity } }))
          )
        const both = Effect.suspend(() =>
          Effect.all([Effect.exit(way(send())), change(20), Effect.exit(way(send())), Effect.exit(way(send()))], {
            concurrency: 4
          })
        )
          .pipe(Effect.provideContext(context))
        const steps = yield* sweep(both, () =>
          Effect.gen(function*() {
            const { inFlight, waiting } = yield* ConcurrencyLimiter.state.pipe(
              Effect.provide(RetryConfig.resource("orders") as Layer.Layer<any, never, RetryConfig.RetryConfig>)
            )
            const users = yield* RetryConfig.RetryConfig.useSync(({ lives }) => lives.peek("orders").users)
            assert.deepStrictEqual([inFlight, waiting, users], [0, 0, 0])
            yield* RetryConfig.set(document)
          }).pipe(Effect.provideContext(context), Effect.orDie))
        assert.isAtLeast(steps, 30)
      }).pipe(thinned(7), Effect.scoped))
  }

  it.effect("however the layer of a stream is interrupted, nothing of it keeps running", () =>
    Effect.gen(function*() {
      let open = 0
      const documents = Stream.unwrap(Effect.as(
        Effect.acquireRelease(Effect.sync(() => open++), () => Effect.sync(() => open--)),
        Stream.concat(Stream.fromEffect(Effect.as(Effect.sleep(10), {})), Stream.never)
      ))
      const steps = yield* sweep(
        Effect.provide(Effect.andThen(RetryConfig.status, Effect.sleep(5)), RetryConfig.layerStream(documents)),
        () => Effect.sync(() => assert.strictEqual(open, 0))
      )
      assert.isAtLeast(steps, 20)
    }))
})

describe("a quota that nothing pays from", () => {
  const unpaid = (path: string) =>
    `Warn: effect-retry: nothing in the policy pays from ${path}: add quotaGated to its steps`

  const free = { steps: [{ fixed: { delay: "1 second" } }, { maxAttempts: 2 }] }

  const quota = { capacity: 10 }

  it.effect("is reported once when the document is loaded, with its path", () => {
    const { layer, lines } = logged()
    const document = orders({ policy: free, quota }, { default: { policy: free, quota } })
    return Effect.gen(function*() {
      assert.deepStrictEqual(lines, [unpaid("default.quota"), unpaid("resources.orders.quota")])
      yield* RetryConfig.set(document)
      yield* RetryConfig.set({ resources: { "mail-1": { policy: free, quota } } })
      assert.deepStrictEqual(lines.slice(2), [unpaid(`resources["mail-1"].quota`)])
    }).pipe(Effect.provide(Layer.provideMerge(RetryConfig.layer(document), layer)))
  })

  it.effect("is not if the policy pays, if first attempts do, if nothing is written, or when a document is checked", () => {
    const { layer, lines } = logged()
    const entries = [
      { policy: free },
      { quota },
      { policy: attempts(2), quota },
      { policy: { steps: ["immediate", { whenThrottled: attempts(2) }] }, quota },
      { policy: { steps: ["immediate", { withQuota: {} }] }, quota },
      { policy: { maxAttempts: 2 }, quota },
      { policy: "awsStandard", quota },
      { policy: free, quota: { ...quota, firstAttemptCost: 1 } }
    ]
    return Effect.gen(function*() {
      for (const entry of entries) yield* RetryConfig.set(orders(entry, { default: entry }))
      yield* RetryConfig.check(orders({ policy: free, quota }))
      assert.deepStrictEqual(lines, [])
    }).pipe(Effect.provide(Layer.provideMerge(RetryConfig.layer({}), layer)))
  })
})

describe("a stream of documents", () => {
  const maxAttempts = RetryConfig.RetryConfig.useSync(({ lives }) => lives.peek("orders").version.compiled.maxAttempts)

  it.effect("a bad one changes nothing, and is reported once, with its path", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      const queue = yield* Queue.unbounded<unknown>()
      const bad = orders({ policy: attempts(0) })
      yield* Queue.offer(queue, orders({ policy: attempts(4) }))
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* maxAttempts, 4)
        for (const _ of [1, 2, 3]) yield* Queue.offer(queue, structuredClone(bad))
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(yield* maxAttempts, 4)
        const { problem, version } = yield* RetryConfig.status
        assert.deepStrictEqual([problem?.field, version], ["resources.orders.policy.steps[1].maxAttempts", 1])
        assert.deepStrictEqual(lines, [
          "Warn: the previous document stays in effect: RetryConfig.set: resources.orders.policy.steps[1].maxAttempts " +
          "must be a whole number of at least 1, or Infinity, got 0"
        ])
        yield* Queue.offer(queue, orders({ policy: attempts(5) }))
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(yield* maxAttempts, 5)
        assert.deepStrictEqual(yield* RetryConfig.status, { version: 2, problem: undefined, source: "followed" })
        assert.strictEqual((yield* Metric.value(RetryConfig.followed)).value, 1)
        assert.deepStrictEqual(lines.slice(1), ["Info: RetryConfig: a new document is in effect"])
      }).pipe(Effect.provide(RetryConfig.layerStream(Stream.fromQueue(queue))))
    }).pipe(Effect.provide(layer))
  })

  it.effect("when it fails, the last document stays in force, and a line says so", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* maxAttempts, 4)
      assert.match(lines.join("\n"), /Warn: RetryConfig: documents are no longer followed/)
      assert.deepStrictEqual(yield* RetryConfig.status, { version: 1, problem: undefined, source: "stopped" })
      assert.strictEqual((yield* Metric.value(RetryConfig.followed)).value, 0)
    }).pipe(Effect.provide(
      RetryConfig.layerStream(Stream.concat(Stream.make(orders({ policy: attempts(4) })), Stream.fail("gone"))).pipe(
        Layer.provideMerge(layer)
      )
    ))
  })

  it.effect("without a first document there is no layer", () =>
    Effect.gen(function*() {
      const build = (stream: Stream.Stream<unknown, string>) =>
        Effect.map(
          Effect.flip(Effect.provide(RetryConfig.status, RetryConfig.layerStream(stream))),
          (error) => typeof error === "string" ? error : error.field
        )
      assert.strictEqual(yield* build(Stream.fail("down")), "down")
      assert.strictEqual(yield* build(Stream.empty), "documents")
      assert.strictEqual(yield* build(Stream.make({ retries: 1 })), "retries")
    }))

  it.effect("an unknown name is reported, once", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      for (const _ of [1, 2]) yield* Effect.void.pipe(RetryConfig.retry("ordres"))
      yield* Effect.void.pipe(RetryConfig.retry("orders"))
      assert.deepStrictEqual(lines, [
        "Warn: RetryConfig: the document has neither \"ordres\" nor \"default\": the defaults of the library apply"
      ])
    }).pipe(Effect.provide([RetryConfig.layer(orders({})), layer]))
  })
})

describe("names that no document has", () => {
  const layer = RetryConfig.layer({ default: { policy: attempts(2), quota: { capacity: 10 } } })
  const empty = Layer.effectDiscard(RetryQuota.set(0))
  const empties = (name: string) => Layer.build(Layer.provide(empty, RetryConfig.resource(name))).pipe(Effect.scoped)
  const tokens = (name: string) =>
    RetryQuota.state.pipe(Effect.map(({ tokens }) => tokens), Effect.provide(RetryConfig.resource(name)))
  const invents = (count: number) =>
    Effect.forEach(
      Array.from({ length: count }, (_, n) => `tenant-${n}`),
      (name) => Effect.void.pipe(RetryConfig.retry(name)),
      { discard: true }
    )

  it.effect("that was idle for long starts over when a document names it", () =>
    Effect.gen(function*() {
      yield* empties("orders")
      yield* TestClock.adjust("30 minutes")
      yield* RetryConfig.set({ resources: { orders: { quota: { capacity: 10 } } } })
      assert.strictEqual(yield* tokens("orders"), 10)
    }).pipe(Effect.provide(layer)))

  it.effect("share nothing with each other, however many others invent, and one that has learned stays longest", () =>
    Effect.gen(function*() {
      yield* empties("known")
      yield* invents(10_000)
      yield* empties("late")
      assert.deepStrictEqual(yield* Effect.forEach(["later", "late", "known"], tokens), [10, 0, 0])
    }).pipe(Effect.provide(layer)))

  it.effect("are forgotten after 10 minutes without a use, those of the document and those in use are not", () =>
    Effect.gen(function*() {
      for (const name of ["orders", "idle", "late", "held", "called"]) yield* empties(name)
      const held = yield* Layer.build(RetryConfig.resource("held"))
      const call = yield* Effect.forkChild(Effect.never.pipe(RetryConfig.retry("called")), { startImmediately: true })
      yield* TestClock.adjust("9 minutes")
      assert.strictEqual(yield* tokens("late"), 0)
      yield* TestClock.adjust("9 minutes")
      assert.deepStrictEqual(
        yield* Effect.forEach(["orders", "idle", "late", "held", "called"], tokens),
        [0, 10, 0, 0, 0]
      )
      // No document names any of them now.
      yield* RetryConfig.set({ default: { quota: { capacity: 40 } } })
      assert.strictEqual(Context.get(held, RetryQuota.RetryQuota).capacity, 40)
      yield* Fiber.interrupt(call)
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(yield* Effect.forEach(["orders", "held", "called"], tokens), [40, 0, 40])
    }).pipe(
      Effect.scoped,
      Effect.provide(RetryConfig.layer(
        orders({ quota: { capacity: 10 } }, { default: { quota: { capacity: 10 } } })
      ))
    ))

  it.effect("see each document while they are in use, also where more than are kept are in use", () =>
    Effect.gen(function*() {
      const first = yield* Layer.build(RetryConfig.resource("first"))
      for (let n = 0; n < 10_000; n++) yield* Layer.build(RetryConfig.resource(`tenant-${n}`))
      const again = yield* Layer.build(RetryConfig.resource("first"))
      yield* RetryConfig.set({ default: { quota: { capacity: 7 } } })
      for (const services of [first, again]) {
        assert.strictEqual(Context.get(services, RetryQuota.RetryQuota).capacity, 7)
      }
    }).pipe(Effect.scoped, Effect.provide(layer)))

  it.effect("keep what they have learned when a document names them", () =>
    Effect.gen(function*() {
      yield* empties("orders")
      yield* RetryConfig.set(orders({ quota: { capacity: 20 } }))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* tokens("orders"), 0)
    }).pipe(Effect.provide(layer)))

  it.effect("write at most a hundred lines to the log", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      yield* invents(300)
      assert.strictEqual(lines.length, 100)
    }).pipe(Effect.provide([RetryConfig.layer({}), layer]))
  })
})

describe("a file", () => {
  const maxAttempts = RetryConfig.RetryConfig.useSync(({ lives }) => lives.peek("orders").version.compiled.maxAttempts)

  const text = (n: number) => JSON.stringify(orders({ policy: attempts(n) }))

  /** A turn of the real event loop, in which files are read, then a millisecond of the test's clock: again until it is so. */
  const eventually = <R>(isSo: Effect.Effect<boolean, never, R>) =>
    Effect.gen(function*() {
      while (!(yield* isSo)) {
        yield* turn
        yield* TestClock.adjust(1)
      }
    })

  const turn = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 2)))

  const isInForce = (n: number) => eventually(Effect.map(maxAttempts, (now) => now === n))

  const inFolder = <A, E>(
    use: (file: string, folder: string) => Effect.Effect<A, E, RetryConfig.RetryConfig>,
    every = "1 hour",
    prepare = (file: string, _folder: string) => fs.writeFileSync(file, text(2))
  ) =>
    Effect.acquireUseRelease(
      Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "retry-config-"))),
      (folder) =>
        Effect.suspend(() => {
          const file = path.join(folder, "retry.json")
          prepare(file, folder)
          return use(file, folder).pipe(
            Effect.provide(RetryConfig.layerFile(file, { every: every as "1 hour" })),
            Effect.provide([NodeFileSystem.layer, NodePath.layer])
          )
        }),
      (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
    )

  const writes: Readonly<Record<string, (file: string, text: string) => void>> = {
    "written over": (file, text) => fs.writeFileSync(file, text),
    "replaced by another, as editors do": (file, text) => {
      fs.writeFileSync(`${file}.tmp`, text)
      fs.renameSync(`${file}.tmp`, file)
    },
    "moved away and recreated, as editors with backups do": (file, text) => {
      fs.renameSync(file, `${file}~`)
      fs.writeFileSync(file, text)
    },
    "deleted and recreated": (file, text) => {
      fs.rmSync(file)
      fs.writeFileSync(file, text)
    }
  }

  for (const [how, write] of Object.entries(writes)) {
    it.effect(`that is ${how} takes effect long before the next look, again and again`, () =>
      inFolder((file) =>
        Effect.gen(function*() {
          for (const n of [3, 4, 5, 6, 7]) {
            write(file, text(n))
            yield* isInForce(n)
          }
        })
      ))
  }

  it.effect(`takes effect with ${inFlight} calls in flight, none of which sees two`, () => {
    let broken = 0
    const one = Effect.suspend(() => {
      const seen = new Set<number>()
      return Effect.exit(failing().effect.pipe(RetryConfig.retry("orders"))).pipe(
        Effect.provide(RetryObserver.layer({ onRetry: ({ maxAttempts }) => void seen.add(maxAttempts) })),
        Effect.andThen(Effect.sync(() => {
          broken += seen.size > 1 ? 1 : 0
        }))
      )
    })
    const document = (n: number) =>
      JSON.stringify(orders({ policy: attempts(n, "500 millis"), quota: { capacity: 1_000_000 } }))
    return inFolder(
      (file) =>
        Effect.gen(function*() {
          const load = yield* Effect.forkChild(
            Effect.forEach(Array.from({ length: inFlight }), () => Effect.forever(one), {
              concurrency: "unbounded",
              discard: true
            })
          )
          for (const n of [3, 4, 5, 6, 7]) {
            yield* TestClock.adjust("1 second")
            writes["replaced by another, as editors do"]!(file, document(n))
            yield* isInForce(n)
          }
          yield* Fiber.interrupt(load)
          assert.strictEqual(broken, 0)
        }),
      "1 hour",
      (file) => fs.writeFileSync(file, document(2))
    )
  })

  it.effect("that is in a mounted folder, which is swapped by a link, takes effect with the next look", () =>
    inFolder(
      (_, folder) =>
        Effect.gen(function*() {
          fs.mkdirSync(path.join(folder, "v2"))
          fs.writeFileSync(path.join(folder, "v2", "retry.json"), text(9))
          fs.symlinkSync("v2", path.join(folder, "data.new"))
          fs.renameSync(path.join(folder, "data.new"), path.join(folder, "data"))
          yield* isInForce(9)
        }),
      "1 hour",
      (file, folder) => {
        fs.mkdirSync(path.join(folder, "v1"))
        fs.writeFileSync(path.join(folder, "v1", "retry.json"), text(2))
        fs.symlinkSync("v1", path.join(folder, "data"))
        fs.symlinkSync("data/retry.json", file)
      }
    ))

  it.effect("that no watcher reports is read from time to time", () =>
    inFolder(
      (file, folder) =>
        Effect.gen(function*() {
          fs.writeFileSync(path.join(folder, "elsewhere", "retry.json"), text(8))
          assert.isTrue(fs.lstatSync(file).isSymbolicLink())
          yield* isInForce(8)
        }),
      "100 millis",
      (file, folder) => {
        fs.mkdirSync(path.join(folder, "elsewhere"))
        fs.writeFileSync(path.join(folder, "elsewhere", "retry.json"), text(2))
        fs.symlinkSync("elsewhere/retry.json", file)
      }
    ))

  it.effect("that is no file, or too large, is not read, changes nothing, and may come back", () => {
    const { layer, lines } = logged()
    return inFolder((file) =>
      Effect.gen(function*() {
        const warnings = () => lines.filter((line) => line.startsWith("Warn"))
        fs.rmSync(file)
        execFileSync("mkfifo", [file])
        yield* eventually(Effect.sync(() => warnings().some((line) => line.includes("\"no file but a FIFO\""))))
        fs.rmSync(file)
        fs.symlinkSync(file, file)
        yield* eventually(Effect.sync(() =>
          warnings().some((line) => line.includes(`in the file ${file}, got "nothing: it cannot be read (`))
        ))
        fs.rmSync(file)
        fs.writeFileSync(file, " ".repeat(1_048_577))
        yield* eventually(
          Effect.sync(() =>
            warnings().some((line) => line.includes("\"1048577 bytes, more than 1048576\""))
          )
        )
        fs.writeFileSync(file, text(4))
        yield* isInForce(4)
      })
    ).pipe(Effect.provide(layer))
  })

  it.effect("that is half written, bad, or gone changes nothing, is reported once, and may come back", () => {
    const { layer, lines } = logged()
    return inFolder((file) =>
      Effect.gen(function*() {
        fs.writeFileSync(file, text(3).slice(0, 30))
        for (let turns = 0; turns < 8; turns++) yield* turn
        fs.writeFileSync(file, text(3))
        yield* isInForce(3)
        const warnings = () => lines.filter((line) => line.startsWith("Warn"))
        assert.deepStrictEqual(warnings(), [])
        fs.writeFileSync(file, "{ \"password\": ")
        yield* eventually(Effect.sync(() => warnings().length === 1))
        fs.rmSync(file)
        yield* eventually(Effect.sync(() => warnings().length === 2))
        assert.strictEqual(yield* maxAttempts, 3)
        assert.deepStrictEqual(
          warnings(),
          [
            "JSON, got \"14 characters that are not JSON\"",
            `JSON in the file ${file}, got "nothing: it was not found"`
          ].map((what) => `Warn: the previous document stays in effect: RetryConfig.set: document must be ${what}`)
        )
        fs.writeFileSync(file, text(4))
        yield* isInForce(4)
        assert.isUndefined((yield* RetryConfig.status).problem)
      })
    ).pipe(Effect.provide(layer))
  })

  it.live("that is not there, or bad, at the beginning is an error of the layer", () =>
    Effect.gen(function*() {
      const gone = yield* Effect.flip(inFolder(() => Effect.void, "1 hour", () => undefined))
      assert.strictEqual(gone._tag, "PlatformError")
      const bad = yield* Effect.flip(
        inFolder(() => Effect.void, "1 hour", (file) => fs.writeFileSync(file, "{\"retries\":3}"))
      )
      assert.strictEqual(bad._tag, "InvalidOption")
      assert.include(bad.message, "RetryConfig.layerFile: retries must be")
    }))
})
