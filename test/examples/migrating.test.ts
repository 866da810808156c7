import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import { ConfiguredRetryStrategy } from "@smithy/core/retry"
import asyncRetry from "async-retry"
import axios, { AxiosError, type AxiosInstance, type InternalAxiosRequestConfig } from "axios"
import axiosRetry, { exponentialDelay } from "axios-retry"
import {
  ConstantBackoff,
  ExponentialBackoff,
  fullJitterGenerator,
  halfJitterGenerator,
  handleAll,
  handleWhen,
  IterableBackoff,
  noJitterGenerator,
  retry
} from "cockatiel"
import { AwsModes, Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import { retryPromise } from "effect-retry/RetryPromise"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Schedule from "effect/Schedule"
import got from "got"
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import pRetry, { AbortError } from "p-retry"
import { afterEach, assert, beforeEach, describe, it, vi } from "vitest"
import * as Migrating from "../../examples/migrating.ts"
import { type Answer, busy, getItem, handlerOf, invalid, settings, throttle } from "../utils/awsSdk.ts"
import { budget } from "../utils/budget.ts"

const { NotFound } = Migrating

type Send = () => Promise<string>

interface Seen {
  /** Milliseconds from each send to the next. */
  readonly delays: ReadonlyArray<number>
  readonly sends: number
  readonly end: unknown
}

/** Randomness that always gives the same number. */
const chance = (value: number) => vi.spyOn(Math, "random").mockReturnValue(value)

/** Runs a program to its end, in virtual time. `mark` notes a send. */
const watched = async (run: (mark: () => void) => Promise<unknown>): Promise<Seen> => {
  const times: Array<number> = []
  const ended = run(() => times.push(Date.now())).then((value) => value, (error: unknown) => error)
  let isOver = false
  void ended.then(() => (isOver = true))
  while (!isOver) await vi.advanceTimersToNextTimerAsync()
  return { delays: times.slice(1).map((time, i) => time - times[i]!), sends: times.length, end: await ended }
}

/** The same with a function that fails with each of the errors in turn, then forever with the last. */
const failing = (errors: ReadonlyArray<unknown>, run: (send: Send) => Promise<unknown>): Promise<Seen> =>
  watched((mark) => {
    let sends = 0
    return run(async () => {
      mark()
      throw errors[Math.min(sends++, errors.length - 1)]
    })
  })

/** Sends and end are the same, and so are delays, but for the rounding: ours is up to the next millisecond. */
const same = (ours: Seen, theirs: Seen, rounding = 0) => {
  assert.strictEqual(ours.sends, theirs.sends)
  assert.strictEqual(ours.end, theirs.end)
  close(ours.delays, theirs.delays, rounding)
}

const close = (ours: ReadonlyArray<number>, theirs: ReadonlyArray<number>, rounding: number) => {
  assert.strictEqual(ours.length, theirs.length)
  ours.forEach((delay, i) => assert.approximately(delay, theirs[i]!, rounding, `${ours} and ${theirs}`))
}

const reason = new Error("no longer wanted")

/** Aborts a call after 100 ms: how often it sent, how it ended, and when. */
const aborted = async (run: (send: Send, signal: AbortSignal) => Promise<unknown>) => {
  const controller = new AbortController()
  setTimeout(() => controller.abort(reason), 100)
  const start = Date.now()
  const { end, sends } = await failing([failed], (send) => run(send, controller.signal))
  return [sends, end, Date.now() - start]
}

/** Numbers that look random and are always the same. */
const seeded = (seed: number) => {
  let state = seed
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32
  const whole = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  return { next, whole, one: <A>(of: ReadonlyArray<A>): A => of[whole(0, of.length - 1)]! }
}

const seeds = Array.from({ length: budget(60, 20) }, (_, seed) => seed)

const failed = new Error("failed")

beforeEach(() => {
  vi.useFakeTimers()
  monotonic()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const { hrtime } = process

/** The clock of deadlines, which fake timers leave alone. */
const monotonic = () => vi.spyOn(hrtime, "bigint").mockImplementation(() => BigInt(Date.now()) * 1_000_000n)

const timeoutsOf = (seed: number) => {
  const { next, one, whole } = seeded(seed)
  chance(next())
  return {
    retries: whole(0, 8),
    minTimeout: whole(1, 3000),
    factor: one([1, 1.5, 2, 3]),
    maxTimeout: one([100, 5000, 60_000, Infinity]),
    randomize: one([true, false])
  }
}

describe("p-retry", () => {
  const theirs = (send: Send, log: (line: string) => void) =>
    pRetry(send, {
      retries: 5,
      minTimeout: 1000,
      factor: 2,
      maxTimeout: 10_000,
      shouldRetry: ({ error }) => !(error instanceof NotFound),
      onFailedAttempt: ({ error, retriesConsumed, retriesLeft }) => {
        if (retriesLeft === 0) return
        log(`retry ${retriesConsumed + 1} after ${error}`)
      }
    })

  it("the code of the page sends, waits, logs and fails alike", async () => {
    const lines: [Array<string>, Array<string>] = [[], []]
    const ours = await failing([failed], (send) => Migrating.getPage(send, (line) => lines[0].push(line)))
    same(ours, await failing([failed], (send) => theirs(send, (line) => lines[1].push(line))))
    assert.deepStrictEqual(ours.delays, [1000, 2000, 4000, 8000, 10_000])
    assert.deepStrictEqual(lines[0], lines[1])
    assert.strictEqual(lines[0].length, 5)
  })

  it("an error that is final ends both immediately", async () => {
    const final = new NotFound()
    const ours = await failing([failed, final], (send) => Migrating.getPage(send, () => {}))
    same(ours, await failing([failed, final], (send) => theirs(send, () => {})))
    same(ours, await failing([failed, new AbortError(final)], (send) => pRetry(send)))
  })

  it("an error that is final is logged by it, as if a retry followed; `onRetry` is not called", async () => {
    const lines: [Array<string>, Array<string>] = [[], []]
    await failing([new NotFound("gone")], (send) => Migrating.getPage(send, (line) => lines[0].push(line)))
    await failing([new NotFound("gone")], (send) => theirs(send, (line) => lines[1].push(line)))
    assert.deepStrictEqual(lines, [[], ["retry 1 after Error: gone"]])
  })

  it.each(seeds)("law: any settings, seed %i", async (seed) => {
    const settings = timeoutsOf(seed)
    const { maxTimeout, ...others } = settings
    same(
      await failing([failed], (send) => retryPromise(send, Migrating.fromTimeouts(settings))),
      await failing([failed], (send) => pRetry(send, { ...others, maxTimeout })),
      1
    )
  })

  it("an abort ends both immediately, with its reason", async () => {
    assert.deepStrictEqual(await aborted((send, signal) => pRetry(send, { signal })), [1, reason, 100])
    assert.deepStrictEqual(await aborted((send, signal) => Migrating.getPage(send, () => {}, signal)), [1, reason, 100])
  })

  it("a total time: it shortens the last delay, a deadline skips the retry", async () => {
    const ours = await failing(
      [failed],
      (send) => retryPromise(send, Backoff.exponential(1000).pipe(RetryPolicy.deadline(5000)))
    )
    const its = await failing([failed], (send) => pRetry(send, { maxRetryTime: 5000 }))
    assert.deepStrictEqual([ours.delays, its.delays], [[1000, 2000], [1000, 2000, 2000]])
  })

  it("a TypeError and a value that is not an Error end it immediately; a policy without `whileRetryable` retries both", async () => {
    const retries = (error: unknown) =>
      failing([error], (send) => retryPromise(send, RetryPolicy.maxAttempts(Backoff.fixed(1), 3)))
    const bug = new TypeError("x is not a function")
    assert.strictEqual((await failing([bug], (send) => pRetry(send, { retries: 2 }))).sends, 1)
    assert.strictEqual((await retries(bug)).sends, 3)
    const text = await failing(["text"], (send) => pRetry(send, { retries: 2 }))
    assert.strictEqual(text.sends, 1)
    assert.instanceOf(text.end, TypeError)
    const ours = await retries("text")
    assert.deepStrictEqual([ours.sends, ours.end], [3, "text"])
  })
})

describe("async-retry", () => {
  const theirs = (send: Send, log: (line: string) => void) =>
    asyncRetry(async (bail) => {
      try {
        return await send()
      } catch (error) {
        if (!(error instanceof NotFound)) throw error
        return bail(error)
      }
    }, {
      retries: 2,
      minTimeout: 500,
      maxTimeout: 30_000,
      onRetry: (error, retry) => log(`retry ${retry} after ${error}`)
    })

  it.each([0, 0.3, 0.999])("the code of the page sends, waits, logs and fails alike: chance %d", async (random) => {
    chance(random)
    const lines: [Array<string>, Array<string>] = [[], []]
    const ours = await failing([failed], (send) => Migrating.getUser(send, (line) => lines[0].push(line)))
    same(ours, await failing([failed], (send) => theirs(send, (line) => lines[1].push(line))), 1)
    assert.strictEqual(ours.sends, 3)
    assert.deepStrictEqual(lines[0], lines[1])
  })

  it("an error that is final ends both immediately", async () => {
    const ours = await failing([failed, new NotFound()], (send) => Migrating.getUser(send, () => {}))
    const its = await failing([failed, new NotFound()], (send) => theirs(send, () => {}))
    assert.deepStrictEqual([ours.sends, its.sends], [2, 2])
    assert.instanceOf(ours.end, NotFound)
    assert.instanceOf(its.end, NotFound)
  })

  it.each(seeds)("law: any settings, seed %i", async (seed) => {
    const settings = timeoutsOf(seed)
    // It throws for a `maxTimeout` below `minTimeout`.
    const maxTimeout = Math.max(settings.maxTimeout, settings.minTimeout)
    same(
      await failing([failed], (send) => retryPromise(send, Migrating.fromTimeouts({ ...settings, maxTimeout }))),
      await failing([failed], (send) => asyncRetry(send, { ...settings, maxTimeout })),
      1
    )
  })

  it("what its function throws after `bail` is retried, and no observer is notified", async () => {
    let sends = 0
    const call = asyncRetry(async (bail) => {
      sends++
      bail(failed)
      throw new Error("and more")
    }, { retries: 2 }).catch((error: unknown) => error)
    assert.strictEqual(await call, failed)
    await vi.runAllTimersAsync()
    assert.strictEqual(sends, 3)
  })

  it("its error is the last of the most frequent message; ours is that of the last send", async () => {
    const errors = [new Error("busy"), new Error("busy"), new Error("gone")]
    const its = await failing(errors, (send) => theirs(send, () => {}))
    const ours = await failing(errors, (send) => Migrating.getUser(send, () => {}))
    assert.deepStrictEqual([its.end, ours.end].map((error) => errors.indexOf(error as Error)), [1, 2])
  })
})

describe("cockatiel", () => {
  const theirs = (log: (line: string) => void) => {
    const handled = handleWhen((error) => !(error instanceof NotFound))
    const policy = retry(handled, {
      maxAttempts: 3,
      backoff: new ExponentialBackoff({
        initialDelay: 200,
        maxDelay: 5000,
        generator: fullJitterGenerator
      })
    })
    policy.onGiveUp((reason) => {
      const cause = "error" in reason ? reason.error : reason.value
      log(`gave up: ${cause}`)
    })
    return policy
  }

  it.each([0, 0.3, 0.999])("the code of the page sends, waits, logs and fails alike: chance %d", async (random) => {
    chance(random)
    const lines: [Array<string>, Array<string>] = [[], []]
    const ours = await failing([failed], (send) => Migrating.getOrder(send, (line) => lines[0].push(line)))
    same(ours, await failing([failed], (send) => theirs((line) => lines[1].push(line)).execute(send)), 1)
    assert.strictEqual(ours.sends, 4)
    assert.deepStrictEqual(lines, [["gave up: Error: failed"], ["gave up: Error: failed"]])
  })

  it("an error that is final ends both immediately; only ours reports it", async () => {
    const lines: [Array<string>, Array<string>] = [[], []]
    const final = new NotFound("gone")
    const ours = await failing([final], (send) => Migrating.getOrder(send, (line) => lines[0].push(line)))
    same(ours, await failing([final], (send) => theirs((line) => lines[1].push(line)).execute(send)))
    assert.deepStrictEqual(lines, [["gave up: Error: gone"], []])
  })

  it.each(seeds)("law: any exponential backoff, seed %i", async (seed) => {
    const { next, one, whole } = seeded(seed)
    chance(next())
    const [initialDelay, maxDelay, maxAttempts] = [whole(1, 1000), whole(1000, 20_000), whole(0, 8)]
    const [generator, jitter] = one(
      [
        [noJitterGenerator, "none"],
        [fullJitterGenerator, "full"],
        [halfJitterGenerator, "equal"]
      ] as const
    )
    const backoff = new ExponentialBackoff({ initialDelay, maxDelay, generator })
    const policy = Backoff.exponential(initialDelay, 2, { cap: maxDelay, jitter }).pipe(
      RetryPolicy.maxAttempts(maxAttempts + 1)
    )
    same(
      await failing([failed], (send) => retryPromise(send, policy)),
      await failing([failed], (send) => retry(handleAll, { maxAttempts, backoff }).execute(send)),
      1
    )
  })

  it.each(seeds.slice(0, 20))("law: the same delay always, and a list of delays, seed %i", async (seed) => {
    const { whole } = seeded(seed)
    const delays = Array.from({ length: whole(1, 4) }, () => whole(1, 5000))
    const maxAttempts = whole(1, 6)
    for (
      const [backoff, policy] of [
        [new ConstantBackoff(delays[0]!), Backoff.fixed(delays[0]!)],
        [new IterableBackoff(delays), Migrating.fromList(delays)]
      ] as const
    ) {
      same(
        await failing([failed], (send) => retryPromise(send, RetryPolicy.maxAttempts(policy, maxAttempts + 1))),
        await failing([failed], (send) => retry(handleAll, { maxAttempts, backoff }).execute(send))
      )
    }
  })

  it("its default jitter has the medians of full jitter from the third retry on; before, 0.9 of the delay, then 0.57", () => {
    const { next } = seeded(1)
    vi.spyOn(Math, "random").mockImplementation(next)
    const backoff = new ExponentialBackoff({ initialDelay: 100 })
    const shares = Array.from({ length: 20_000 }, () => {
      let delay = backoff.next()
      return Array.from({ length: 5 }, (_, n) => {
        const share = delay.duration / (100 * 2 ** n)
        delay = delay.next(undefined as never)
        return share
      })
    })
    const medians = Array.from({ length: 5 }, (_, n) => shares.map((of) => of[n]!).sort((a, b) => a - b)[10_000]!)
    close(medians, [0.9, 0.57, 0.5, 0.5, 0.5], 0.02)
  })

  it("aborted in the backoff, it keeps waiting and sends again; ours ends immediately", async () => {
    const wait = { maxAttempts: 3, backoff: new ConstantBackoff(1000) }
    assert.deepStrictEqual(await aborted((send, signal) => retry(handleAll, wait).execute(send, signal)), [
      2,
      failed,
      1000
    ])
    const fixed = Backoff.fixed(1000)
    assert.deepStrictEqual(await aborted((send, signal) => retryPromise(send, fixed, { signal })), [1, reason, 100])
  })
})

describe("HttpClient.retryTransient", () => {
  const theirs = <E, R>(client: HttpClient.HttpClient.With<E, R>) =>
    client.pipe(
      HttpClient.retryTransient({
        times: 3,
        schedule: Schedule.exponential("200 millis")
      })
    )

  type Answer = number | "broken"

  const answering = (
    answers: ReadonlyArray<Answer>,
    retrying: (client: HttpClient.HttpClient) => HttpClient.HttpClient,
    method: "get" | "post" = "get",
    headers: Record<string, string> = {}
  ) =>
    watched((mark) => {
      let sends = 0
      const client = retrying(HttpClient.make((request) => {
        mark()
        const answer = answers[Math.min(sends++, answers.length - 1)]!
        const cause = Object.assign(new Error("broken"), { code: "ECONNRESET" })
        return answer === "broken"
          ? Effect.fail(
            new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })
          )
          : Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status: answer, headers })))
      }))
      const call = Effect.match(client[method]("https://shop.example"), {
        onSuccess: ({ status }) => status,
        onFailure: (error) => error.reason._tag
      })
      return Effect.runPromise(call)
    })

  const statuses: ReadonlyArray<Answer> = [408, 429, 500, 502, 503, 504, 200, 404, "broken"]

  it.each(statuses)("a GET that is answered with %s is sent, waits and ends alike", async (answer) => {
    same(await answering([answer], Migrating.patient), await answering([answer], theirs))
  })

  it.each([425, 520])("a GET that is answered with %s is sent once there, and four times here", async (answer) => {
    const [ours, its] = [await answering([answer], Migrating.patient), await answering([answer], theirs)]
    assert.deepStrictEqual([ours.sends, its.sends], [4, 1])
  })

  it("responses and errors have a count each there, which multiply; here there is one", async () => {
    const mixed = ["broken", 503, 503, 503] as const
    const endless = Array.from({ length: 5 }, () => mixed).flat()
    const [ours, its] = [await answering(endless, Migrating.patient), await answering(endless, theirs)]
    assert.deepStrictEqual([ours.sends, its.sends], [4, 13])
  })

  it("a POST that may have been processed is sent again there, and here if marked or with a key", async () => {
    const [ours, its] = [await answering([500], Migrating.patient, "post"), await answering([500], theirs, "post")]
    assert.deepStrictEqual([ours.sends, its.sends], [1, 4])
  })

  it("both wait as long as the server asks: here up to a tenth longer, and a minute at most", async () => {
    chance(0.5)
    const asked = (seconds: string, retrying: (client: HttpClient.HttpClient) => HttpClient.HttpClient) =>
      answering([503], retrying, "get", { "retry-after": seconds }).then(({ delays }) => delays[0])
    assert.deepStrictEqual([await asked("10", Migrating.patient), await asked("10", theirs)], [10_500, 10_000])
    assert.deepStrictEqual([await asked("90", Migrating.patient), await asked("90", theirs)], [60_000, 90_000])
  })
})

describe("Effect.retry", () => {
  const theirs = <A, R>(send: Effect.Effect<A, Migrating.LoadError, R>) =>
    Effect.retry(send, {
      times: 4,
      while: (error) => error.busy,
      schedule: Schedule.exponential("100 millis")
    })

  const sending = <E>(
    errors: ReadonlyArray<E>,
    retrying: (send: Effect.Effect<never, E>) => Effect.Effect<unknown, E>
  ) =>
    failing(errors, (send) =>
      Effect.runPromise(
        Effect.flip(retrying(Effect.tryPromise({ try: send, catch: (error) => error as E }) as Effect.Effect<never, E>))
      ))

  it("the code of the page sends, waits and fails alike", async () => {
    const [later, never] = [{ busy: true }, { busy: false }]
    for (const errors of [[later], [later, later, never], [never]]) {
      same(await sending(errors, Migrating.load), await sending(errors, theirs))
    }
  })

  it.each(seeds)("law: schedules, seed %i", async (seed) => {
    const { next, one, whole } = seeded(seed)
    chance(next())
    const [base, factor, times, cap] = [whole(1, 2000), one([1, 2, 3]), whole(0, 6), whole(2000, 9000)]
    const pairs: ReadonlyArray<readonly [Schedule.Schedule<unknown>, RetryPolicy.RetryPolicy]> = [
      [Schedule.exponential(base, factor), Backoff.exponential(base, factor)],
      [Schedule.fibonacci(base), Backoff.fibonacci(base)],
      [Schedule.spaced(base), Backoff.fixed(base)],
      [Schedule.jittered(Schedule.spaced(base)), Backoff.fixed(base, { jitter: { proportional: 0.2 } })],
      [
        Schedule.min([Schedule.exponential(base), Schedule.spaced(cap)]),
        Backoff.exponential(base, 2, { cap })
      ]
    ]
    for (const [schedule, policy] of pairs) {
      same(
        await sending([failed], (send) => withRetry(send, RetryPolicy.maxAttempts(policy, times + 1))),
        await sending([failed], (send) => Effect.retry(send, Schedule.upTo(schedule, { times }))),
        1
      )
    }
    same(
      await sending(
        [failed],
        (send) => withRetry(send, RetryPolicy.maxAttempts(Backoff.fixed(0), times + 1))
      ),
      await sending([failed], (send) => Effect.retry(send, Schedule.recurs(times)))
    )
  })

  it("a duration: the schedule stops after it has passed, the policy before a retry would begin later", async () => {
    const theirs = Schedule.upTo(Schedule.spaced(1000), { duration: 2500 })
    const ours = RetryPolicy.deadline(Backoff.fixed(1000), 2500)
    const seen = [
      await sending([failed], (send) => withRetry(send, ours)),
      await sending([failed], (send) => Effect.retry(send, theirs))
    ]
    assert.deepStrictEqual(seen.map(({ delays }) => delays.length), [2, 3])
  })
})

describe("the AWS SDK", () => {
  const theirs = (config: DynamoDBClientConfig) =>
    new DynamoDBClient({
      ...config,
      maxAttempts: 6
    })

  const theirOwnDelays = (config: DynamoDBClientConfig) =>
    new DynamoDBClient({
      ...config,
      retryStrategy: new ConfiguredRetryStrategy(
        4,
        (attempt) => 100 + attempt * 1000
      )
    })

  const answered = (
    answers: ReadonlyArray<Answer>,
    run: (config: DynamoDBClientConfig) => Promise<unknown>
  ) =>
    watched((mark) => {
      const { handler } = handlerOf(answers)
      const handle = (...given: [any, any]) => {
        mark()
        return handler.handle(...given)
      }
      return run({ ...settings, requestHandler: { handle } as any }).then(() => "ok", (error: Error) => error.name)
    })

  const run = <A, E>(effect: Effect.Effect<A, E, RetryQuota.RetryQuota>) =>
    Effect.runPromise(Effect.provide(effect, RetryQuota.layer()))

  const kinds = [["a throttle", throttle], ["a failure", busy], ["bad input", invalid]] as const

  for (const [name, answer] of kinds) {
    it.each([0.1, 0.5, 0.999])(`maxAttempts, ${name}: chance %d`, async (random) => {
      chance(random)
      same(
        await answered([answer], (config) => run(Migrating.getItem(new DynamoDBClient(config), "1"))),
        await answered([answer], (config) => theirs(config).send(getItem())),
        1
      )
    })
  }

  it.each(seeds.slice(0, 20))("law: any maxAttempts, seed %i", async (seed) => {
    const { next, one, whole } = seeded(seed)
    chance(next())
    const maxAttempts = whole(1, 9)
    const answers = Array.from({ length: 9 }, () => one([throttle, busy]))
    const policy = AwsModes.standard2026({ maxAttempts, base: "25 millis" })
    same(
      await answered(answers, (config) => run(AwsSdk.sendWithRetry(new DynamoDBClient(config), getItem(), policy))),
      await answered(answers, (config) => new DynamoDBClient({ ...config, maxAttempts }).send(getItem())),
      1
    )
  })

  it("custom delays, as effects and in the client's own loop", async () => {
    const its = await answered([busy], (config) => theirOwnDelays(config).send(getItem()))
    assert.deepStrictEqual(its.delays, [1100, 2100, 3100])
    const { configured } = Migrating
    same(
      await answered([busy], (config) => run(AwsSdk.sendWithRetry(new DynamoDBClient(config), getItem(), configured))),
      its
    )
    same(
      await answered([busy], (config) =>
        run(Effect.flatMap(
          Migrating.makeClient(config),
          (client) =>
            Effect.callback<unknown, unknown>((resume) => {
              client.send(getItem()).then(
                (answer) => resume(Effect.succeed(answer)),
                (error: unknown) => resume(Effect.fail(error))
              )
            })
        ))),
      its
    )
  })
})

describe("got", () => {
  const theirs = (url: string) =>
    got(url, {
      retry: { limit: 2, backoffLimit: 10_000, maxRetryAfter: 60_000 }
    }).text()

  let server: http.Server
  let url: string
  let headers: Record<string, string> = {}
  let status = 503
  let sends = 0

  beforeEach(async () => {
    vi.useRealTimers()
    headers = {}
    status = 503
    sends = 0
    server = http.createServer((_, response) => {
      sends++
      response.writeHead(status, headers).end()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterEach(() => new Promise((resolve) => server.close(resolve)))

  /** The delays that got computes; it waits a millisecond. */
  const theirDelays = async (retry: object) => {
    const delays: Array<number> = []
    const calculateDelay = ({ computedValue }: { readonly computedValue: number }) => {
      delays.push(computedValue)
      return computedValue && 1
    }
    const error = await got(url, { retry: { ...retry, calculateDelay } }).catch((error: Error) => error.name)
    assert.strictEqual(error, "HTTPError")
    assert.strictEqual(delays.pop(), 0)
    return delays
  }

  /** The delays that the policy takes after the same answer. */
  const ours = async (policy: RetryPolicy.RetryPolicy) => {
    vi.useFakeTimers()
    return (await failing([{ status, headers }], (send) => retryPromise(send, policy))).delays
  }

  it.each(seeds.slice(0, 12))("law: any limits, seed %i", async (seed) => {
    const { next, whole } = seeded(seed)
    chance(next())
    const [limit, backoffLimit] = [whole(0, 5), whole(500, 9000)]
    const delays = await theirDelays({ limit, backoffLimit })
    assert.strictEqual(sends, limit + 1)
    close(await ours(Migrating.fromGot({ limit, backoffLimit })), delays, 1)
  })

  it.each(["3", "90"])("waits as long as the server asks, or not at all: %s s", async (seconds) => {
    chance(0)
    headers = { "retry-after": seconds }
    const delays = await theirDelays({ limit: 2, backoffLimit: 10_000, maxRetryAfter: 60_000 })
    assert.deepStrictEqual(delays, seconds === "3" ? [3000, 3000] : [])
    assert.deepStrictEqual(await ours(Migrating.fromGot({ limit: 2, backoffLimit: 10_000 })), delays)
  })

  it.each([[413, 2, 0], [425, 0, 2], [520, 0, 2]])(
    "after a %i it retries %i times, ours %i",
    async (answer, its, own) => {
      status = answer
      headers = { "retry-after": "1" }
      assert.strictEqual((await theirDelays({ limit: 2, maxRetryAfter: 60_000 })).length, its)
      assert.strictEqual((await ours(Migrating.fromGot({ limit: 2, backoffLimit: "10 seconds" }))).length, own)
    }
  )

  it("the code of the page sends as often, and fails with the error of got", async () => {
    const sleep = globalThis.setTimeout
    vi.spyOn(globalThis, "setTimeout").mockImplementation(
      ((f: () => void, millis: number) => sleep(f, millis > 900 && millis < 10_200 ? 1 : millis)) as typeof setTimeout
    )
    for (const get of [Migrating.getText, theirs]) {
      sends = 0
      const error = await get(url).catch((error: Error) => error.name)
      assert.deepStrictEqual([error, sends], ["HTTPError", 3])
    }
  })
})

describe("axios-retry", () => {
  const theirs = (client: AxiosInstance, url: string) => {
    axiosRetry(client, {
      retries: 3,
      retryDelay: exponentialDelay
    })
    return client.get(url).then(({ data }) => data)
  }

  interface Served {
    readonly status?: number
    readonly headers?: Record<string, string>
    readonly code?: string
  }

  /** The sends of a client that always gets this response, and what can be compared of its error. */
  const seen = (served: Served, run: (client: AxiosInstance) => Promise<unknown>) =>
    watched((mark) => {
      const adapter = (config: InternalAxiosRequestConfig) => {
        mark()
        const { code = AxiosError.ERR_BAD_RESPONSE, headers = {}, status } = served
        if (status === 200) return Promise.resolve({ data: "data", status, statusText: "", headers, config })
        const response = status === undefined ? undefined : { data: "", status, statusText: "", headers, config }
        return Promise.reject(new AxiosError("failed", code, config, undefined, response))
      }
      return run(axios.create({ adapter })).catch((error: AxiosError) =>
        [error.message, error.code, error.status].join()
      )
    })

  it.each([0, 0.3, 0.999])("the code of the page sends, waits and fails alike: chance %d", async (random) => {
    chance(random)
    const ours = await seen({ status: 503 }, (client) => Migrating.getData(client, "/"))
    same(ours, await seen({ status: 503 }, (client) => theirs(client, "/")), 1)
    assert.strictEqual(ours.sends, 4)
  })

  it.each<[string, Served, number]>([
    ["a success", { status: 200 }, 1],
    ["500", { status: 500 }, 4],
    ["429", { status: 429 }, 4],
    ["429 with a hint", { status: 429, headers: { "retry-after": "3" } }, 4],
    ["404", { status: 404 }, 1],
    ["a connection that broke", { code: "ECONNRESET" }, 4],
    ["a name that is not found", { code: "ENOTFOUND" }, 4]
  ])("%s", async (_, served, sends) => {
    chance(0.5)
    const ours = await seen(served, (client) => Migrating.getData(client, "/"))
    same(ours, await seen(served, (client) => theirs(client, "/")), 1)
    assert.strictEqual(ours.sends, sends)
  })

  it("a timeout of axios is retried by ours alone", async () => {
    const timeout = { code: "ECONNABORTED" }
    const ours = await seen(timeout, (client) => Migrating.getData(client, "/"))
    const its = await seen(timeout, (client) => theirs(client, "/"))
    assert.deepStrictEqual([ours.sends, its.sends], [4, 1])
  })

  it.each(seeds)("law: any factor and number of retries, seed %i", async (seed) => {
    const { next, whole } = seeded(seed)
    chance(next())
    const [delayFactor, retries] = [whole(1, 1000), whole(0, 6)]
    const retryDelay = (count: number, error: AxiosError) => exponentialDelay(count, error, delayFactor)
    const policy = Migrating.fromAxiosRetry({ delayFactor, retries })
    same(
      await seen({ status: 503 }, (client) => retryPromise(() => client.get("/"), policy)),
      await seen({ status: 503 }, (client) => {
        axiosRetry(client, { retries, retryDelay })
        return client.get("/")
      }),
      1
    )
  })

  it("ours sends no POST again that may have run; theirs after a connection that broke", async () => {
    const post = { code: "ECONNRESET" }
    const theirs = await seen(post, (client) => {
      axiosRetry(client, { retries: 3 })
      return client.post("/")
    })
    assert.strictEqual(theirs.sends, 4)
    const policy = Migrating.fromAxiosRetry({ retries: 3 })
    const ours = await seen(post, (client) => retryPromise(() => client.post("/"), policy))
    assert.strictEqual(ours.sends, 1)
  })
})

/** The delays are those of the published formulas, for all kinds of settings and random numbers. */
describe("settings of other platforms", () => {
  const delaysOf = async (policy: RetryPolicy.RetryPolicy) =>
    (await failing([failed], (send) => retryPromise(send, policy))).delays

  // Polly 8, RetryHelper.GetRetryDelayCore without jitter.
  const polly = {
    Constant: (delay: number) => delay,
    Linear: (delay: number, attempt: number) => (attempt + 1) * delay,
    Exponential: (delay: number, attempt: number) => 2 ** attempt * delay
  }

  it.each(seeds)("Polly, seed %i", async (seed) => {
    const { one, whole } = seeded(seed)
    const [delay, maxDelay, maxRetryAttempts] = [whole(1, 3000), whole(3000, 20_000), whole(1, 8)]
    const backoffType = one(["Constant", "Linear", "Exponential"] as const)
    close(
      await delaysOf(Migrating.fromPolly({ maxRetryAttempts, delay, backoffType, maxDelay })),
      Array.from({ length: maxRetryAttempts }, (_, attempt) => Math.min(maxDelay, polly[backoffType](delay, attempt))),
      0
    )
  })

  it.each(seeds)("resilience4j, seed %i", async (seed) => {
    const { next, whole } = seeded(seed)
    const random = next()
    chance(random)
    const [initialInterval, multiplier, maxAttempts, randomizationFactor] = [
      whole(1, 1000),
      1 + next(),
      whole(1, 8),
      next()
    ]
    // IntervalFunction 2.x: between (1 - factor) and (1 + factor) times the interval.
    const interval = (retry: number) =>
      initialInterval * multiplier ** retry * (1 - randomizationFactor + random * 2 * randomizationFactor)
    close(
      await delaysOf(
        Migrating.fromResilience4j({ maxAttempts, initialInterval, multiplier, randomizationFactor })
      ),
      Array.from({ length: maxAttempts - 1 }, (_, retry) => interval(retry)),
      1
    )
  })
})

describe("docs/migrating.md", () => {
  const read = (path: string) => fs.readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

  it("shows the code of the others that ran here", () => {
    const ran = read("test/examples/migrating.test.ts")
    const blocks = Array.from(read("docs/migrating.md").matchAll(/^```js\n([^]*?)^```$/gm), ([, code]) => code!)
    assert.isAtLeast(blocks.length, 5)
    for (const code of blocks) assert.include(ran, code)
  })
})
