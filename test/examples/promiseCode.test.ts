/** What the pages show for programs without Effect. */
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import { awsStandard } from "effect-retry"
import { retryFetch } from "effect-retry/fetch"
import { make } from "effect-retry/RetryPromise"
import type OpenAI from "openai"
import * as Answers from "../../examples/answers.ts"
import * as Fetch from "../../examples/fetch.ts"
import * as Promises from "../../examples/promises.ts"
import * as Testing from "../../examples/testing-promises.ts"

const rejected = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => assert.fail("it did not reject"), (error: unknown) => error)

describe("examples/testing-promises", () => {
  it("waits as long as the server asks", Testing.waitsAsAsked)

  it("gives up on a server that never answers, after 30 seconds", async () => {
    const millis = await Testing.givesUp()
    assert.isAtLeast(millis, 30_000)
    assert.isBelow(millis, 31_000)
  })
})

describe("fake timers", () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it("do not move the monotonic clock, so a retry comes too late", async () => {
    vi.useFakeTimers()
    const start = Date.now()
    const sentAt: Array<number> = []
    const fetch = retryFetch({
      fetch: async () =>
        sentAt.push(Date.now() - start) === 1
          ? new Response("", { status: 429, headers: { "retry-after": "3" } })
          : new Response("ok")
    })
    const result = fetch("http://shop.example")
    await vi.advanceTimersByTimeAsync(60_000)
    assert.strictEqual((await result).status, 200)
    assert.isAbove(sentAt[1]!, 10_000)
  })
})

describe("examples/fetch", () => {
  it("tells by the last response why its call stopped", async () => {
    vi.stubGlobal("fetch", async () => new Response("", { status: 503 }))
    const posted = Fetch.patientFetch("http://shop.example", { method: "POST", body: "{}" })
    const response = await posted.finally(() => vi.unstubAllGlobals())
    assert.strictEqual(Fetch.reasonOf(response), "not-safe")
    assert.isUndefined(Fetch.reasonOf(new Response()))
  })

  it("counts without an Effect program", async () => {
    vi.stubGlobal("fetch", async () => new Response("ok"))
    await Fetch.observedFetch("http://counted.example").finally(() => vi.unstubAllGlobals())
    assert.match(Fetch.metricsText(), /^retry_attempts_total\{.*resource="counted\.example".*\} 1$/m)
  })
})

describe("examples/promises", () => {
  it("classifyWrite: a write is not repeated when its connection breaks", async () => {
    const broken = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })
    const sendsOf = async (classify?: typeof Promises.classifyWrite) => {
      let sends = 0
      const retry = make(awsStandard, { retries: 1, ...(classify && { classify }) })
      const error = await rejected(retry(() => {
        sends++
        throw broken
      }))
      assert.strictEqual(error, broken)
      return sends
    }
    assert.strictEqual(await sendsOf(), 2)
    assert.strictEqual(await sendsOf(Promises.classifyWrite), 1)
    assert.isUndefined(Promises.classifyWrite(undefined))
    const failing = (code: string) => Object.assign(new Error("write"), { code, syscall: "write" })
    const safetyOf = (error: unknown) => Object(Promises.classifyWrite(error)).safety
    const unsafe = [broken, new Error("query", { cause: broken }), ...["EPIPE", "EHOSTUNREACH", "57P01"].map(failing)]
    assert.deepStrictEqual(unsafe.map(safetyOf), unsafe.map(() => "Maybe"))
    assert.deepStrictEqual(["40001", "53300"].map(failing).map(safetyOf), ["Yes", "Yes"])
  })
})

describe("examples/answers, outside Effect", () => {
  const request: OpenAI.ChatCompletionCreateParamsStreaming = { model: "m", messages: [], stream: true }
  const part = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
  const openaiOf = (create: (request: unknown, options: { readonly signal: AbortSignal }) => Promise<unknown>) =>
    ({ chat: { completions: { create } } }) as unknown as OpenAI

  it("fails with the SDK's own error", async () => {
    const unknown = Object.assign(new Error("no such model"), { status: 404 })
    const openai = openaiOf(() => Promise.reject(unknown))
    const answer = Answers.answerOutside(openai, request, new AbortController().signal)
    assert.strictEqual(await rejected(answer[Symbol.asyncIterator]().next()), unknown)
  })

  it("ends with the reason of the signal, and aborts the request", async () => {
    const caller = new AbortController()
    let sent: AbortSignal | undefined
    const openai = openaiOf(async (_, { signal }) => {
      sent = signal
      return (async function*() {
        yield part("It")
        await new Promise(() => {})
      })()
    })
    const words: Array<unknown> = []
    const reading = async () => {
      for await (const { choices: [choice] } of Answers.answerOutside(openai, request, caller.signal)) {
        words.push(choice?.delta.content)
        caller.abort(new Error("the reader left"))
      }
    }
    assert.strictEqual(await rejected(reading()), caller.signal.reason)
    assert.deepStrictEqual(words, ["It"])
    assert.isTrue(sent?.aborted)
  })
})
