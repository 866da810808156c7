/**
 * A process that pays an order and is killed at a step: `worker.ts database journal step`. The database is a folder, or
 * `port/name` of a server.
 */
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import * as fs from "node:fs"
import { engine, engineOnServer } from "../../../examples/durableEngine.ts"
import { Down, Order } from "./order.ts"

const [, , database, journal, doom] = process.argv

const engineOf = (database: string) => {
  const [, port, name] = /^(\d+)\/(.*)$/.exec(database) ?? []
  return name === undefined
    ? engine(database)
    : engineOnServer({ host: "127.0.0.1", port: Number(port), username: "postgres", database: name })
}

/** Writes a line that outlives the process, which may end with it. */
const step = (name: string) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.sync(() => {
      fs.appendFileSync(journal!, `${name} ${now}\n`)
      if (name === doom) process.kill(process.pid, "SIGKILL")
    }))

const charge = Activity.make({
  name: "charge",
  success: Schema.String,
  error: Down,
  execute: Effect.gen(function*() {
    const attempt = yield* Activity.CurrentAttempt
    yield* step(`began-${attempt}`)
    yield* step(`ended-${attempt}`)
    if (attempt === 4) return "paid"
    yield* Effect.forkDetach(Effect.delay(step(`waits-${attempt}`), "1 second"))
    return yield* new Down()
  })
})

const policy = Backoff.fixed("2 seconds").pipe(RetryPolicy.maxAttempts(4), RetryPolicy.whileRetryable)

await Effect.runPromise(
  Order.execute({ id: "1" }).pipe(
    Effect.tap(step),
    Effect.provide(
      Order.toLayer(() => RetryWorkflow.retry(charge, policy)).pipe(Layer.provideMerge(engineOf(database!)))
    )
  )
)
