import type { MeasuredInput } from "@effect-retry/lab/Simulator"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as http from "node:http"
import { monitorEventLoopDelay, performance } from "node:perf_hooks"

/** A response that is not a success. */
export class Answer extends Data.TaggedError("Answer")<{
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
}> {}

/** The connection broke. */
class Broken extends Data.TaggedError("Broken")<{ readonly code: string | undefined }> {}

/** One request, on a connection of the agent's. */
const get = (url: string, agent: http.Agent): Effect.Effect<void, Answer | Broken> =>
  Effect.callback<void, Answer | Broken>((resume) => {
    const request = http.get(url, { agent }, (response) => {
      const status = response.statusCode ?? 0
      response.resume().once(
        "end",
        () => resume(status < 400 ? Effect.void : Effect.fail(new Answer({ status, headers: response.headers })))
      )
    })
    request.once(
      "error",
      (error) => resume(Effect.fail(new Broken({ code: "code" in error ? String(error.code) : undefined })))
    )
    return Effect.sync(() => request.destroy())
  })

/** Randomness from a seed, the same in each run. Source: mulberry32, Ettinger, public domain. */
const chance = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** What is sent, to whom. */
export interface Load {
  readonly url: string
  readonly rate: number
  readonly seconds: number
  readonly timeoutMillis: number
}

type Send = ReturnType<typeof send>
const send = ({ timeoutMillis, url }: Load, agent: http.Agent) => Effect.timeout(get(url, agent), timeoutMillis)

/** How calls are retried: with services that they share. */
export type Retrying = (send: Send) => Effect.Effect<void, unknown>

interface Bucket {
  calls: number
  attempts: number
  succeeded: number
  failed: number
}

const percentile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!

/**
 * Makes calls at random times at a rate, whatever becomes of earlier ones, and counts their outcomes second by second. Also
 * returns by how much the machine held the process up, at most, in 99 of 100 looks.
 */
export const measure = Effect.fnUntraced(function*(load: Load, retrying: Retrying) {
  const { rate, seconds } = load
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new http.Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: Infinity })),
    (agent) => Effect.sync(() => agent.destroy())
  )
  const buckets: Array<Bucket> = Array.from(
    { length: seconds },
    () => ({ calls: 0, attempts: 0, succeeded: 0, failed: 0 })
  )
  const latencies: Array<number> = []
  const arrivals: Array<number> = []
  const began = performance.now()
  const now = () => performance.now() - began
  // What ends after the last call counts in the last second, as the simulator has it.
  const bucket = () => buckets[Math.min(seconds - 1, Math.floor(now() / 1000))]!
  const counted = Effect.suspend(() => {
    bucket().attempts++
    return send(load, agent)
  })
  const call = Effect.gen(function*() {
    const since = now()
    bucket().calls++
    arrivals.push(Math.round(since))
    const exit = yield* Effect.exit(retrying(counted))
    if (Exit.isSuccess(exit)) {
      bucket().succeeded++
      latencies.push(now() - since)
    } else bucket().failed++
  })
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const draw = chance(1)
  const running = yield* FiberSet.make()
  for (let at = -Math.log(1 - draw()) / rate; at < seconds; at += -Math.log(1 - draw()) / rate) {
    const wait = at * 1000 - now()
    if (wait > 0) yield* Effect.sleep(wait)
    yield* FiberSet.run(running, call)
  }
  yield* FiberSet.awaitEmpty(running)
  delay.disable()
  const sorted = latencies.sort((a, b) => a - b)
  const measured: MeasuredInput = {
    bucket: "1s",
    arrivals,
    series: [buckets[0]!, ...buckets.slice(1)],
    ...sorted.length === 0 ? {} : { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
  }
  return { measured, heldUpMillis: Math.max(0, delay.percentile(99) / 1e6 - 10) }
}, Effect.scoped)

/** Requests answered per second, by this many clients that never wait: on connections that are kept, or on new ones. */
export const capacity = Effect.fnUntraced(function*(
  url: string,
  { clients, keepAlive, seconds }: {
    readonly keepAlive: boolean
    readonly clients: number
    readonly seconds: number
  }
) {
  const agent = new http.Agent({ keepAlive, maxSockets: Infinity })
  const began = performance.now()
  let answered = 0
  const client = Effect.gen(function*() {
    while (performance.now() - began < seconds * 1000) {
      yield* get(url, agent)
      answered++
    }
  })
  yield* Effect.all(Array.from({ length: clients }, () => client), { concurrency: "unbounded" })
  agent.destroy()
  return answered * 1000 / (performance.now() - began)
})
