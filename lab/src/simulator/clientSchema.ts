import { Distribution, maybe, Name, required, Time, withDefault } from "./fields.ts"
import { Policy } from "./policySchema.ts"

/** The settings of any caller of a service: a fleet, or another service. */
export const clientKeys = {
  to: required(Name, "The service that is called."),
  policy: withDefault(Policy, "none", "How calls are retried."),
  timeout: maybe(Time, "How long one attempt waits for its answer. Default: forever."),
  patience: maybe(
    Time,
    "How long one call waits in total, including its retries and their delays; then it fails, whatever is in progress. Default: forever."
  ),
  network: withDefault(Distribution, 0, "How long a request or an answer travels, each way.")
}
