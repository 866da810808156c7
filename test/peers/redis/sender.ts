/**
 * A process that sends as fast as its limiter lets it: `sender.ts <redis url, or "own"> <port> <seconds> <name>`. It says
 * "ready", begins at the first line it reads, and prints how many sends of each second were accepted and throttled.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { RetryPolicy, withRetry } from "effect-retry"
import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as http from "node:http"

const [url = "", port = "", seconds = "", name = ""] = process.argv.slice(2)

const line = Effect.callback<void>((resume) => {
  process.stdin.once("data", () => resume(Effect.void))
})

const say = (text: string) => Effect.sync(() => process.stdout.write(`${text}\n`))

const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })

const statusOf = Effect.callback<number>((resume) => {
  http.get({ host: "127.0.0.1", port, agent }, (response) => {
    response.resume()
    response.once("end", () => resume(Effect.succeed(response.statusCode!)))
  }).once("error", () => resume(Effect.succeed(0)))
})

const once = RetryPolicy.fromDelay(() => undefined)

const limiterLayer = url === "own"
  ? AdaptiveRateLimiter.layer()
  : AdaptiveRateLimiterRedis.layer({ name, timeout: "500 millis" }).pipe(Layer.provide(NodeRedis.layer({ url })))

const program = Effect.gen(function*() {
  yield* AdaptiveRateLimiter.state
  yield* say("ready")
  yield* line
  const began = performance.now()
  const elapsed = () => Math.floor((performance.now() - began) / 1000)
  const counts = Array.from({ length: Number(seconds) }, () => ({ accepted: 0, throttled: 0 }))
  const send = Effect.flatMap(statusOf, (status) => {
    const second = counts[elapsed()]
    if (second !== undefined) second[status === 200 ? "accepted" : "throttled"]++
    return status === 200 ? Effect.void : Effect.fail(new Kit.Throttled({}))
  })
  const sending = Effect.whileLoop({
    while: () => elapsed() < Number(seconds),
    body: () => Effect.exit(withRetry(send, once)),
    step: () => undefined
  })
  yield* Effect.all(Array.from({ length: 6 }, () => sending), { concurrency: "unbounded", discard: true }).pipe(
    Effect.timeoutOption(`${Number(seconds)} seconds`)
  )
  yield* say(JSON.stringify(counts))
}).pipe(Effect.provide(limiterLayer.pipe(Layer.provide(Logger.layer([])))))

Effect.runPromise(program).then(() => process.exit(0), (error) => {
  console.error(error)
  process.exit(1)
})
