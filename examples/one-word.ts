/**
 * The one-word form: `withRetry(policy)` is `attempt` and `Effect.retry` together, and the faster of the two, because it
 * sets nothing up until a first attempt fails.
 *
 * Here it stands where most programs want it: at the end of a service's method, out of sight of the callers.
 */
import { Context, Effect, Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import type { TableBusy } from "./errors-with-facts.ts"

export class Table extends Context.Service<Table, {
  readonly get: (key: string) => Effect.Effect<string, TableBusy>
}>()("examples/Table") {}

export class Orders extends Context.Service<Orders, {
  readonly get: (id: number) => Effect.Effect<string, TableBusy>
}>()("examples/Orders") {
  static readonly layerNoDeps = Layer.effect(
    Orders,
    Effect.gen(function*() {
      const table = yield* Table
      const quota = yield* RetryQuota.RetryQuota
      const get = Effect.fn("Orders.get")(
        function*(id: number) {
          return yield* table.get(`order-${id}`)
        },
        withRetry(awsStandard),
        Effect.provideService(RetryQuota.RetryQuota, quota)
      )
      return Orders.of({ get })
    })
  )

  /** The orders with a quota of their own. */
  static readonly layer = this.layerNoDeps.pipe(Layer.provide(RetryQuota.layer()))
}
