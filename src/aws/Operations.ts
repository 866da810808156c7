/**
 * Retry behavior 2.1 by operation: the policies of AWS calls that differ from the rest.
 *
 * Two kinds of operations differ. A failed long poll that may not be retried is held back before it fails: its caller
 * polls in a loop, and would otherwise come back immediately. DynamoDB answers in milliseconds, so it starts from a
 * shorter backoff and gets one more attempt.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import { checksOf } from "../internal/checks.ts"
import { inCode, validOptions } from "../internal/options.ts"
import type { RetryPolicy } from "../RetryPolicy.ts"
import type { RetryQuota } from "../RetryQuota.ts"
import { type Options, standard2026 } from "./AwsModes.ts"

/**
 * An operation of an AWS service, in any SDK's spelling.
 *
 * @category models
 * @since 0.1.0
 */
export interface Operation {
  /** The service id, endpoint prefix or package name: `"SQS"`, `"streams.dynamodb"`, `"@aws-sdk/client-sqs"`. */
  readonly service: string
  /** The name of the operation: `"ReceiveMessage"`, `"receive_message"`, `"ReceiveMessageCommand"`. */
  readonly operation: string
}

/**
 * What distinguishes operations, as options of `AwsModes.standard2026`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Settings {
  /** The first ceiling after a failure that is not a throttle. */
  readonly base: Duration.Duration
  /** Attempts, the first included. */
  readonly maxAttempts: number
  /** Whether a call that the quota refuses to retry is held back before it fails. */
  readonly longPolling: boolean
}

const ordinary: Settings = { base: Duration.millis(50), maxAttempts: 3, longPolling: false }
const polling: Settings = { ...ordinary, longPolling: true }
const dynamoDB: Settings = { ...ordinary, base: Duration.millis(25), maxAttempts: 4 }

/** The services of DynamoDB, by their names in SDKs. */
const dynamoDBNames: ReadonlySet<string> = new Set(["dynamodb", "dynamodbstreams", "streamsdynamodb"])

/** The long polls, each after the names of its service in SDKs. */
const longPolls: ReadonlySet<string> = new Set([
  "sqs.receivemessage",
  "sfn.getactivitytask",
  "states.getactivitytask",
  "stepfunctions.getactivitytask",
  "swf.pollforactivitytask",
  "swf.pollfordecisiontask"
])

/** Letters and digits, in lowercase. */
const plain = (name: unknown): string => typeof name === "string" ? name.toLowerCase().replace(/[^a-z0-9]/g, "") : ""

/** A service without the prefix of package names. */
const plainService = (service: unknown): string => plain(service).replace(/^awssdk(?:client|lib)/, "")

/**
 * The settings of retry behavior 2.1 for an operation.
 *
 * **Details**
 *
 * | service | operation | base | attempts | long polling |
 * | --- | --- | --- | --- | --- |
 * | DynamoDB, DynamoDB Streams | any | 25 ms | 4 | no |
 * | SQS | ReceiveMessage | 50 ms | 3 | yes |
 * | SFN (Step Functions) | GetActivityTask | 50 ms | 3 | yes |
 * | SWF | PollForActivityTask, PollForDecisionTask | 50 ms | 3 | yes |
 * | any other | any other | 50 ms | 3 | no |
 *
 * Case, spaces and punctuation are ignored, as are `@aws-sdk/client-` and `@aws-sdk/lib-` at the start of a service and
 * `Command` at the end of an operation. Step Functions is `SFN`, `states` or `stepfunctions`; DynamoDB Streams is that
 * or `streams.dynamodb`. Any other name is treated as ordinary. Source: botocore `retries/standard.py`,
 * `_LONG_POLLING_OPERATIONS`; AWS developer blog, "Announcing updated retry behavior for AWS SDKs and Tools", 2026.
 *
 * @category getters
 * @since 0.1.0
 */
export const settings = ({ operation, service }: Operation): Settings => {
  const name = plainService(service)
  if (dynamoDBNames.has(name)) return dynamoDB
  return longPolls.has(`${name}.${plain(operation).replace(/command$/, "")}`) ? polling : ordinary
}

/**
 * Makes the policies of a client with its own attempts or longest backoff: a function from an operation to its policy.
 *
 * **Details**
 *
 * The given attempts apply to every operation, including DynamoDB's, as in the SDKs. The policies are made once, so
 * asking for one is cheap. Throws `InvalidOption` if attempts are not a whole number of at least 1, or the longest
 * backoff is below 50 milliseconds.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): (operation: Operation) => RetryPolicy<unknown, never, RetryQuota> => {
  validOptions(checksOf("Operations.make", options), { maxAttempts: inCode, maxBackoff: inCode }, options)
  const { maxAttempts, maxBackoff } = options
  const policyOf = (of: Settings) => standard2026({ ...of, maxAttempts: maxAttempts ?? of.maxAttempts, maxBackoff })
  const policies = new Map([ordinary, polling, dynamoDB].map((of) => [of, policyOf(of)]))
  return (operation) => policies.get(settings(operation))!
}

/**
 * The policy of an operation, according to {@link settings}. Equal settings give the same object.
 *
 * **Details**
 *
 * A long poll that the quota refuses is held back for the delay of the retry it does not get, including the server's
 * hint, and then fails with its own error. It is not held back after its last attempt, an error that is not retryable,
 * or a success.
 *
 * **Example** (A worker that polls a queue)
 *
 * ```ts
 * const receive = call.pipe(withRetry(Operations.forOperation({ service: "sqs", operation: "ReceiveMessage" })))
 * ```
 *
 * @category policies
 * @since 0.1.0
 */
export const forOperation: (operation: Operation) => RetryPolicy<unknown, never, RetryQuota> = make()
