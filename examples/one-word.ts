/**
 * The short form: `withRetry(policy)` does what `Effect.retry` does
 * with a policy, and is the faster of the two, because it sets nothing
 * up until a first attempt fails.
 *
 * It is used here where most programs want it: at the end of a
 * service's method, invisible to the callers.
 */
import { Context, Effect, Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import { TableBusy } from "./errors-with-facts.ts"
import { main, show } from "./support/program.ts"

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

  /** The orders with their own quota. */
  static readonly layer = this.layerNoDeps.pipe(
    Layer.provide(RetryQuota.layer())
  )
}

const getOrder = (send: Effect.Effect<string, TableBusy>) =>
  Effect.flatMap(Orders, (orders) => orders.get(1)).pipe(
    Effect.provide(
      Orders.layer.pipe(Layer.provide(Layer.succeed(Table, {
        get: () => send
      })))
    )
  )

main(
  import.meta.url,
  show("orders.get(1), from a busy table", [
    new TableBusy({ table: "orders" })
  ], getOrder)
)
