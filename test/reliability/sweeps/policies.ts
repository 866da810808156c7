import {
  awsAdaptive,
  awsDynamoDB2026,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as Operations from "effect-retry/aws/Operations"
import * as SdkModes from "effect-retry/aws/SdkModes"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { on, type Services, type Sweep, type Sweeps } from "./sweep.ts"

const fixed = Backoff.fixed(100)
const gated = RetryPolicy.quotaGated({ cost: 5, throttlingCost: 3, timeoutCost: 2 })
const slow = fixed.pipe(gated)
const fast = Backoff.fixed(70).pipe(RetryPolicy.quotaGated({ cost: 4 }))
const botocore = BotocoreLegacy.forService(BotocoreLegacy.document, "dynamodb")

const sdkModes = Object.fromEntries(
  Object.entries(SdkModes).map(([name, make]) => [`SdkModes.${name}`, make().policy])
)

const policies: Readonly<Record<string, RetryPolicy.RetryPolicy<any, unknown, Services>>> = {
  "AwsModes.awsStandard": awsStandard,
  "AwsModes.awsStandard2026": awsStandard2026,
  "AwsModes.awsDynamoDB2026": awsDynamoDB2026,
  "AwsModes.awsAdaptive, RetryPolicy.requires(AdaptiveRateLimiter.AdaptiveRateLimiter)": awsAdaptive,
  "AwsModes.standard with a deadline": RetryPolicy.deadline("1 second")(AwsModes.standard()),
  "AwsModes.awsAdaptive with a deadline": RetryPolicy.deadline("1 second")(awsAdaptive),
  "AwsModes.standard2026 that polls": AwsModes.standard2026({ longPolling: true }),
  "Operations.forOperation that polls": Operations.forOperation({ service: "SQS", operation: "ReceiveMessage" }),
  "Operations.forOperation of DynamoDB": Operations.forOperation({ service: "DynamoDB", operation: "GetItem" }),
  "Operations.make": Operations.make({ maxAttempts: 2 })({ service: "DynamoDB Streams", operation: "GetRecords" }),
  "JavaScriptV2.policy": JavaScriptV2.policy({ maxRetries: 2 }),
  "JavaScriptV2.defaultPolicy": JavaScriptV2.defaultPolicy,
  "JavaScriptV2.dynamoDBPolicy": JavaScriptV2.dynamoDBPolicy,
  "JavaScriptV2.backoff": JavaScriptV2.backoff({ base: 50 }).pipe(gated),
  ...sdkModes,
  "JavaV1.policy": JavaV1.policy({ maxRetries: 2 }),
  "JavaV1.defaultPolicy": JavaV1.defaultPolicy,
  "JavaV1.dynamoDBPolicy": JavaV1.dynamoDBPolicy,
  "JavaV1.exponentialBackoff": JavaV1.exponentialBackoff({ baseDelay: 50, maxBackoff: 500 }).pipe(gated),
  "JavaV1.fullJitterBackoff": JavaV1.fullJitterBackoff({ baseDelay: 50, maxBackoff: 500 }).pipe(gated),
  "JavaV1.equalJitterBackoff": JavaV1.equalJitterBackoff({ baseDelay: 50, maxBackoff: 500 }).pipe(gated),
  "GeneralReference.policy": GeneralReference.policy(),
  "Kotlin.standardRetryStrategy": Kotlin.standardRetryStrategy().policy,
  "Kotlin.adaptiveRetryStrategy": Kotlin.adaptiveRetryStrategy().policy,
  "Kotlin.exponentialBackoffWithJitter": Kotlin.exponentialBackoffWithJitter().pipe(gated),
  "BotocoreLegacy.forService": botocore.policy,
  "Backoff.fixed": fixed.pipe(gated),
  "Backoff.linear": Backoff.linear(50).pipe(gated),
  "Backoff.fibonacci": Backoff.fibonacci(50).pipe(gated),
  "Backoff.exponential": Backoff.exponential(50, 2, { jitter: "equal" }).pipe(gated),
  "Backoff.decorrelated": Backoff.decorrelated(50, { cap: 500 }).pipe(gated),
  "RetryPolicy.fromDelay, RetryPolicy.quotaGated": RetryPolicy.fromDelay(({ attempt }) => attempt * 10).pipe(gated),
  "RetryPolicy.fromSchedule": RetryPolicy.fromSchedule(Schedule.spaced(100)).pipe(gated),
  "RetryPolicy.jittered, RetryPolicy.capped": fixed.pipe(RetryPolicy.jittered("full"), RetryPolicy.capped(50), gated),
  "RetryPolicy.honorRetryAfter": fixed.pipe(RetryPolicy.honorRetryAfter(), gated),
  "RetryPolicy.honorRetryAfter that stops": fixed.pipe(
    RetryPolicy.honorRetryAfter({ atMost: 1, beyond: "stop" }),
    gated
  ),
  "RetryGrpc.honorPushback": fixed.pipe(RetryGrpc.honorPushback(), gated),
  "RetryPolicy.maxAttempts": fixed.pipe(RetryPolicy.maxAttempts(2), gated),
  "RetryPolicy.whileRetryable": fixed.pipe(RetryPolicy.whileRetryable, gated),
  "RetryPolicy.whileMaybeRetryable": fixed.pipe(RetryPolicy.whileMaybeRetryable, gated),
  "RetryPolicy.withMaxAttempts": fixed.pipe(RetryPolicy.maxAttempts(9), RetryPolicy.withMaxAttempts(2), gated),
  "RetryPolicy.withMaybeRetryable": fixed.pipe(RetryPolicy.whileRetryable, RetryPolicy.withMaybeRetryable, gated),
  "RetryPolicy.withDeadline": fixed.pipe(RetryPolicy.deadline(1), RetryPolicy.withDeadline(150), gated),
  "RetryPolicy.withQuota": fixed.pipe(gated, RetryPolicy.withQuota({ cost: 3 })),
  "RetryPolicy.provided": fixed.pipe(gated, RetryPolicy.provided(RetryQuota.layer({ capacity: 100 }))),
  "RetryPolicy.outermostOnly": fixed.pipe(RetryPolicy.outermostOnly, gated),
  "RetryPolicy.deadline": fixed.pipe(RetryPolicy.deadline(150), gated),
  "RetryPolicy.withoutDeadline": fixed.pipe(RetryPolicy.deadline(150), RetryPolicy.withoutDeadline, gated),
  "RetryPolicy.mapDelay": fixed.pipe(RetryPolicy.mapDelay((_, { attempt }) => attempt > 2 ? undefined : 10), gated),
  "RetryPolicy.whenThrottled": fixed.pipe(RetryPolicy.whenThrottled(Backoff.fixed(300)), gated),
  "RetryPolicy.max": RetryPolicy.max([slow, fast]),
  "RetryPolicy.min": RetryPolicy.min([slow, fast]),
  "RetryPolicy.concat": RetryPolicy.concat(slow.pipe(RetryPolicy.maxAttempts(2)), fast),
  "RetryPolicy.choose": RetryPolicy.choose(({ attempt }) => attempt % 2 === 0 ? slow : fast),
  "RetryPolicy.while": fixed.pipe(RetryPolicy.while(({ attempt }) => attempt < 3), gated),
  "without a quota": fixed
}

/** Each policy with both drivers. To the schedule of a policy it is one function, wherever its delays come from. */
export const policySweeps: Sweeps = Object.fromEntries(
  Object.entries(policies).flatMap(([name, policy]): ReadonlyArray<readonly [string, Sweep]> => [
    [`Attempt.withRetry: ${name}`, { program: on((call) => withRetry(call, policy), 0) }],
    ...(/^(Backoff|JavaV1|JavaScriptV2)/.test(name) ? [] : [
      [`Effect.retry: ${name}`, {
        program: on((call) => Effect.retry(call, policy), 0)
      }] as const
    ])
  ])
)
