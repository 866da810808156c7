/**
 * Asking a policy what it will do: how long a call can take, what it sends, and from when on the quota is felt.
 *
 * Nothing is sent and nothing waits. The answer is data, for a test or a chart, or a table for the terminal.
 */
import { explain, toTable } from "@effect-retry/lab/Explain"
import { awsStandard, awsStandard2026, RetryInfo } from "effect-retry"
import { patient } from "./own-policy.ts"

/** A call whose attempts all time out after 2 seconds: it takes up to 9 seconds until its caller knows. */
export const worst = explain(awsStandard, { attempt: "2 seconds", failure: RetryInfo.timedOut }).latency.maxMillis

/** The failure rates at which the quotas of 2.0 and 2.1 begin to refuse retries: 32.1 % and 21.5 %. */
export const bites = [awsStandard, awsStandard2026].map((policy) => explain(policy).quota?.bitesAt)

/** A promise of one's own, as a test could check it: no call to a service that throttles takes longer than 4 seconds. */
export const isPrompt =
  explain(patient, { attempt: "1 second", failure: RetryInfo.throttled() }).latency.maxMillis! <= 4000

/** For the terminal. */
export const table = toTable(explain(awsStandard, { name: "awsStandard" }))
