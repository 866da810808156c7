import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as Kit from "effect-retry/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../examples/deadline-across.ts"

describe("deadline-across", () => {
  it.effect("a page sends its limit of two seconds; a prefetch says that no user waits for it", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const hanging = HttpClient.make((request) => {
        told.push(`${request.headers["x-deadline-ms"]} ${request.headers["x-criticality"]}`)
        return Effect.never
      })
      for (const call of [Example.page, Example.prefetch]) {
        const fiber = yield* Effect.forkChild(Effect.exit(call.pipe(
          Effect.provideService(HttpClient.HttpClient, hanging)
        )))
        yield* TestClock.adjust("2 seconds")
        assert.isTrue((yield* Fiber.join(fiber))._tag === "Failure")
      }
      assert.deepStrictEqual(told, ["2000 normal", "2000 sheddable"])
    }).pipe(Effect.provide([RetryQuota.layer(), Example.CallerLive])))

  it("the server passes on the time that is left, and leaves retrying to its caller", async () => {
    const told: Array<string> = []
    const down = HttpClient.make((request) => {
      told.push(`${request.headers["x-retry-attempt"]} of ${request.headers["x-retry-max-attempts"]}`)
      return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status: 503 })))
    })
    const route = HttpRouter.add(
      "GET",
      "/latest",
      Effect.map(Example.fromStock, ({ status }) => HttpServerResponse.empty({ status }))
    )
    const { dispose, handler } = HttpRouter.toWebHandler(
      Layer.mergeAll(route, Example.ServerLive),
      { disableLogger: true }
    )
    const services = Context.make(HttpClient.HttpClient, down).pipe(
      Context.add(RetryQuota.RetryQuota, Effect.runSync(RetryQuota.make()))
    )
    const ask = async (headers: Record<string, string>) =>
      (await handler(new Request("http://here/latest", { headers }), services)).status
    assert.strictEqual(await ask({ "x-retry-attempt": "2", "x-retry-max-attempts": "3", "x-deadline-ms": "9000" }), 503)
    assert.deepStrictEqual(told, ["2 of 3"])
    assert.strictEqual(await ask({ "x-deadline-ms": "0" }), 504)
    assert.strictEqual(told.length, 1)
    await dispose()
  })

  it.effect("a custom client gets the headers of each send", () =>
    Effect.gen(function*() {
      const told: Array<unknown> = []
      const fiber = yield* Effect.forkChild(Effect.exit(Example.ownClient((headers) => {
        told.push(headers["x-retry-attempt"])
        return Effect.fail(new Kit.Transient())
      })))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(told, ["1", "2", "3"])
    }).pipe(Effect.provide([RetryQuota.layer(), RetryPropagation.layer()])))
})
