import {
  DynamoDBClient,
  type DynamoDBClientConfig
} from "@aws-sdk/client-dynamodb"
import { Effect } from "effect"
import { awsStandard2026, RetryQuota } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"

/** Call it as usual. Clients that get one strategy share its quota. */
export const makeClient = async (config: DynamoDBClientConfig) => {
  const strategy = AwsSdk.makeRetryStrategy(awsStandard2026).pipe(
    Effect.provide(RetryQuota.layer())
  )
  const retryStrategy = await Effect.runPromise(strategy)
  return new DynamoDBClient({ ...config, retryStrategy })
}
