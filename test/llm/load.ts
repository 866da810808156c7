/** A service of language models that holds its limits, and a load on it through the SDKs. */
import Anthropic from "@anthropic-ai/sdk"
import { RetryQuota } from "effect-retry"
import * as RetryLlm from "effect-retry/RetryLlm"
import { retryPromise } from "effect-retry/RetryPromise"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as http from "node:http"
import type * as net from "node:net"
import { setImmediate } from "node:timers/promises"
import OpenAI from "openai"
import { vi } from "vitest"

/** Requests and answers on their way: neither held by the service nor in the hands of the SDK. */
let moving = 0

/** `fetch`, whose answer has arrived as a whole. */
const fetched: typeof fetch = async (input, init) => {
  moving++
  try {
    const response = await fetch(input, init)
    return new Response(await response.arrayBuffer(), response)
  } finally {
    moving--
  }
}

/** Turns of the event loop after which all that an answer set off has been done, up to the next request or timer. */
const turns = 20

const quiet = async () => {
  for (let still = 0; still < turns; still++) {
    await setImmediate()
    if (moving > 0) still = 0
  }
}

/** Runs real requests in virtual time: whenever nothing moves, it jumps to the next timer. */
export const inVirtualTime = async <A>(run: () => Promise<A>): Promise<A> => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] })
  try {
    let isOver = false
    const running = run().finally(() => {
      isOver = true
    })
    running.catch(() => {})
    for (await quiet(); !isOver; await quiet()) vi.advanceTimersToNextTimer()
    return await running
  } finally {
    vi.useRealTimers()
  }
}

/** The clock of the SDKs: that of Effect reads a timer that stays real. */
const clock: Clock.Clock = Object.assign(Object.create(Effect.runSync(Clock.Clock)), {
  monotonicTimeNanosUnsafe: () => BigInt(Math.round(performance.now() * 1e6))
})

/** What the service allows in a window. */
const limits = { requests: 60, tokens: 20_000 }

/** A bucket that is filled evenly: what Anthropic calls its algorithm. */
class Bucket {
  private level: number
  private at = performance.now()
  private readonly limit: number
  private readonly windowMillis: number

  constructor(limit: number, windowMillis: number) {
    this.level = this.limit = limit
    this.windowMillis = windowMillis
  }

  get now(): number {
    const now = performance.now()
    this.level = Math.min(this.limit, this.level + (now - this.at) * this.limit / this.windowMillis)
    this.at = now
    return this.level
  }

  change(by: number): void {
    this.level = Math.min(this.limit, this.now + by)
  }

  millisUntil(amount: number): number {
    return Math.max(0, (amount - this.now) * this.windowMillis / this.limit)
  }
}

/** What is counted of a run. */
export interface Counts {
  /** Requests that reached the service, and those of them that it refused. */
  readonly sends: number
  readonly refused: number
  /** Calls that succeeded, and that failed for their callers. */
  readonly succeeded: number
  readonly failed: number
  /** Tokens used, as a share of what the limits allowed until the last send: a full bucket, and what flowed in. */
  readonly throughput: number
}

interface Request {
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly messages: ReadonlyArray<{ readonly content: string }>
}

/** Reserves prompt and longest output of a request, refuses what is too much, and gives back what was not written. */
const serve = async (windowMillis: number) => {
  const requests = new Bucket(limits.requests, windowMillis)
  const tokens = new Bucket(limits.tokens, windowMillis)
  let firstMillis: number | undefined
  const counts = { sends: 0, refused: 0, used: 0, lastMillis: 0 }

  const headersOf = (path: string) => {
    const [left, tokensLeft] = [requests, tokens].map((bucket) => String(Math.max(0, Math.floor(bucket.now))))
    return path.endsWith("/messages")
      ? {
        "anthropic-ratelimit-requests-limit": String(limits.requests),
        "anthropic-ratelimit-requests-remaining": left!,
        "anthropic-ratelimit-tokens-limit": String(limits.tokens),
        "anthropic-ratelimit-tokens-remaining": tokensLeft!
      }
      : {
        "x-ratelimit-limit-requests": String(limits.requests),
        "x-ratelimit-remaining-requests": left!,
        "x-ratelimit-limit-tokens": String(limits.tokens),
        "x-ratelimit-remaining-tokens": tokensLeft!
      }
  }

  const answer = (path: string, request: Request, respond: http.ServerResponse) => {
    const prompt = Math.ceil(request.messages.reduce((sum, { content }) => sum + content.length, 0) / 4)
    const most = request.max_completion_tokens ?? request.max_tokens ?? 0
    counts.sends++
    const wait = Math.max(requests.millisUntil(1), tokens.millisUntil(prompt + most))
    if (wait > 0) {
      counts.refused++
      const headers = { ...headersOf(path), "retry-after-ms": String(Math.ceil(wait)) }
      respond.writeHead(429, { "content-type": "application/json", ...headers })
      respond.end(JSON.stringify({ type: "error", error: { type: "rate_limit_error", message: "too much" } }))
      return
    }
    requests.change(-1)
    tokens.change(-prompt - most)
    const now = performance.now()
    firstMillis ??= now
    counts.lastMillis = now
    const headers = headersOf(path)
    const written = Math.round(most * (0.3 + 0.6 * (counts.sends * 7 % 10) / 10))
    counts.used += prompt + written
    moving--
    setTimeout(() => {
      moving++
      tokens.change(most - written)
      respond.writeHead(200, { "content-type": "application/json", ...headers })
      respond.end(JSON.stringify(
        path.endsWith("/messages")
          ? { type: "message", content: [], usage: { input_tokens: prompt, output_tokens: written } }
          : { choices: [], usage: { prompt_tokens: prompt, completion_tokens: written } }
      ))
    }, windowMillis / 40)
  }

  const server = http.createServer((request, respond) => {
    if (request.method === "GET") return respond.end()
    let body = ""
    return request.setEncoding("utf8").on("data", (part) => body += part).on(
      "end",
      () => answer(request.url!, JSON.parse(body), respond)
    )
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as net.AddressInfo).port,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
    counts: (succeeded: number, failed: number): Counts => ({
      sends: counts.sends,
      refused: counts.refused,
      succeeded,
      failed,
      throughput: counts.used /
        (limits.tokens * (1 + (counts.lastMillis - (firstMillis ?? 0)) / windowMillis))
    })
  }
}

export const sdks = ["openai", "anthropic"] as const

const policies = { openai: RetryLlm.openai, anthropic: RetryLlm.anthropic }

const prompts = (call: number) => [{ role: "user" as const, content: "word ".repeat(120 + call * 37 % 160) }]

/** One call, by an SDK on its own or without its retries. */
const clientOf = (sdk: typeof sdks[number], port: number) => {
  const settings = { apiKey: "key", baseURL: `http://127.0.0.1:${port}`, fetch: fetched }
  const [openai, anthropic] = [new OpenAI(settings), new Anthropic(settings)]
  return (
    call: number,
    options: { readonly maxRetries?: number; readonly signal?: AbortSignal }
  ): Promise<{ readonly data: unknown; readonly response: Response }> =>
    sdk === "openai"
      ? openai.chat.completions.create(
        { model: "gpt-5", messages: prompts(call), max_completion_tokens: 300 },
        options
      ).withResponse()
      : anthropic.messages.create({ model: "claude", messages: prompts(call), max_tokens: 300 }, options).withResponse()
}

/** Each of this many callers makes one call after the other, until all are made. */
const inTurn = async (calls: number, callers: number, make: (call: number) => Promise<unknown>) => {
  let [next, succeeded, failed] = [0, 0, 0]
  await Promise.all(Array.from({ length: callers }, async () => {
    while (next < calls) {
      await make(next++).then(() => succeeded++, () => failed++)
    }
  }))
  return [succeeded, failed] as const
}

/** What all calls share. */
const sharedBy = (windowMillis: number) =>
  Effect.runPromise(Effect.scoped(Layer.build(Layer.merge(
    RetryQuota.layer(),
    TokenLimiter.layer({ ...limits, per: windowMillis, slack: windowMillis / 20, maxWait: 20 * windowMillis })
  ))))

/** Runs the load by an SDK with its own retries, or with ours. */
export const run = async (
  sdk: typeof sdks[number],
  who: "its own" | "ours",
  { calls, callers, windowMillis }: {
    readonly calls: number
    readonly callers: number
    readonly windowMillis: number
  }
): Promise<Counts> => {
  const server = await serve(windowMillis)
  try {
    // Connections are there before the first call.
    await Promise.all(Array.from({ length: callers }, () => fetched(`http://127.0.0.1:${server.port}`)))
    const client = clientOf(sdk, server.port)
    const context = Context.add(await sharedBy(windowMillis), Clock.Clock, clock)
    const ours = (call: number) =>
      retryPromise(({ signal }) => client(call, { maxRetries: 0, signal }), policies[sdk], {
        context: Context.add(
          context,
          TokenLimiter.CurrentEstimate,
          RetryLlm.estimateOf({ messages: prompts(call), max_tokens: 300 })
        )
      })
    const [succeeded, failed] = await inTurn(calls, callers, who === "ours" ? ours : (call) => client(call, {}))
    return server.counts(succeeded, failed)
  } finally {
    server.close()
  }
}
