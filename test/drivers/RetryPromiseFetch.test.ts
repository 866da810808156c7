/** `retryPromise` around `fetch`, against a server of Node; and its options for programs without Effect. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import {
  awsStandard2026,
  Backoff,
  RetryClassifier,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  SendGate
} from "effect-retry"
import * as RetryPromise from "effect-retry/RetryPromise"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { getEventListeners, once } from "node:events"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as Promises from "../../examples/promises.ts"

const { retryPromise } = RetryPromise

const policy = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)
const always = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(3))

type Answer = (response: ServerResponse) => unknown

/** Answers as the script says, in order; its last answer repeats. */
let script: ReadonlyArray<Answer> = []
let sends = 0
let closed = 0
let server: Server
let url: string

beforeAll(async () => {
  server = createServer((request, response) => {
    response.on("close", () => closed++)
    script[Math.min(sends++, script.length - 1)]!(response)
  }).listen(0)
  await once(server, "listening")
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  sends = closed = 0
})

const status = (code: number, headers: Record<string, string> = {}): Answer => (response) =>
  response.writeHead(code, headers).end(`body of ${code}`)

const rejected = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise
  } catch (error) {
    return error
  }
  return assert.fail("did not reject")
}

const messageOf = async (promise: Promise<unknown>) => String((await rejected(promise) as Error).message)

describe("a response of fetch", () => {
  const table: ReadonlyArray<readonly [number, number]> = [
    [200, 1],
    [204, 1],
    [304, 1],
    [400, 1],
    [404, 1],
    [408, 3],
    [425, 3],
    [429, 3],
    [500, 3],
    [501, 1],
    [502, 3],
    [503, 3],
    [504, 3]
  ]
  for (const [code, attempts] of table) {
    it(`${code}: ${attempts} sends, and the last response is the result, body and all`, async () => {
      script = [status(code)]
      const response = await retryPromise((attempt) => fetch(url, attempt), policy)
      assert.deepStrictEqual([response.status, sends], [code, attempts])
      assert.strictEqual(await response.text(), code === 204 || code === 304 ? "" : `body of ${code}`)
    })
  }

  it("503, then 200: the 200, under the policy of AWS", async () => {
    script = [status(503), status(200)]
    const response = await retryPromise((attempt) => fetch(url, attempt), awsStandard2026)
    assert.strictEqual(await response.text(), "body of 200")
    assert.strictEqual(sends, 2)
  })

  it("is retried by a policy that retries everything only if it is known for a failure", async () => {
    for (const [code, attempts] of [[404, 1], [503, 3]] as const) {
      sends = 0
      script = [status(code)]
      assert.strictEqual((await retryPromise((attempt) => fetch(url, attempt), always)).status, code)
      assert.strictEqual(sends, attempts)
    }
  })

  it("gives its hint", async () => {
    script = [status(429, { "retry-after": "7" }), status(200)]
    const hints: Array<unknown> = []
    await retryPromise((attempt) => fetch(url, attempt), policy, {
      onRetry: (_, { info }) => hints.push(Duration.toSeconds(info!.retryAfter!))
    })
    assert.deepStrictEqual(hints, [7])
  })

  it("that is retried is released: its connection does not stay open", async () => {
    const endless: Answer = (response) => response.writeHead(503).write("more to come")
    script = [endless, status(200)]
    await (await retryPromise((attempt) => fetch(url, attempt), policy)).text()
    while (closed < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.strictEqual(sends, 2)
  })

  it("whose body was read already does no harm", async () => {
    script = [status(503)]
    const read = await retryPromise(async (attempt) => {
      const response = await fetch(url, attempt)
      assert.strictEqual(await response.text(), "body of 503")
      return response
    }, policy)
    assert.deepStrictEqual([read.status, sends], [503, 3])
  })

  it("that is thrown rejects", async () => {
    script = [status(503)]
    const error = await rejected(retryPromise(async (attempt) => {
      const response = await fetch(url, attempt)
      if (!response.ok) throw response
      return response
    }, policy))
    assert.isTrue(error instanceof Response)
    assert.strictEqual(sends, 3)
  })

  it("counts for the quota: 503s drain it, and an answer fills it", async () => {
    const quota = Effect.runSync(RetryQuota.make({ capacity: 28 }))
    const context = Context.make(RetryQuota.RetryQuota, quota)
    const balance = () => Effect.runSync(quota.balance)
    const get = () => retryPromise((attempt) => fetch(url, attempt), awsStandard2026, { context })
    script = [status(503)]
    assert.strictEqual((await get()).status, 503)
    assert.strictEqual((await get()).status, 503)
    assert.deepStrictEqual([sends, balance()], [4, 0])
    script = [status(404)]
    assert.strictEqual((await get()).status, 404)
    assert.strictEqual(balance(), 1)
  })

  it("is aborted while its body is read, when the caller's signal is", async () => {
    script = [(response) => response.writeHead(200).write("the beginning")]
    const controller = new AbortController()
    const { signal } = controller
    const response = await retryPromise((attempt) => fetch(url, attempt), policy, { signal })
    const body = response.text()
    const reason = new Error("enough")
    controller.abort(reason)
    assert.strictEqual(await rejected(body), reason)
  })

  it("leaves one listener on a long-lived signal, whatever the number of responses", async () => {
    script = [status(200)]
    const { signal } = new AbortController()
    for (let call = 0; call < 20; call++) {
      await (await retryPromise((attempt) => fetch(url, attempt), policy, { signal })).text()
    }
    assert.isAtMost(getEventListeners(signal, "abort").length, 1)
  })
})

describe("options in place of services", () => {
  const failing = (errors: ReadonlyArray<unknown>) => {
    let calls = 0
    return Object.assign(
      async () => {
        const error = errors[calls++]
        if (error !== undefined) throw error
        return "ok"
      },
      { calls: () => calls }
    )
  }
  const broken = Object.assign(new Error("reset"), { code: "ECONNRESET" })
  const many = (error: unknown) => Array.from({ length: 20 }, () => error)

  for (const [retries, calls] of [[0, 1], [1, 2], [5, 6]] as const) {
    it(`retries: ${retries} makes ${calls} calls, in place of the policy's three`, async () => {
      const f = failing(many(broken))
      assert.strictEqual(await rejected(retryPromise(f, policy, { retries })), broken)
      assert.strictEqual(f.calls(), calls)
    })
  }

  it("retries: Infinity continues until it succeeds", async () => {
    assert.strictEqual(await retryPromise(failing(many(broken)), policy, { retries: Infinity }), "ok")
  })

  const plain = new Error("anything")
  const classified: ReadonlyArray<readonly [string, RetryPromise.RetryOptions["classify"], unknown, number]> = [
    ["true retries what nobody knows", () => true, plain, 3],
    ["a promise of true does too", async () => true, plain, 3],
    ["false is final", () => false, broken, 1],
    ["undefined leaves it to the classifier: unknown", () => undefined, plain, 1],
    ["undefined leaves it to the classifier: known", () => undefined, broken, 3],
    ["facts say more", () => ({ throttling: true }), plain, 3],
    ["facts that are final", () => ({ safety: "No" }), broken, 1],
    ["throwing leaves it to the classifier", () => assert.fail("no"), broken, 3],
    ["rejecting leaves it to the classifier", () => Promise.reject(plain), plain, 1]
  ]
  for (const [name, classify, error, calls] of classified) {
    it(`classify: ${name}`, async () => {
      const f = failing(many(error))
      const asked: Array<unknown> = []
      const result = rejected(retryPromise(f, policy, {
        classify: (error) => {
          asked.push(error)
          return classify!(error)
        }
      }))
      assert.strictEqual(await result, error)
      assert.strictEqual(f.calls(), calls)
      assert.deepStrictEqual(asked, Array.from({ length: calls }, () => error), "once for each failure")
    })
  }

  it("classify: false is final for a policy that retries everything", async () => {
    const f = failing(many(plain))
    assert.strictEqual(await rejected(retryPromise(f, always, { classify: () => false })), plain)
    assert.strictEqual(f.calls(), 1)
  })

  it("classify: true keeps the hint that is known", async () => {
    script = [status(503, { "retry-after": "7" }), status(200)]
    const seen: Array<RetryInfo.RetryInfo | undefined> = []
    await retryPromise((attempt) => fetch(url, attempt), policy, {
      classify: () => true,
      onRetry: (_, { info }) => seen.push(info)
    })
    assert.strictEqual(Duration.toSeconds(seen[0]!.retryAfter!), 7)
  })

  it("classify: keeps a hint that is a date, also where the response does not say what time it is", async () => {
    const dated: Answer = (response) => {
      response.sendDate = false
      status(429, { "retry-after": new Date(Date.now() + 60_000).toUTCString() })(response)
    }
    for (const verdict of [undefined, true]) {
      script = [dated, status(200)]
      sends = 0
      const hints: Array<number> = []
      await retryPromise((attempt) => fetch(url, attempt), policy, {
        classify: () => verdict,
        onRetry: (_, { info }) => hints.push(info?.retryAfter === undefined ? 0 : Duration.toSeconds(info.retryAfter))
      })
      assert.strictEqual(hints.length, 1)
      assert.isAbove(hints[0]!, 50, String(verdict))
    }
  })

  it("classify: decides about responses too, a 404 that may appear and a 503 that may not", async () => {
    script = [status(404), status(200)]
    const appears = (answer: unknown) => answer instanceof Response && answer.status === 404 ? true : undefined
    assert.strictEqual((await retryPromise((a) => fetch(url, a), policy, { classify: appears })).status, 200)
    sends = 0
    script = [status(503)]
    assert.strictEqual((await retryPromise((a) => fetch(url, a), policy, { classify: () => false })).status, 503)
    assert.strictEqual(sends, 1)
  })

  it("classify: anything else is refused", async () => {
    const wrong: any = { classify: () => "yes" }
    assert.strictEqual(
      await messageOf(retryPromise(failing(many(plain)), policy, wrong)),
      "retryPromise: classify must be true, false, facts or undefined, got \"yes\""
    )
  })

  it("classify: what a limiter refuses is not asked of it", async () => {
    const asked: Array<unknown> = []
    const quota = Effect.runSync(RetryQuota.make({ capacity: 1, initial: 0, firstAttemptCost: 1 }))
    const error = await rejected(retryPromise(failing([]), policy, {
      classify: (error) => asked.push(error) > 0,
      context: Context.make(RetryQuota.RetryQuota, quota)
    }))
    assert.isTrue(error instanceof RetryQuota.QuotaExhausted)
    assert.deepStrictEqual(asked, [])
  })

  it("classify: gates learn what it says of a failed send, and see a response that it knows nothing of as a success", async () => {
    const outcomes: Array<unknown> = []
    const gate: SendGate.SendGate = {
      order: 1,
      enter: (send) =>
        send.hold({
          settle: ({ _tag, info }) => outcomes.push([_tag, info?.throttling]),
          cancel: () => undefined
        })
    }
    class Seen extends SendGate.Service<Seen, unknown>()("test/drivers/RetryPromiseFetch/Seen") {}
    const verdicts: Array<RetryPromise.Verdict> = [{ throttling: true }, undefined]
    const answers = [() => Promise.reject(new Error("a")), () => Promise.resolve(new Response(null, { status: 404 }))]
    await retryPromise(() => answers.shift()!(), policy, {
      classify: () => Promise.resolve(verdicts.shift()),
      context: Context.make(Seen, gate) as Context.Context<never>
    })
    assert.deepStrictEqual(outcomes, [["Failure", true], ["Success", undefined]])
  })

  it("onRetry and onStop get the error and the decision, and are waited for", async () => {
    const told: Array<unknown> = []
    const later = async (...what: ReadonlyArray<unknown>) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      told.push(what)
    }
    const f = async () => {
      told.push("call")
      throw broken
    }
    await rejected(retryPromise(f, policy, {
      onRetry: (error, { delay, retry }) => later("retry", error, retry, Duration.toMillis(delay)),
      onStop: (error, { attempts, reason }) => later("stop", error, attempts, reason)
    }))
    assert.deepStrictEqual(told, [
      "call",
      ["retry", broken, 1, 1],
      "call",
      ["retry", broken, 2, 1],
      "call",
      ["stop", broken, 3, "max-attempts"]
    ])
  })

  it("onRetry may read the response before it is let go", async () => {
    script = [status(503), status(200)]
    const bodies: Array<string> = []
    await retryPromise((attempt) => fetch(url, attempt), policy, {
      onRetry: async (error) => bodies.push(await (error as Response).text())
    })
    assert.deepStrictEqual(bodies, ["body of 503"])
  })

  for (const throws of [() => assert.fail("stop it"), () => Promise.reject(new Error("stop it"))]) {
    it("onRetry that throws or rejects ends the call", async () => {
      const f = failing(many(broken))
      assert.strictEqual(await messageOf(retryPromise(f, policy, { onRetry: throws })), "stop it")
      assert.strictEqual(f.calls(), 1)
    })
  }

  it("an observer of the context is notified too, first", async () => {
    const told: Array<string> = []
    const context = Context.make(RetryObserver.CurrentObserver, { onRetry: () => void told.push("context") })
    const options = { context, onRetry: () => told.push("option"), retries: 1 }
    await rejected(retryPromise(failing(many(broken)), policy, options))
    assert.deepStrictEqual(told, ["context", "option"])
  })

  it("make takes them for all its calls", async () => {
    const told: Array<number> = []
    const retry = RetryPromise.make(policy, {
      quota: { capacity: 100 },
      retries: 1,
      classify: () => true,
      onRetry: (_, info) => told.push(info.retry)
    })
    await rejected(retry(failing(many(plain))))
    await rejected(retry(failing(many(plain))))
    assert.deepStrictEqual(told, [1, 1])
  })

  it("make asks the classifier of its context where classify is silent", async () => {
    const context = Context.make(RetryClassifier.CurrentClassifier, () => Option.some(RetryInfo.transient))
    const f = failing(many(plain))
    await rejected(RetryPromise.make(policy, { context, classify: () => undefined })(f))
    assert.strictEqual(f.calls(), 3)
  })

  it("all calls with a policy share its quota, with options and without", async () => {
    const own = Backoff.fixed(1).pipe(
      RetryPolicy.maxAttempts(2),
      RetryPolicy.quotaGated({ cost: 250 })
    )
    const f = failing(many(broken))
    await rejected(retryPromise(f, own))
    await rejected(retryPromise(f, own, { onRetry: () => {} }))
    await rejected(retryPromise(f, own, { retries: 5 }))
    assert.strictEqual(f.calls(), 2 + 2 + 1)
  })
})

describe("examples/promises.ts", () => {
  it("getOrders retries a 503, and throws at the last", async () => {
    script = [status(503), status(200)]
    assert.strictEqual(await Promises.getOrders(url), "body of 200")
    script = [status(404)]
    assert.strictEqual(await messageOf(Promises.getOrders(url)), "HTTP 404")
  })

  it("getPatiently makes up to six calls, and says so", async () => {
    const failing = (errors: ReadonlyArray<Error>) => {
      const left = [...errors]
      return { get: async () => left.length === 0 ? "page" : Promise.reject(left.shift()) }
    }
    const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" })
    const lines: Array<string> = []
    const log = (line: string) => lines.push(line.replace(/in \S.* after/, "in .. after"))
    assert.strictEqual(await Promises.getPatiently(failing([reset, reset, reset]), "/", log), "page")
    assert.deepStrictEqual(lines, [1, 2, 3].map((retry) => `retry ${retry} in .. after ECONNRESET`))
    lines.length = 0
    await rejected(Promises.getPatiently(failing([new SyntaxError("no JSON")]), "/", log))
    assert.deepStrictEqual(lines, ["final after 1 attempts: SyntaxError"])
  })
})

describe("misuse is one clear line", () => {
  const f = () => 1
  const names = "context, retries, classify, onRetry, onStop"
  const table: ReadonlyArray<readonly [string, () => Promise<unknown>, string]> = [
    [
      "a promise in place of a function",
      () => retryPromise(Promise.reject(new Error("unhandled")) as any, policy),
      "retryPromise: f must be a function that is called for each attempt, such as () => fetch(url), got [object Promise]"
    ],
    [
      "no policy",
      () => (retryPromise as any)(f),
      "retryPromise: policy must be a RetryPolicy, such as awsStandard, got undefined"
    ],
    [
      "options in place of a policy",
      () => (retryPromise as any)(f, { retries: 3 }),
      "retryPromise: policy must be a RetryPolicy, such as awsStandard, got an object"
    ],
    [
      "an option of another library",
      () => retryPromise(f, policy, { onFailedAttempt: () => {} } as any),
      `retryPromise: option must be one of signal, ${names}, got "onFailedAttempt"`
    ],
    ["a number of retries", () => retryPromise(f, policy, 3 as any), "retryPromise: options must be an object, got 3"],
    [
      "retries below 0",
      () => retryPromise(f, policy, { retries: -1 }),
      "retryPromise: retries must be a whole number of at least 0, or Infinity, got -1"
    ],
    [
      "a callback that is none",
      () => retryPromise(f, policy, { onRetry: "log" as any }),
      "retryPromise: onRetry must be a function, got \"log\""
    ],
    [
      "an option for make, in a call",
      () => RetryPromise.make(policy)(f, { retries: 3 } as any),
      "retryPromise: option must be one of signal, got \"retries\""
    ]
  ]
  for (const [name, run, message] of table) {
    it(name, async () => assert.strictEqual(await messageOf(run()), message))
  }

  it("make throws", () => {
    assert.throws(
      () => RetryPromise.make(policy, { maxRetries: 3 } as any),
      `RetryPromise.make: option must be one of quota, limiter, ${names}, got "maxRetries"`
    )
  })
})
