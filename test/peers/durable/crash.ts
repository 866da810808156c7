/**
 * A process that is killed by its first retry, always: `crash.ts folder redis`. It ends in order when the quota in Redis, of two
 * retries, denies that retry.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Backoff, RetryPolicy, RetryQuota } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import { engine } from "../../../examples/durableEngine.ts"
import { Down, Order } from "./order.ts"

const [, , folder = "", url = ""] = process.argv

const charge = Activity.make({
  name: "charge",
  success: Schema.String,
  error: Down,
  execute: Effect.gen(function*() {
    if ((yield* Activity.CurrentAttempt) > 1) process.kill(process.pid, "SIGKILL")
    return yield* new Down()
  })
})

const policy = Backoff.fixed("100 millis").pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 14 })
)

const quota = url === ""
  ? RetryQuota.layer({ capacity: 28 })
  : Layer.provide(
    RetryQuotaRedis.layer({ name: "crash", capacity: 28, timeout: "10 seconds" }),
    NodeRedis.layer({ url })
  )

await Effect.runPromise(
  Effect.exit(Order.execute({ id: "1" })).pipe(
    Effect.provide(
      Order.toLayer(() => RetryWorkflow.retry(charge, policy)).pipe(
        Layer.provideMerge(engine(folder)),
        Layer.provideMerge(quota)
      )
    )
  )
)
