import { RetryInfo } from "effect-retry"
import * as Schema from "effect/Schema"
import * as Workflow from "effect/workflow/Workflow"

/** The bank does not answer. */
export class Down extends Schema.TaggedError<Down>()("Down", {}) {
  readonly [RetryInfo.TypeId] = RetryInfo.transient
}

/** The workflow of an order. */
export const Order = Workflow.make("Order", {
  payload: Schema.Struct({ id: Schema.String }),
  idempotencyKey: ({ id }: { readonly id: string }) => id,
  success: Schema.String,
  error: Down
})
