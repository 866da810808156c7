/** `fetch` that retries: by a scripted `fetch` in virtual time, and against a server of Node. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Backoff, InvalidOption, RetryObserver, RetryPolicy, RetryQuota } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import type * as Fetch from "effect-retry/fetch"
import { retryFetch } from "effect-retry/fetch"
import * as ResourceLimiters from "effect-retry/ResourceLimiters"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { once } from "node:events"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Readable } from "node:stream"
import { OpenAI } from "openai"
import * as Example from "../../examples/fetch.ts"
import { answering, withServer } from "../../examples/support/server.ts"
import { flush } from "../utils/awsSdk.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const url = "http://a/orders"

/** What was sent, as the `fetch` below saw it. */
interface Sent {
  readonly input: Parameters<Fetch.Fetch>[0]
  readonly init: RequestInit | undefined
  readonly atMillis: number
  readonly body: string
}

type Answer = number | Response | Error | "silence"

const headed = (status: number, headers: Record<string, string>) =>
  new Response(`body of ${status}`, { status, headers })

const refused = () => new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) })
const reset = () => new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNRESET" }) })

/** A `fetch` that answers as the script says; its last answer repeats. */
const scripted = (clock: () => number, ...answers: ReadonlyArray<Answer | (() => Answer)>) => {
  const sent: Array<Sent> = []
  const responses: Array<Response> = []
  const fetch: Fetch.Fetch = async (input, init) => {
    const answer = answers[Math.min(sent.length, answers.length - 1)]!
    const index = sent.push({ input, init: init as RequestInit, atMillis: clock(), body: "" }) - 1
    // What `fetch` does with a request: the body is used up.
    const body = await new Request(input, init).text()
    sent[index] = { ...sent[index]!, body }
    const answered = typeof answer === "function" ? answer() : answer
    if (answered === "silence") {
      return new Promise((_, reject) => init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason)))
    }
    if (answered instanceof Error) throw answered
    const response = typeof answered === "number" ? headed(answered, {}) : answered.clone()
    responses.push(response)
    return response
  }
  return { fetch, sent, responses }
}

/** Runs in virtual time, with a `fetch` that answers as the script says. */
const run = <A>(
  answers: ReadonlyArray<Answer | (() => Answer)>,
  f: (fetch: Fetch.Fetch, world: ReturnType<typeof scripted>) => Promise<A>,
  options: Fetch.Options | ((context: Context.Context<never>) => Fetch.Options) = {}
) =>
  Kit.runToEnd(Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    const clock = Context.get(context, Clock.Clock)
    const startMillis = clock.currentTimeMillisUnsafe()
    const world = scripted(() => clock.currentTimeMillisUnsafe() - startMillis, ...answers)
    const own = typeof options === "function" ? options(context) : options
    const fetch = retryFetch({ context, fetch: world.fetch, retries: 2, attemptTimeout: "2 seconds", ...own })
    const [result] = yield* Effect.promise(() => Promise.allSettled([f(fetch, world)]))
    return { ...world, result }
  })).pipe(Effect.provide(Kit.fixedRandom(0.5)))

const valueOf = <A>(result: PromiseSettledResult<A>): A => {
  if (result.status === "rejected") throw result.reason
  return result.value
}

const reasonOf = (result: PromiseSettledResult<unknown>): any =>
  result.status === "rejected" ? result.reason : assert.fail("did not reject")

const key = { "idempotency-key": "1" }

/** What is sent, what it is answered, and how often. */
const table: ReadonlyArray<
  readonly [what: string, init: RequestInit | undefined, answer: Answer | (() => Answer), sends: number]
> = [
  ["a GET, 200", undefined, 200, 1],
  ["a GET, 404", undefined, 404, 1],
  ["a GET, 501", undefined, 501, 1],
  ["a GET, 408", undefined, 408, 3],
  ["a GET, 429", undefined, 429, 3],
  ["a GET, 503", undefined, 503, 3],
  ["a GET, the connection breaks", undefined, reset, 3],
  ["a GET, no response in time", undefined, "silence", 3],
  ["a PUT, 503", { method: "PUT", body: "x" }, 503, 3],
  ["a put, 503", { method: "put", body: "x" }, 503, 3],
  ["a POST, 503", { method: "POST", body: "x" }, 503, 1],
  ["a POST, 408", { method: "POST", body: "x" }, 408, 1],
  ["a POST, the connection breaks", { method: "POST", body: "x" }, reset, 1],
  ["a POST, no response in time", { method: "POST", body: "x" }, "silence", 1],
  ["a POST, 429", { method: "POST", body: "x" }, 429, 3],
  ["a POST, 425", { method: "POST", body: "x" }, 425, 3],
  ["a POST, no connection", { method: "POST", body: "x" }, refused, 3],
  ["a PATCH, 503", { method: "PATCH", body: "x" }, 503, 1],
  ["a POST with a key, 503", { method: "POST", body: "x", headers: key }, 503, 3],
  ["a POST with a key in a list, 503", { method: "POST", body: "x", headers: Object.entries(key) }, 503, 3],
  ["a POST with a key in Headers, 503", { method: "POST", body: "x", headers: new Headers(key) }, 503, 3],
  ["a POST with a key, the connection breaks", { method: "POST", body: "x", headers: key }, reset, 3],
  ["a POST with a key, 409", { method: "POST", body: "x", headers: key }, 409, 3],
  ["a POST with a key, 422", { method: "POST", body: "x", headers: key }, 422, 1],
  ["a POST, 409", { method: "POST", body: "x" }, 409, 1],
  ["a PUT of a form, 503", { method: "PUT", body: new URLSearchParams("a=1") }, 503, 3],
  ["a PUT of a blob, 503", { method: "PUT", body: new Blob(["x"]) }, 503, 3],
  ["a defect of the program", undefined, () => new RangeError("no"), 1]
]

describe("a request", () => {
  for (const [what, init, answer, sends] of table) {
    it.effect(`${what}: ${sends} sends`, () =>
      Effect.gen(function*() {
        for (const asRequest of [false, true]) {
          const { result, sent } = yield* run([answer], (fetch) =>
            asRequest ? fetch(new Request(url, init)) : fetch(url, init))
          assert.strictEqual(sent.length, sends, `as a Request: ${asRequest}`)
          const status = result.status === "fulfilled" ? result.value.status : undefined
          assert.strictEqual(status, typeof answer === "number" ? answer : undefined)
          if (init?.body === "x") {
            assert.deepStrictEqual(
              sent.map(({ body }) =>
                body
              ),
              sent.map(() => "x")
            )
          }
        }
      }))
  }

  it.effect("with a body that can be read once is sent once, whatever happens and whatever classify says", () =>
    Effect.gen(function*() {
      const bodies = [
        () => new ReadableStream({ start: (controller) => controller.close() }),
        () => Readable.from([]) as any,
        async function*() {} as any
      ]
      for (const body of bodies) {
        for (const answer of [503, 429, refused, "silence"] as const) {
          const { sent } = yield* run(
            [answer],
            (fetch) => fetch(url, { method: "PUT", body: body(), duplex: "half" } as RequestInit),
            { classify: () => true }
          )
          assert.strictEqual(sent.length, 1)
        }
      }
    }))

  it.effect("that a redirect has led elsewhere may have run: a POST is not sent again, not even after a 429", () =>
    Effect.gen(function*() {
      const redirected = () => Object.defineProperty(headed(429, {}), "redirected", { value: true })
      const fetched = (init: RequestInit) =>
        Effect.gen(function*() {
          let sends = 0
          const { result } = yield* run([200], (fetch) => fetch(url, init), {
            fetch: async () => {
              sends++
              return redirected()
            }
          })
          return [valueOf(result).status, sends]
        })
      assert.deepStrictEqual(yield* fetched({ method: "POST" }), [429, 1])
      assert.deepStrictEqual(yield* fetched({ method: "PUT" }), [429, 3])
    }))

  it.effect("may be a Request as the second argument, as in the proxy of a worker", () =>
    Effect.gen(function*() {
      const inner = new Request("http://b/", { method: "POST", body: "x", headers: key })
      const { sent } = yield* run([503, 200], (fetch) => fetch(url, inner as RequestInit))
      assert.deepStrictEqual(sent.map(({ body }) => body), ["x", "x"])
      assert.deepStrictEqual(sent.map(({ input }) => (input as Request).url), [url, url])
      assert.deepStrictEqual(sent.map(({ input }) => (input as Request).method), ["POST", "POST"])
    }))

  it.effect("with init in place of parts of a Request: its method, headers, body and signal count", () =>
    Effect.gen(function*() {
      const request = () => new Request(url, { method: "PUT", body: "x", headers: key })
      const posted = yield* run([503], (fetch) => fetch(request(), { method: "POST", headers: {} }))
      assert.strictEqual(posted.sent.length, 1)
      const other = yield* run([503, 200], (fetch) => fetch(request(), { method: "PUT", body: "y" }))
      assert.deepStrictEqual(other.sent.map(({ body }) => body), ["y", "y"])
      const controller = new AbortController()
      const aborted = yield* run([503], (fetch) => {
        controller.abort(new Error("enough"))
        return fetch(request(), { signal: controller.signal })
      })
      assert.strictEqual(reasonOf(aborted.result).message, "enough")
      const kept = yield* run(
        [200],
        (fetch) => fetch(new Request(url, { signal: controller.signal }), { signal: null })
      )
      assert.strictEqual(valueOf(kept.result).status, 200)
    }))

  it.effect("that is a Request is used up, as by fetch, and keeps its referrer", () =>
    Effect.gen(function*() {
      const request = new Request(url, { method: "PUT", body: "x", referrer: "", referrerPolicy: "origin" })
      const { result, sent } = yield* run([503, 200], (fetch) => fetch(request))
      assert.strictEqual(valueOf(result).status, 200)
      assert.isTrue(request.bodyUsed)
      assert.deepStrictEqual(sent.map(({ init }) => [init?.referrer, init?.referrerPolicy]), [["", "origin"], [
        "",
        "origin"
      ]])
      const again = yield* run([200], (fetch) => fetch(request))
      assert.instanceOf(reasonOf(again.result), TypeError)
    }))
})

describe("the result", () => {
  it.effect("is the last response, readable, and the others are canceled", () =>
    Effect.gen(function*() {
      const canceled: Array<number> = []
      const answer = (index: number) => () =>
        new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(new Uint8Array([65])),
            cancel: () => void canceled.push(index)
          }),
          { status: 503 }
        )
      let sends = 0
      const { result } = yield* run([200], async (fetch) => (await fetch(url)).body!.getReader().read(), {
        fetch: async () => answer(sends++)()
      })
      assert.deepStrictEqual([...valueOf(result).value!], [65])
      assert.deepStrictEqual(canceled, [0, 1])
    }))

  it.effect("is the response of the attempt before, readable, where a gate refuses the retry", () =>
    Effect.gen(function*() {
      const { result, sent } = yield* run(
        [() => headed(503, { "retry-after": "1" })],
        async (fetch) => {
          const first = fetch(url)
          const others = Array.from({ length: 30 }, () => fetch(url))
          await Promise.allSettled(others)
          return (await first).text()
        },
        { coolDown: { maxWait: 0 } }
      )
      assert.strictEqual(valueOf(result), "body of 503")
      assert.isBelow(sent.length, 93)
    }))

  it.effect("is an error of the network, the same object", () =>
    Effect.gen(function*() {
      const errors = [reset(), reset(), refused()]
      const { result } = yield* run(errors, (fetch) => fetch(url))
      assert.strictEqual(reasonOf(result), errors[2])
      assert.deepStrictEqual(Object.keys(errors[2]!), [])
    }))

  it.effect("is a TimeoutError, and each attempt was aborted with one", () =>
    Effect.gen(function*() {
      const { result, sent } = yield* run(["silence"], (fetch) => fetch(url))
      const error = reasonOf(result)
      assert.deepStrictEqual([error.name, error.message], ["TimeoutError", "no response within 2s"])
      assert.instanceOf(error, DOMException)
      assert.deepStrictEqual(sent.map(({ init }) => init!.signal!.reason.name), Array(3).fill("TimeoutError"))
      assert.deepStrictEqual(sent.map(({ atMillis }) => atMillis), [0, 2050, 4150])
    }))

  it.effect("by default, a hanging attempt ends after 10 seconds, and is retried for 30", () =>
    Effect.gen(function*() {
      const options = { attemptTimeout: undefined, retries: undefined }
      const { result, sent } = yield* run(["silence"], (fetch) => fetch(url), options)
      assert.include(reasonOf(result).message, "no response within 10s")
      assert.deepStrictEqual(sent.map(({ atMillis }) => atMillis), [0, 10_050, 20_150])
      const once = yield* run(["silence", 200], (fetch) => fetch(new Request(url, { method: "put" })), options)
      assert.deepStrictEqual([valueOf(once.result).status, once.sent.length], [200, 2])
    }))

  it.effect("by default, ends after ten attempts", () =>
    Effect.gen(function*() {
      const { sent } = yield* run([503], (fetch) => fetch(url), { retries: undefined })
      assert.deepStrictEqual([sent.length, sent[9]!.atMillis], [10, 50 + 100 + 200 + 400 + 800 + 1600 + 3 * 2500])
      assert.strictEqual((yield* run([503], (fetch) => fetch(url), { retries: 11 })).sent.length, 12)
    }))

  it.effect("by default, an attempt that no other can follow has 30 seconds", () =>
    Effect.gen(function*() {
      const alone: ReadonlyArray<RequestInit> = [
        { method: "POST", body: "x" },
        { method: "post", body: "x" },
        { method: "PUT", body: new Blob(["x"]).stream(), duplex: "half" } as RequestInit
      ]
      for (const init of alone) {
        const { result, sent } = yield* run(["silence"], (fetch) => fetch(url, init), { attemptTimeout: undefined })
        assert.deepStrictEqual([reasonOf(result).message, sent.length], ["no response within 30s", 1])
      }
      const keyed = { method: "post", body: "x", headers: key }
      const { result } = yield* run(["silence"], (fetch) => fetch(url, keyed), { attemptTimeout: undefined })
      assert.strictEqual(reasonOf(result).message, "no response within 10s")
    }))

  it.effect("waits for a response as long as it takes with attemptTimeout false, and not for its body", () =>
    Effect.gen(function*() {
      const late = (millis: number, attemptTimeout: Fetch.Options["attemptTimeout"]) =>
        run([200], (fetch) => fetch(url), (context) => ({
          attemptTimeout,
          fetch: () => Effect.runPromiseWith(context)(Effect.as(Effect.sleep(millis), headed(200, {})))
        }))
      assert.strictEqual(valueOf((yield* late(90_000, false)).result).status, 200)
      assert.strictEqual(valueOf((yield* late(900, "1 second")).result).status, 200)
      assert.strictEqual(reasonOf((yield* late(1100, "1 second")).result).name, "TimeoutError")
    }))

  it.effect("discards a response that comes too late", () =>
    Effect.gen(function*() {
      let canceled = 0
      const body = () => new ReadableStream({ cancel: () => void canceled++ })
      const slept = (context: Context.Context<never>, seconds: number) =>
        Effect.runPromiseWith(context)(Effect.sleep(seconds * 1000))
      let late: Promise<unknown> | undefined
      const { result } = yield* run([200], async (fetch) => {
        const error = await fetch(url).catch((error: Error) => error.name)
        await late
        return error
      }, (context) => ({
        retries: 0,
        attemptTimeout: "1 second",
        fetch: async () => {
          await (late = slept(context, 2))
          return new Response(body())
        }
      }))
      yield* flush
      assert.strictEqual(valueOf(result), "TimeoutError")
      assert.strictEqual(canceled, 1)
    }))
})

describe("the caller's signal", () => {
  for (const asRequest of [false, true]) {
    const where = asRequest ? "of a Request" : "of init"
    const send = (fetch: Fetch.Fetch, signal: AbortSignal) =>
      asRequest ? fetch(new Request(url, { signal })) : fetch(url, { signal })

    it.effect(`${where}: aborted before, nothing is sent`, () =>
      Effect.gen(function*() {
        const { result, sent } = yield* run([200], (fetch) => send(fetch, AbortSignal.abort(new Error("enough"))))
        assert.strictEqual(reasonOf(result).message, "enough")
        assert.strictEqual(sent.length, 0)
      }))

    it.effect(`${where}: aborted in an attempt, the attempt is aborted with its reason and none follows`, () =>
      Effect.gen(function*() {
        const controller = new AbortController()
        const { result, sent } = yield* run(["silence"], (fetch) => {
          setImmediate(() => setImmediate(() => controller.abort(new Error("enough"))))
          return send(fetch, controller.signal)
        })
        assert.strictEqual(reasonOf(result).message, "enough")
        assert.deepStrictEqual(sent.map(({ init }) => init!.signal!.reason.message), ["enough"])
      }))

    it.effect(`${where}: aborted between attempts, none follows, and the response is canceled`, () =>
      Effect.gen(function*() {
        const controller = new AbortController()
        let canceled = 0
        const body = () => new ReadableStream({ cancel: () => void canceled++ })
        let sends = 0
        const { result } = yield* run([503], (fetch) => send(fetch, controller.signal), {
          onRetry: () => setImmediate(() => controller.abort(new Error("enough"))),
          context: Context.empty(),
          fetch: async () => {
            sends++
            return new Response(body(), { status: 503, headers: { "retry-after": "5" } })
          }
        })
        assert.strictEqual(reasonOf(result).message, "enough")
        assert.deepStrictEqual([sends, canceled], [1, 1])
      }))
  }
})

describe("a host", () => {
  it.effect("has a quota of its own, which a dead one cannot take from the others", () =>
    Effect.gen(function*() {
      const { sent } = yield* run([reset], async (fetch) => {
        for (let call = 0; call < 60; call++) await fetch("http://dead/").catch(() => {})
        await fetch(new URL("http://dead:81/")).catch(() => {})
        await fetch(new Request("http://alive/")).catch(() => {})
      })
      const to = (host: string) => sent.filter(({ input }) => new Request(input).url === `http://${host}/`).length
      assert.deepStrictEqual([to("dead"), to("dead:81"), to("alive")], [60 + 100, 3, 3])
    }))

  it.effect("with a quota that is set", () =>
    Effect.gen(function*() {
      const { sent } = yield* run([reset], async (fetch) => {
        for (let call = 0; call < 4; call++) await fetch(url).catch(() => {})
      }, { quota: { capacity: 14 } })
      assert.strictEqual(sent.length, 4 + 2)
    }))

  it.effect("with the quota and the resources of a context, unless the options have their own", () =>
    Effect.gen(function*() {
      const two = { capacity: 10 }
      const layers: ReadonlyArray<readonly [layer: Layer.Layer<never>, options: Fetch.Options, sends: number]> = [
        [Layer.empty, {}, 12],
        [RetryQuota.layer(two), {}, 4 + 2],
        [RetryQuota.layer(two), { quota: {} }, 12],
        [RetryQuota.layer(two), { coolDown: {} }, 4 + 2],
        [ResourceLimiters.layer({ quota: two }), {}, 4 + 4],
        [ResourceLimiters.layer({ quota: two }), { quota: {} }, 12]
      ]
      for (const [layer, options, sends] of layers) {
        const calls = async (fetch: Fetch.Fetch) => {
          for (const host of ["a", "a", "b", "b"]) await fetch(`http://${host}/`)
        }
        const services = yield* Layer.build(layer)
        const { sent } = yield* run(
          [503],
          calls,
          (context) => ({ ...options, context: Context.merge(context, services) })
        )
        assert.strictEqual(sent.length, sends)
      }
    }))

  it.effect("that asks for a minute is not asked if the cool-down is that of a context", () =>
    Effect.gen(function*() {
      const services = yield* Layer.build(CoolDown.layer())
      const { result, sent } = yield* run([() => headed(503, { "retry-after": "60" }), 200], async (fetch) => {
        await fetch(url)
        return fetch("http://b/")
      }, (context) => ({ context: Context.merge(context, services) }))
      assert.deepStrictEqual([reasonOf(result)._tag, sent.length], ["CoolingDown", 1])
    }))

  it.effect("that asks for a break gets it from all callers, other hosts do not wait", () =>
    Effect.gen(function*() {
      const answers = [() => headed(429, { "retry-after": "5" }), 200]
      const calls = async (fetch: Fetch.Fetch) => {
        const first = fetch(url)
        await new Promise((resolve) => setImmediate(resolve))
        await Promise.all([first, fetch(url), fetch(url), fetch("http://b/")])
      }
      const { sent } = yield* run(answers, calls)
      const times = (host: string) =>
        sent.flatMap(({ atMillis, input }) => new URL(String(input)).host === host ? [atMillis] : [])
      assert.deepStrictEqual(times("b"), [0])
      const [first, ...later] = times("a")
      assert.deepStrictEqual([first, later.length], [0, 3])
      assert.isAtLeast(Math.min(...later), 5000)
      const alone = yield* run(answers, calls, { coolDown: false })
      assert.deepStrictEqual(alone.sent.filter(({ atMillis }) => atMillis === 0).length, 4)
    }))

  it.effect("that asks for more than is left of thirty seconds: its response is the result at once", () =>
    Effect.gen(function*() {
      for (const [seconds, sends] of [["25", 2], ["31", 1]] as const) {
        const { sent } = yield* run([() => headed(503, { "retry-after": seconds }), 200], (fetch) => fetch(url))
        assert.strictEqual(sent.length, sends, seconds)
      }
    }))

  it.effect("that asks for half a minute is still sent other calls, but no retries before that", () =>
    Effect.gen(function*() {
      const calls = (fetch: Fetch.Fetch) => Promise.all([1, 2, 3].map(async () => (await fetch(url)).status))
      const answers = [() => headed(429, { "retry-after": "60" }), 200, 503]
      const { result, sent } = yield* run(answers, async (fetch) => {
        await fetch(url)
        return calls(fetch)
      })
      assert.deepStrictEqual(valueOf(result), [200, 503, 503])
      assert.deepStrictEqual(sent.map(({ atMillis }) => atMillis), [0, 0, 0, 0])
    }))

  it.effect("that is closed for longer than a coolDown of the options waits is not asked: CoolingDown", () =>
    Effect.gen(function*() {
      const calls = async (fetch: Fetch.Fetch) => {
        await fetch(url)
        return fetch(url)
      }
      const answers = [() => headed(503, { "retry-after": "60" }), 200]
      const closed = yield* run(answers, calls, { coolDown: {} })
      assert.deepStrictEqual([reasonOf(closed.result)._tag, closed.sent.length], ["CoolingDown", 1])
      for (const coolDown of [undefined, false] as const) {
        const open = yield* run(answers, calls, { coolDown })
        assert.deepStrictEqual([valueOf(open.result).status, open.sent.length], [200, 2])
      }
    }))

  it.effect("is the resource that observers see", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const observer: RetryObserver.RetryObserver = {
        onRetry: (_retry, _error, context) => void seen.push(Context.get(context, RetryObserver.CurrentResource))
      }
      yield* run([503, 200], (fetch) => fetch("http://shop.example:8080/orders"), (context) => ({
        context: Context.add(context, RetryObserver.CurrentObserver, observer)
      }))
      assert.deepStrictEqual(seen, ["shop.example:8080"])
    }))
})

describe("options", () => {
  it.effect("of the calls: retries, classify, onRetry, onStop", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const options: Fetch.Options = {
        retries: 4,
        classify: (error) => (error as Response).status === 404 ? true : undefined,
        onRetry: (error, { delay, retry }) => seen.push([(error as Response).status, retry, Duration.toMillis(delay)]),
        onStop: (error, { attempts, reason }) => seen.push([(error as Response).status, attempts, reason])
      }
      yield* run([503, 404, 200], (fetch) => fetch(url), options)
      yield* run([503], (fetch) => fetch(url), { onStop: options.onStop! })
      assert.deepStrictEqual(seen, [[503, 1, 50], [404, 2, 100], [503, 3, "max-attempts"]])
    }))

  it.effect("a policy that retries everything retries only what is known to be transient", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(3))
      for (
        const [answer, init, sends] of [[503, {}, 3], [() => new RangeError(), {}, 1], [
          503,
          { method: "POST" },
          1
        ]] as const
      ) {
        const { sent } = yield* run([answer], (fetch) => fetch(url, init), { policy })
        assert.strictEqual(sent.length, sends)
      }
    }))

  const wrong: ReadonlyArray<readonly [options: unknown, message: string]> = [
    [{ retrys: 1 }, "retryFetch: option must be one of"],
    [{ policy: "often" }, "retryFetch: policy must be a RetryPolicy"],
    [{ attemptTimeout: "1s" }, "retryFetch: attemptTimeout must be a finite duration above 0"],
    [{ attemptTimeout: 0 }, "retryFetch: attemptTimeout must be a finite duration above 0"],
    [{ fetch: "node-fetch" }, "retryFetch: fetch must be a function such as fetch"],
    [{ quota: { capacity: 4 } }, "retryFetch: quota.capacity must be at least 5"],
    [{ coolDown: { maxWaits: 1 } }, "CoolDown"],
    [{ coolDown: true }, "retryFetch: coolDown must be options or false, got true"],
    [{ retries: -1 }, "retryFetch: retries must be a whole number"],
    [null, "retryFetch: options must be an object"]
  ]
  it("that are wrong are InvalidOption, where it is made", () => {
    for (const [options, message] of wrong) {
      try {
        retryFetch(options as Fetch.Options)
        assert.fail(message)
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        assert.include((error as Error).message, message)
      }
    }
  })

  it("a signal that is none rejects", async () => {
    const error = await retryFetch()(url, { signal: "stop" as any }).catch((error: unknown) => error)
    assert.include(String(error), "signal must be an AbortSignal")
  })
})

describe("the function", () => {
  it("has the type of fetch, and what a runtime adds to it", async () => {
    const plain: typeof fetch = async () => new Response("ok")
    const extended = Object.assign(plain, { preconnect: () => "connected" })
    const made = retryFetch({ fetch: extended }) as typeof extended
    assert.strictEqual(made.preconnect(), "connected")
    assert.strictEqual(await (await made("http://a/")).text(), "ok")
    assert.strictEqual(typeof made, "function")
  })

  it("is the fetch of a client of OpenAI, whose POSTs are sent again after a 429, not after a 503", async () => {
    for (const [status, sends] of [[429, 2], [503, 1]] as const) {
      let sent = 0
      const plain: typeof fetch = async () =>
        sent++ > 0
          ? Response.json({ choices: [] })
          : new Response("{}", { status, headers: { "retry-after-ms": "1" } })
      const client = new OpenAI({
        apiKey: "k",
        baseURL: "http://a",
        maxRetries: 0,
        fetch: retryFetch({ fetch: plain })
      })
      const asked = client.chat.completions.create({ model: "m", messages: [] })
      const error = await asked.then(() => undefined, (error: unknown) => error)
      assert.deepStrictEqual([sent, error instanceof OpenAI.InternalServerError], [sends, status === 503])
    }
  })

  it("calls the fetch of the program without a this, as browsers want it", async () => {
    const seen: Array<unknown> = []
    const plain = async function(this: unknown) {
      seen.push(this)
      return new Response("ok")
    }
    await retryFetch({ fetch: plain })("http://a/")
    assert.deepStrictEqual(seen, [undefined])
  })

  describe("in place of the global fetch, or around it", () => {
    const before = globalThis.fetch
    afterEach(() => {
      globalThis.fetch = before
    })
    /** Answers 503 first, then 200. */
    const mocked = () => {
      const world = { sends: 0, fetch: async () => new Response("ok", { status: world.sends++ < 1 ? 503 : 200 }) }
      return world
    }
    const policy = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(3))

    it("sends by the global fetch of the moment, so a mock is seen, and gone when it is", async () => {
      const [first, second] = [mocked(), mocked()]
      const made = retryFetch({ policy })
      globalThis.fetch = first.fetch
      assert.strictEqual((await made("http://a/")).status, 200)
      globalThis.fetch = second.fetch
      assert.strictEqual((await made("http://a/")).status, 200)
      assert.deepStrictEqual([first.sends, second.sends], [2, 2])
    })

    it("takes its place: it sends by what was there", async () => {
      const world = mocked()
      globalThis.fetch = world.fetch
      globalThis.fetch = retryFetch({ policy })
      assert.strictEqual((await fetch("http://a/")).status, 200)
      assert.strictEqual(world.sends, 2)
    })

    it("takes its place, which something takes later: as MSW, which makes a Request and passes it on later", async () => {
      const world = mocked()
      globalThis.fetch = world.fetch
      const made = retryFetch({ policy })
      globalThis.fetch = made
      await Promise.resolve()
      let calls = 0
      globalThis.fetch = async (input, init) => {
        const request = new Request(input, init)
        await Promise.resolve()
        if (++calls > 20) throw new Error("calls itself")
        return made(request)
      }
      assert.strictEqual((await fetch("http://a/")).status, 200)
      assert.deepStrictEqual([calls, world.sends], [1, 2])
    })

    const around: Record<string, (inner: typeof fetch) => typeof fetch> = {
      "a function": (inner) => (input, init) => inner(input, init),
      "a function that makes a Request": (inner) => (input, init) => inner(new Request(input, init)),
      "an async function": (inner) => async (input, init) => {
        await Promise.resolve()
        return inner(input, { ...init })
      },
      "another retryFetch": (inner) =>
        retryFetch({ policy: Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(1)), fetch: inner })
    }
    for (const [what, wrap] of Object.entries(around)) {
      it(`takes its place with ${what} around it: it does not call itself`, async () => {
        const world = mocked()
        globalThis.fetch = world.fetch
        const made = retryFetch({ policy })
        let calls = 0
        globalThis.fetch = wrap((input, init) => {
          if (++calls > 20) throw new Error("calls itself")
          return made(input, init)
        })
        assert.strictEqual((await made("http://a/")).status, 200)
        assert.strictEqual((await fetch("http://a/")).status, 200)
        assert.strictEqual(world.sends, 3)
      })
    }
  })
})

it.effect("whatever interrupts it, a call holds no slot of a gate, and nothing is sent any more", () =>
  Effect.gen(function*() {
    const limiter = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(1) })
    let sends = 0
    const program = Effect.gen(function*() {
      const context = Context.add(yield* Effect.context<never>(), ConcurrencyLimiter.ConcurrencyLimiter, limiter)
      const fetch = retryFetch({
        context,
        fetch: async () => new Response("", { status: sends++ % 3 < 2 ? 503 : 200, headers: { "retry-after": "1" } })
      })
      yield* Effect.ensuring(Effect.tryPromise((signal) => fetch(url, { signal })), flush)
    })
    const steps = yield* sweep(program, () =>
      Effect.gen(function*() {
        const before = sends
        yield* Effect.andThen(TestClock.adjust("1 hour"), flush)
        assert.strictEqual(sends, before)
        assert.deepStrictEqual(yield* limiter.state, { limit: 1, inFlight: 0, waiting: 0 })
      })).pipe(thinned(5))
    assert.isAtLeast(steps, 10)
  }))

describe("examples/fetch.ts", () => {
  it.live("asks for the orders three times, places an order once, and twice with a key", () =>
    Effect.gen(function*() {
      const before = console.log
      const lines: Array<unknown> = []
      console.log = (line: unknown) => void lines.push(line)
      yield* withServer(answering([503, 503, 200, 503, 503, 200]), Example.program).pipe(
        Effect.ensuring(Effect.sync(() => {
          console.log = before
        }))
      )
      const [get, post] = ["GET /orders: ", "POST /orders: "]
      assert.deepStrictEqual(lines, [`${get}503`, `${get}503`, `${get}200`, `${post}503`, `${post}503`, `${post}200`])
    }))

  it("makes a fetch with other options", () => {
    assert.strictEqual(typeof Example.patientFetch, "function")
  })
})

describe("against a server", () => {
  let server: Server
  let address: string
  let script: ReadonlyArray<(response: ServerResponse) => unknown> = []
  let bodies: Array<string> = []
  let closed = 0
  beforeAll(async () => {
    server = createServer((request, response) => {
      response.on("close", () => closed++)
      let body = `${request.method} `
      request.on("data", (chunk) => body += chunk)
      request.on("end", () => {
        script[Math.min(bodies.push(body) - 1, script.length - 1)]!(response)
      })
    }).listen(0)
    await once(server, "listening")
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  beforeEach(() => {
    bodies = []
    closed = 0
  })

  const status = (code: number) => (response: ServerResponse) => response.writeHead(code).end(`body of ${code}`)
  const fetch = retryFetch({ policy: Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(3)) })

  it("sends the body of a Request each time, and reads the last response", async () => {
    script = [status(503), status(200)]
    const request = new Request(address, { method: "PUT", body: "x".repeat(100_000) })
    assert.strictEqual(await (await fetch(request)).text(), "body of 200")
    assert.deepStrictEqual(bodies.map((body) => body.length), [100_004, 100_004])
  })

  it("sends a form again", async () => {
    script = [status(503), status(200)]
    const form = new FormData()
    form.set("a", new Blob(["x"]))
    assert.strictEqual((await fetch(address, { method: "PUT", body: form })).status, 200)
    assert.strictEqual(bodies.length, 2)
    for (const body of bodies) assert.include(body, "form-data")
  })

  it("closes the connection of a response that is followed by a retry", async () => {
    script = [(response) => response.writeHead(503).write("more to come"), status(200)]
    await (await fetch(address)).text()
    while (closed < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.strictEqual(bodies.length, 2)
  })

  it("aborts the body of the result with the caller's signal", async () => {
    script = [(response) => response.writeHead(200).write("more to come")]
    const controller = new AbortController()
    const response = await fetch(address, { signal: controller.signal })
    const reading = response.text()
    controller.abort(new Error("enough"))
    assert.strictEqual(await reading.catch((error: Error) => error.message), "enough")
  })
})
