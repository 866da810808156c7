/**
 * A process that may end after any request, as serverless ones do.
 * After each request it saves what it has learned as JSON, and the next
 * process begins with that: a quota that an outage has emptied stays
 * empty, and the limiter keeps the rate that it has found. Without it,
 * each process would begin with a full quota, and retry as if nothing
 * had happened.
 */
import { Effect, Layer } from "effect"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  RetryQuota,
  withRetry
} from "effect-retry"
import { KeyValueStore } from "effect/persistence"
import { TableBusy } from "./errors-with-facts.ts"
import { main, print, show } from "./support/program.ts"

const key = "retries of orders"

/** The options throw if what was saved does not fit them. */
const beginWith = (saved: {
  readonly quota?: RetryQuota.State
  readonly limiter?: AdaptiveRateLimiter.State
}) =>
  Layer.merge(
    RetryQuota.layer({ restore: saved.quota }),
    AdaptiveRateLimiter.layer({ restore: saved.limiter })
  )

/** What cannot be read or does not fit is no reason not to begin. */
export const layer = KeyValueStore.KeyValueStore.use((store) =>
  store.get(key)
).pipe(
  Effect.flatMap((text = "{}") =>
    Effect.try(() => beginWith(JSON.parse(text)))
  ),
  Effect.catch((error) =>
    Effect.as(Effect.logWarning(error), beginWith({}))
  ),
  Layer.unwrap
)

export const save = Effect.gen(function*() {
  const store = yield* KeyValueStore.KeyValueStore
  const quota = yield* RetryQuota.state
  const limiter = yield* AdaptiveRateLimiter.state
  yield* store.set(key, JSON.stringify({ quota, limiter }))
})

/** A request, after which the process may end. */
export const handle = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(
    withRetry(awsAdaptive),
    Effect.ensuring(Effect.ignore(save))
  )

const busy = Array.from(
  { length: 3 },
  () => new TableBusy({ table: "orders" })
)

/** A process that serves one request. `Layer.fresh`: of its own. */
const serve = (title: string) =>
  Effect.gen(function*() {
    yield* show(title, busy, handle)
    yield* print(`  tokens left: ${(yield* RetryQuota.state).tokens}`)
  }).pipe(Effect.provide(Layer.fresh(layer)))

main(
  import.meta.url,
  Effect.andThen(
    serve("the first process"),
    serve("the next one")
  ).pipe(Effect.provide(KeyValueStore.layerMemory))
)
