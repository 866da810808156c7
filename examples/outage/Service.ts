import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Random from "effect/Random"
import * as Script from "./Script.ts"

/** How far requests may run ahead of the rate limit. */
const burstSeconds = 0.25

/**
 * The longest that a request waits for its turn. A little longer than
 * callers wait for a response, as queues usually are: when a full queue
 * serves a request, its caller has given up.
 */
const queueSeconds = 0.6

/**
 * Takes a place in a queue that is full until a given time. Returns the
 * new time, or `undefined` if that is further off than `bound`. The
 * place stays taken if the caller hangs up, since most services do not
 * notice.
 */
export const admit = (
  line: { readonly fullUntil: number; readonly bound: number },
  now: number,
  seconds: number
): number | undefined => {
  const fullUntil = Math.max(now, line.fullUntil) + seconds
  return fullUntil - now > line.bound ? undefined : fullUntil
}

/**
 * A copy of the service: its capacity belongs to one fleet, so that no
 * fleet disturbs another.
 */
class Copy {
  requests = 0
  readonly limit = { fullUntil: 0, bound: burstSeconds }
  readonly queue = { fullUntil: 0, bound: queueSeconds }
}

const done = HttpServerResponse.text("done")
const throttled = HttpServerResponse.empty({
  status: 429,
  headers: { "retry-after": "1" }
})
const unavailable = HttpServerResponse.empty({ status: 503 })

/** Starts the script: a service with a copy for each path. */
export const make = Effect.fnUntraced(
  function*(script: ReadonlyArray<Script.Phase>) {
    const startedAt = yield* Script.now
    const elapsed = Effect.map(Script.now, (now) => now - startedAt)
    const copies = new Map<string, Copy>()
    const copyAt = (path: string) => {
      const copy = copies.get(path) ?? new Copy()
      copies.set(path, copy)
      return copy
    }

    const handle = Effect.fnUntraced(function*(path: string) {
      const { limit, queue } = copyAt(path)
      copyAt(path).requests++
      const now = yield* elapsed
      const phase = Script.phaseAt(script, now)

      const limitedUntil = admit(limit, now, 1 / phase.limitPerSecond)
      if (limitedUntil === undefined) return throttled
      limit.fullUntil = limitedUntil

      if ((yield* Random.next) < phase.failing) return unavailable

      const doneAt = admit(queue, now, phase.workMillis / 1000)
      if (doneAt === undefined) return unavailable
      queue.fullUntil = doneAt
      yield* Effect.sleep((doneAt - now) * 1000)
      return done
    })

    return {
      /** Seconds since the script began. */
      elapsed,
      /** Answers a request. */
      handle,
      /** Answers the requests of an HTTP server. */
      app: Effect.flatMap(
        HttpServerRequest.HttpServerRequest,
        (request) => handle(request.url)
      ),
      /** How many requests a path has received. */
      requests: (path: string): number => copyAt(path).requests
    }
  }
)
