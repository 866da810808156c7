/**
 * The AWS SDK for JavaScript v3, both ways: its calls as effects, or a policy of ours in the client's own loop.
 */
import {
  ConditionalCheckFailedException,
  DynamoDBClient,
  type DynamoDBClientConfig,
  GetItemCommand,
  PutItemCommand
} from "@aws-sdk/client-dynamodb"
import { PutObjectCommand, type S3Client } from "@aws-sdk/client-s3"
import { Effect } from "effect"
import { awsAdaptive, awsDynamoDB2026, awsStandard2026, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import { createReadStream } from "node:fs"

/** One send as an effect, whatever the client would retry itself. `maxAttempts` is for a header. */
export const getOrder = (client: DynamoDBClient, id: string) =>
  AwsSdk.send(client, new GetItemCommand({ TableName: "orders", Key: { id: { S: id } } }), {
    maxAttempts: awsDynamoDB2026
  }).pipe(
    withRetry(awsDynamoDB2026),
    Effect.map(({ Item }) => Item)
  )

/** In one word, the header included. Errors are those of the SDK, the same objects. */
export const create = (client: DynamoDBClient, id: string) => {
  const put = new PutItemCommand({
    TableName: "orders",
    Item: { id: { S: id } },
    ConditionExpression: "attribute_not_exists(id)"
  })
  return AwsSdk.sendWithRetry(client, put, awsDynamoDB2026).pipe(
    Effect.as("created"),
    Effect.catchIf((error) => error instanceof ConditionalCheckFailedException, () => Effect.succeed("was there"))
  )
}

/** A stream is sent once. A function that makes the command makes another stream for every attempt. */
export const upload = (client: S3Client, path: string) =>
  AwsSdk.send(client, () => new PutObjectCommand({ Bucket: "backup", Key: path, Body: createReadStream(path) })).pipe(
    withRetry(awsStandard2026)
  )

/** A client whose own calls are retried by a policy of ours. The plug-in is for calls that are aborted. */
export const makeClient = (config: DynamoDBClientConfig) =>
  Effect.map(AwsSdk.makeRetryStrategy(awsAdaptive), (retryStrategy) => {
    const client = new DynamoDBClient({ ...config, retryStrategy, maxAttempts: retryStrategy.maxAttempts })
    client.middlewareStack.use(AwsSdk.abortPlugin)
    return client
  })
