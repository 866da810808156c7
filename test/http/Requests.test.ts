import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Logger from "effect/Logger"
import * as Stream from "effect/Stream"
import { type Answer, clientOf } from "../reliability/utils/http.ts"

const policy = Backoff.fixed("100 millis").pipe(RetryPolicy.maxAttempts(3))

const post = HttpClientRequest.post("http://a/")
const withKey = HttpClientRequest.setHeader(post, "idempotency-key", "k")

/** How often a request is sent to a service that always gives this answer. */
const sendsOf = (request: HttpClientRequest.HttpClientRequest, answer: Answer) =>
  Effect.gen(function*() {
    const { client, times } = clientOf([answer])
    yield* Effect.exit(Kit.runToEnd(RetryHttp.retry(client, policy).execute(request)))
    return times.length
  })

const coded = (code: string) => ({ error: Object.assign(new Error(code), { code }) })

const bytes = new TextEncoder().encode("abc")

describe("requests", () => {
  const rows: ReadonlyArray<readonly [what: string, answer: Answer, plain: number, keyed: number]> = [
    ["a lost connection", coded("ECONNRESET"), 1, 3],
    ["500", { status: 500 }, 1, 3],
    ["502", { status: 502 }, 1, 3],
    ["503 that does not say when to come back", { status: 503 }, 1, 3],
    ["a refused connection, never sent", coded("ECONNREFUSED"), 3, 3],
    ["an unknown host, never sent", coded("ENOTFOUND"), 3, 3],
    ["429, never carried out", { status: 429 }, 3, 3]
  ]
  for (const [what, answer, plain, keyed] of rows) {
    it.effect(`after ${what} a POST is sent ${plain} times, with an Idempotency-Key ${keyed} times`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* sendsOf(post, answer), plain)
        assert.strictEqual(yield* sendsOf(withKey, answer), keyed)
        assert.strictEqual(yield* RetryHttp.repeatable(sendsOf(post, answer)), keyed)
      }))
  }

  it.effect("a body that can be read once is sent once, which a warning says", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => {
        lines.push(String(Array.isArray(message) ? message[0] : message))
      })
      const put = HttpClientRequest.put("http://a/")
      const stream = HttpClientRequest.setBody(put, HttpBody.stream(Stream.make(bytes)))
      const sends = Effect.provide(sendsOf(stream, { status: 503 }), Logger.layer([logger]))
      assert.strictEqual(yield* sends, 1)
      assert.deepStrictEqual(lines, [
        "The request is not sent again: its body is a stream that may already be consumed."
      ])
    }))

  it.effect("a body from a factory is made again for every attempt", () =>
    Effect.gen(function*() {
      let made = 0
      const body = RetryHttp.bodyFactory(() => {
        made++
        return Stream.make(bytes)
      })
      const request = HttpClientRequest.setBody(HttpClientRequest.put("http://a/"), body)
      assert.strictEqual(yield* sendsOf(request, { status: 503 }), 3)
      for (let n = 1; n <= 3; n++) {
        yield* Effect.orDie(Stream.runDrain(body.stream))
        assert.strictEqual(made, n)
      }
    }))

  it.effect("an answer that breaks off after its first byte is not fetched again", () =>
    Effect.gen(function*() {
      let pulls = 0
      const breaking = () =>
        new ReadableStream({
          pull: (controller) => {
            if (pulls++ === 0) controller.enqueue(bytes)
            else controller.error(Object.assign(new Error("reset"), { code: "ECONNRESET" }))
          }
        })
      const { client, times } = clientOf([{ status: 200, body: breaking() }])
      const exit = yield* Effect.exit(
        RetryHttp.retry(client, policy).get("http://a/").pipe(Effect.flatMap((response) => response.text))
      )
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(times.length, 1)
    }))

  it.effect("nor inside the attempt, where a transform below has begun to read it", () =>
    Effect.gen(function*() {
      const { client, times } = clientOf([{
        status: 200,
        body: new ReadableStream({
          pull: (controller) => controller.error(Object.assign(new Error("reset"), { code: "ECONNRESET" }))
        })
      }])
      const reading = HttpClient.transformResponse(client, Effect.tap((response) => response.text))
      const exit = yield* Effect.exit(RetryHttp.retry(reading, policy).get("http://a/"))
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(times.length, 1)
    }))

  it.effect("each attempt has its timeout, the call its deadline, and no backoff is slept that would pass it", () =>
    Effect.gen(function*() {
      const { client, times } = clientOf(["never"])
      const patient = Backoff.fixed("2 seconds").pipe(RetryPolicy.deadline("8 seconds"))
      const call = RetryHttp.retry(client, patient, { attemptTimeout: "1 second" }).get("http://a/")
      const exit = yield* Effect.exit(Kit.runToEnd(
        Effect.andThen(Effect.exit(call), Effect.clockWith((clock) => Effect.succeed(clock.currentTimeMillisUnsafe())))
      ))
      assert.deepStrictEqual(times, [0, 3000, 6000])
      // The attempt at 6 s fails at 7 s; the next would begin at 9 s, so the call ends immediately.
      assert.deepStrictEqual(exit, Exit.succeed(7000))
    }))
})
