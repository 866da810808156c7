import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { HttpResponse } from "@smithy/core/protocols"
import { ExponentialBackoff, handleAll, retry } from "cockatiel"
import { awsStandard, awsStandard2026, Hedge, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as CoolDown from "effect-retry/CoolDown"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import { Readable } from "node:stream"
import pRetry from "p-retry"
import { afterEach, assert, beforeEach, it, vi } from "vitest"
import { getItem, settings as sdk } from "../utils/awsSdk.ts"

/** One send. It fails with what a client throws for a response: an error with a status and headers. */
type Send = () => Promise<string>

class HttpError extends Error {
  readonly status: number
  readonly headers: Record<string, string>
  constructor(status: number, headers: Record<string, string>) {
    super(`status ${status}`)
    this.status = status
    this.headers = headers
  }
}

/** Wraps calls of one resource: three attempts each, everything else as the library has it. */
type Make = () => Promise<(send: Send) => Promise<unknown>>

interface Library {
  readonly name: string
  readonly make: Make
  /** Three layers that retry the same send. Default: `make` three times, one around the other. */
  readonly nested?: Make
}

const threeLayers = "Sends where three layers retry the same call"

/** A retry around a send, with the layers that it needs. */
const ours = <R>(
  wrap: (send: Effect.Effect<string, unknown>) => Effect.Effect<string, unknown, R>,
  layer: Layer.Layer<R>
): Make =>
async () => {
  const scope = await Effect.runPromise(Scope.make())
  const services = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  return (send: Send) => Effect.runPromise(Effect.provideContext(wrap(Effect.tryPromise(send)), services))
}

const thrice = <A>(f: (a: A) => A) => (a: A): A => f(f(f(a)))

type Retried = Effect.Effect<string, unknown, RetryQuota.RetryQuota>

const quota = RetryQuota.layer()

/** What the cells of this library run, with a quota: today's mode of the AWS SDK. */
const retried = withRetry(awsStandard2026)

/** What it offers beyond that: how the cell names it, and what runs. */
const settings: Record<string, readonly [name: string, make: Make]> = {
  "Sends for 1,000 calls in a row to a service that is down": [
    "`awsStandard`",
    ours(withRetry(awsStandard), quota)
  ],
  "Sends of 100 more callers before `Retry-After` is over": [
    "`CoolDown`",
    ours(retried, Layer.merge(quota, CoolDown.layer()))
  ],
  [threeLayers]: [
    "`outermostOnly`",
    ours(thrice<Retried>(withRetry(RetryPolicy.outermostOnly(awsStandard2026))), quota)
  ],
  "99.5th percentile latency, where one send in 100 takes 1 s and the others 10 ms": [
    "`Hedge`",
    ours(
      (send) => send.pipe(Hedge.hedged({ after: Hedge.quantile(0.98, { first: "1 second" }) }), retried),
      Layer.merge(quota, Hedge.layer())
    )
  ]
}

const libraries: ReadonlyArray<Library> = [
  { name: "effect-retry", make: ours(retried, quota), nested: ours(thrice<Retried>(retried), quota) },
  {
    name: "`Effect.retry`",
    make: async () => (send) => Effect.runPromise(Effect.retry(Effect.tryPromise(send), { times: 2 }))
  },
  {
    name: "AWS SDK v3",
    make: async () => {
      const client = new DynamoDBClient({
        ...sdk,
        retryMode: "standard",
        maxAttempts: 3,
        requestHandler: { handle: async ({ send }: any) => send() } as any
      })
      client.middlewareStack.add(
        (next, context: any) => (args: any) => next({ ...args, request: { ...args.request, send: context.send } }),
        { step: "finalizeRequest", priority: "low" }
      )
      return (send) => {
        const command = getItem()
        command.middlewareStack.add((next, context: any) => {
          context.send = async () => {
            const answer = await send().then(() => ({ status: 200, headers: {} }), (error: unknown) => {
              if (error instanceof HttpError) return error
              throw error
            })
            const body = Readable.from([Buffer.from("{}")])
            return { response: new HttpResponse({ statusCode: answer.status, headers: answer.headers, body }) }
          }
          return next
        }, { step: "initialize" })
        return client.send(command)
      }
    }
  },
  {
    name: "cockatiel",
    make: async () => {
      const policy = retry(handleAll, { maxAttempts: 2, backoff: new ExponentialBackoff() })
      return (send) => policy.execute(send)
    }
  },
  {
    name: "p-retry",
    make: async () => (send) => pRetry(send, { retries: 2 })
  }
]

/** Runs a program to its end, in virtual time. */
const run = async <A>(program: Promise<A>): Promise<A> => {
  let isOver = false
  const end = () => {
    isOver = true
  }
  program.then(end, end)
  while (!isOver) await vi.advanceTimersToNextTimerAsync()
  return program
}

const ignore = () => {}

/** Of which the latency is measured, after a third of them. */
const calls = 300

/** What is measured: a question, and its answer for a library. */
const rows: Record<string, (make: Make) => Promise<string>> = {
  "Sends for 1,000 calls in a row to a service that is down": async (make) => {
    const call = await make()
    let sends = 0
    for (let i = 0; i < 1000; i++) {
      await run(
        call(async () => {
          sends++
          throw new HttpError(503, {})
        }).catch(ignore)
      )
    }
    return sends.toLocaleString("en-US")
  },
  "Sends of a call with a bug (it throws a `TypeError`)": async (make) => {
    const call = await make()
    let sends = 0
    await run(
      call(async () => {
        sends++
        throw new TypeError("x is not a function")
      }).catch(ignore)
    )
    return String(sends)
  },
  "Waits for `Retry-After: 3`": async (make) => {
    const call = await make()
    const times: Array<number> = []
    await run(
      call(async () => {
        times.push(Date.now())
        if (times.length === 1) throw new HttpError(503, { "retry-after": "3" })
        return "ok"
      }).catch(ignore)
    )
    return times[1]! - times[0]! >= 3000 ? "yes" : "no"
  },
  "Sends of 100 more callers before `Retry-After` is over": async (make) => {
    const call = await make()
    let sends = 0
    const start = Date.now()
    const send = async () => {
      if (Date.now() - start < 3000) throw new HttpError(503, { "retry-after": "3" })
      return "ok"
    }
    const counted = () => {
      if (Date.now() - start < 3000) sends++
      return send()
    }
    const first = call(send).catch(ignore)
    await run(new Promise<void>((resolve) => setTimeout(resolve, 1)))
    await run(Promise.all([first, ...Array.from({ length: 100 }, () => call(counted).catch(ignore))]))
    return String(sends)
  },
  [threeLayers]: async (make) => {
    const call = await make()
    let sends = 0
    await run(
      call(async () => {
        sends++
        throw new HttpError(503, {})
      }).catch(ignore)
    )
    return String(sends)
  },
  "99.5th percentile latency, where one send in 100 takes 1 s and the others 10 ms": async (make) => {
    const call = await make()
    const latencies: Array<number> = []
    let sends = 0
    const one = async () => {
      const start = Date.now()
      await call(async () => {
        await new Promise<void>((resolve) => setTimeout(resolve, ++sends % 100 === 0 ? 1000 : 10))
        return "ok"
      })
      latencies.push(Date.now() - start)
    }
    for (let i = 0; i < calls; i++) await run(one())
    const settled = latencies.slice(calls / 3).sort((a, b) => a - b)
    return `${settled[settled.length * 0.995 - 1]} ms`
  }
}

/** The clock of Effect, which fake timers leave alone. */
const { hrtime } = process

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(hrtime, "bigint").mockImplementation(() => BigInt(Date.now()) * 1_000_000n)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const page = fs.readFileSync(new URL("../../docs/evidence/compared.md", import.meta.url), "utf8")

const rowAbout = (question: string) => page.split("\n").find((line) => line.startsWith(`| ${question} |`))

const rowOf = (...cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`

it("docs/evidence/compared.md: the libraries", () => {
  assert.include(page, rowOf("", ...libraries.map(({ name }) => name)).replace("|  |", "| |"))
})

const nested = (make: Make): Make => async () => {
  const call = await make()
  const layer = (send: Send): Send => () => call(send) as Promise<string>
  return (send) => thrice(layer)(send)()
}

it.each(Object.entries(rows))("docs/evidence/compared.md: %s", async (question, ask) => {
  const answers: Array<string> = []
  for (const library of libraries) {
    answers.push(await ask(question === threeLayers ? library.nested ?? nested(library.make) : library.make))
  }
  const [name, make] = settings[question] ?? []
  if (make !== undefined) answers[0] += `; ${await ask(make)} with ${name}`
  assert.strictEqual(rowAbout(question), rowOf(question, ...answers))
})
