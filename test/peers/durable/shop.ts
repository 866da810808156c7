/**
 * A process that pays orders and lives on, since it may have to go on with those of others:
 * `shop.ts database journal cluster order...`. SIGTERM ends it in order. The cluster is a port, or `-` for none.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import * as fs from "node:fs"
import { engine, engineInCluster, engineOnServer } from "../../../examples/durableEngine.ts"
import { Down, Order } from "./order.ts"

const [, , database = "", journal = "", cluster = "-", ...orders] = process.argv

const engineOf = () => {
  const [, port, name] = /^(\d+)\/(.*)$/.exec(database) ?? []
  if (name === undefined) return engine(database)
  const options = { host: "127.0.0.1", port: Number(port), username: "postgres", database: name, maxConnections: 5 }
  return cluster === "-" ? engineOnServer(options) : engineInCluster(options, "127.0.0.1", Number(cluster))
}

/** A line that outlives the process. */
const step = (what: string, order: string, attempt: number) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => Effect.sync(() => fs.appendFileSync(journal, `${process.pid} ${what} ${order} ${attempt} ${now}\n`))
  )

const charge = (id: string) =>
  Activity.make({
    name: "charge",
    success: Schema.String,
    error: Down,
    execute: Effect.gen(function*() {
      const attempt = yield* Activity.CurrentAttempt
      yield* step("began", id, attempt)
      yield* Effect.sleep("100 millis")
      yield* step("ended", id, attempt)
      return attempt < 3 ? yield* new Down() : "paid"
    })
  })

const policy = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)

const program = Effect.gen(function*() {
  yield* step("up", "-", 0)
  yield* Effect.forEach(orders, (id) => Order.execute({ id }), { concurrency: "unbounded", discard: true })
  return yield* Effect.never
})

NodeRuntime.runMain(
  Effect.provide(
    program,
    Order.toLayer(({ id }) => RetryWorkflow.retry(charge(id), policy)).pipe(Layer.provideMerge(engineOf()))
  )
)
