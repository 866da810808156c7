import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { awsDynamoDB2026 } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"

/** Call it as usual. Clients with one strategy share its quota. */
export const client = new DynamoDBClient({
  retryStrategy: AwsSdk.retryStrategy(awsDynamoDB2026)
})
