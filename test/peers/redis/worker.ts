/**
 * A process of a fleet: `worker.ts <url> <options as JSON> <job>`. It says "ready", does its job at the first line it
 * reads, and prints numbers.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import { Transient } from "../../utils/call.ts"

const [url = "", options = "{}", name = ""] = process.argv.slice(2)

const line = Effect.callback<void>((resume) => {
  process.stdin.once("data", () => resume(Effect.void))
})

const say = (text: string | number) => Effect.sync(() => process.stdout.write(`${text}\n`))

const policy = Backoff.fixed("1 millis").pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/** An outage: calls, four at the same time, each of which fails whatever it does. Prints the retries. */
const outage = (calls: number, pauseMillis: number) =>
  Effect.gen(function*() {
    let sends = 0
    const call = Effect.suspend(() => {
      sends++
      return Effect.fail(new Transient())
    })
    const one = Effect.andThen(Effect.sleep(pauseMillis), Effect.ignore(withRetry(call, policy)))
    yield* Effect.forEach(Array.from({ length: calls }), () => one, { concurrency: 4 })
    yield* say(sends - calls)
  })

/** Takes ten reservations and prints what is left; at the next line it gives them back, and prints what is left then. */
const holding = Effect.gen(function*() {
  const taken = yield* Effect.forEach(Array.from({ length: 10 }), () => RetryQuota.reserve(5))
  yield* say(yield* RetryQuota.balance)
  yield* line
  for (const each of taken) yield* Option.getOrThrow(each).giveBack
  yield* say(yield* RetryQuota.balance)
})

const jobs = { outage: outage(200, 0), longOutage: outage(600, 20), holding }

const job = name === "outage" || name === "longOutage" ? name : "holding"

const program = Effect.gen(function*() {
  yield* RetryQuota.balance
  yield* say("ready")
  yield* line
  yield* jobs[job]
}).pipe(
  // What is printed is for the test: nothing is logged.
  Effect.provide(
    RetryQuotaRedis.layer(JSON.parse(options)).pipe(
      Layer.provide(NodeRedis.layer({ url })),
      Layer.provide(Logger.layer([])),
      Layer.orDie
    )
  )
)

Effect.runPromise(program).then(() => process.exit(0), (error) => {
  console.error(error)
  process.exit(1)
})
