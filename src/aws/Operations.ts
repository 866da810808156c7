/**
 * Retry behaviour 2.1 by operation: which policy a call of AWS has, for those that differ.
 *
 * Two kinds of operations differ. A long poll that failed and may not be retried is held back before it fails: its
 * caller polls in a loop, and would otherwise come again at once. DynamoDB answers in milliseconds, so it starts from a
 * shorter back-off and has one attempt more.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import { type Options, standard2026 } from "./AwsModes.ts"

/**
 * An operation of an AWS service, however the SDKs spell it.
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
 * What distinguishes operations, in the form that `AwsModes.standard2026` takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Settings {
  /** The first ceiling after a failure that is no throttle. */
  readonly base: Duration.Duration
  /** Attempts, the first included. */
  readonly maxAttempts: number
  /** A call that the quota refuses to retry is held back before it fails. */
  readonly longPolling: boolean
}

type Policy = ReturnType<typeof standard2026>

const ordinary: Settings = { base: Duration.millis(50), maxAttempts: 3, longPolling: false }
const polling: Settings = { ...ordinary, longPolling: true }
const dynamoDB: Settings = { ...ordinary, base: Duration.millis(25), maxAttempts: 4 }

/** The services of DynamoDB, by the names they have in SDKs. */
const dynamoDBNames: ReadonlySet<string> = new Set(["dynamodb", "dynamodbstreams", "streamsdynamodb"])

const activities = ["getactivitytask"]

/** The long polls of each service, by the names it has in SDKs. */
const longPolls: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["sqs", ["receivemessage"]],
  ["sfn", activities],
  ["states", activities],
  ["stepfunctions", activities],
  ["swf", ["pollforactivitytask", "pollfordecisiontask"]]
])

/** Letters and digits, in lower case. */
const plain = (name: unknown): string => typeof name === "string" ? name.toLowerCase().replace(/[^a-z0-9]/g, "") : ""

/** A service without what package names begin with. */
const plainService = (service: unknown): string => plain(service).replace(/^awssdk(?:client|lib)/, "")

/**
 * Gives what retry behaviour 2.1 lays down for an operation.
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
 * Case, spaces and punctuation do not count, nor do `@aws-sdk/client-` and `@aws-sdk/lib-` at the beginning of a service or `Command` at
 * the end of an operation. Step Functions is `SFN`, `states` or `stepfunctions`; DynamoDB Streams is that or
 * `streams.dynamodb`. An unknown name is an ordinary one.
 * Source: botocore `retries/standard.py`, `_LONG_POLLING_OPERATIONS`; AWS developer blog, "Announcing updated retry
 * behavior for AWS SDKs and Tools", 2026.
 *
 * @category getters
 * @since 0.1.0
 */
export const settings = ({ operation, service }: Operation): Settings => {
  const name = plainService(service)
  if (dynamoDBNames.has(name)) return dynamoDB
  return longPolls.get(name)?.includes(plain(operation).replace(/command$/, "")) ? polling : ordinary
}

/**
 * Makes the policies of a client whose attempts or longest back-off are set: a function from the operation to its policy.
 *
 * **Details**
 *
 * Attempts that are set hold for every operation, DynamoDB's too, as in the SDKs. The policies are made once, so that
 * asking for one is cheap. Throws `InvalidOption` for attempts that are no whole number of at least 1, and for a longest
 * back-off below 50 milliseconds.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = ({ maxAttempts, maxBackoff }: Options = {}): (operation: Operation) => Policy => {
  const policyOf = (of: Settings): Policy =>
    standard2026({ ...of, maxAttempts: maxAttempts ?? of.maxAttempts, maxBackoff })
  const policies = new Map([ordinary, polling, dynamoDB].map((of) => [of, policyOf(of)]))
  return (operation) => policies.get(settings(operation))!
}

/**
 * Gives the policy of an operation, as {@link settings} lays it down. The same one for the same settings.
 *
 * **Details**
 *
 * A long poll that the quota refuses is held back for the delay of the retry it does not get, server's hint included,
 * and then fails with its own error. It is not held back by its last attempt, by an error that is not retryable, or by
 * a success.
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
export const forOperation: (operation: Operation) => Policy = make()
