/**
 * A process of a fleet: `worker.ts <url> <options as JSON> <job>`. It says "ready", does its job at the first line it
 * reads, and prints one number.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Transient } from "../../utils/call.ts"

const [url = "", options = "{}", job = ""] = process.argv.slice(2)

const line = Effect.callback<void>((resume) => {
  process.stdin.once("data", () => resume(Effect.void))
})

const say = (text: string | number) => Effect.sync(() => process.stdout.write(`${text}\n`))

const policy = Backoff.fixed({ delay: "1 millis" }).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/** An outage: 200 calls, four at once, each of which fails whatever it does. Prints the retries. */
const outage = Effect.gen(function*() {
  let sends = 0
  const call = Effect.suspend(() => {
    sends++
    return Effect.fail(new Transient())
  })
  yield* Effect.forEach(Array.from({ length: 200 }), () => Effect.ignore(withRetry(call, policy)), {
    concurrency: 4
  })
  yield* say(sends - 200)
})

/** Takes ten reservations, prints what is left, and never settles them. */
const holding = Effect.gen(function*() {
  for (let i = 0; i < 10; i++) yield* RetryQuota.reserve(5)
  yield* say(yield* RetryQuota.balance)
  return yield* Effect.never
})

const program = Effect.gen(function*() {
  yield* RetryQuota.balance
  yield* say("ready")
  yield* line
  yield* (job === "outage" ? outage : holding)
}).pipe(
  Effect.provide(RetryQuotaRedis.layer(JSON.parse(options)).pipe(Layer.provide(NodeRedis.layer({ url })), Layer.orDie))
)

Effect.runPromise(program).then(() => process.exit(0), (error) => {
  console.error(error)
  process.exit(1)
})
