/**
 * Asking a policy what it will do: how long a call can take, what it
 * sends, and when the quota starts to matter.
 *
 * Nothing is sent and nothing waits. The result is data, for a test or
 * a chart, or a table for the terminal.
 */
import * as Expect from "@effect-retry/lab/Expect"
import { explain, toTable } from "@effect-retry/lab/Explain"
import { awsStandard, awsStandard2026, RetryInfo } from "effect-retry"
import { patient } from "./own-policy.ts"
import { main, print } from "./support/program.ts"

/**
 * A call whose attempts all time out after 2 seconds: its caller may
 * wait up to 9 seconds to find out.
 */
export const worst = explain(awsStandard, {
  attempt: "2 seconds",
  failure: RetryInfo.timedOut
}).latency.maxMillis

/**
 * The failure rates at which the quotas of 2.0 and 2.1 begin to refuse
 * retries: 32.1 % and 21.5 %.
 */
export const bites = [awsStandard, awsStandard2026].map((policy) =>
  explain(policy).quota?.bitesAt
)

/**
 * Your own promise, as a test could check it: no call to a service that
 * throttles takes longer than 4 seconds.
 */
export const isPrompt = explain(patient, {
  attempt: "1 second",
  failure: RetryInfo.throttled()
}).latency.maxMillis! <= 4000

/**
 * The same for the load, in a unit test: whatever share of the attempts
 * fails, 2.1 sends less than 1.3 times per call.
 */
export const isModest = () =>
  Expect.expectLoad(awsStandard2026, { name: "orders" }).below(1.3)

/** For the terminal. */
export const table = toTable(
  explain(awsStandard, { name: "awsStandard" })
)

main(
  import.meta.url,
  print(table),
  print(`\nThe slowest call takes ${worst} ms.`),
  print(
    `The quotas refuse retries from failure rates of ${
      bites.map((rate) => `${(100 * rate!).toFixed(1)} %`).join(" and ")
    } on.`
  )
)
