/**
 * The AWS SDK for JavaScript v3, both ways: its calls as effects, or
 * one of our policies in the client's own loop.
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
import {
  awsAdaptive,
  awsDynamoDB2026,
  awsStandard2026,
  withRetry
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import { createReadStream } from "node:fs"
import { main, print } from "./support/program.ts"
import { answering, withServer } from "./support/server.ts"

/**
 * One send as an effect; the client's own retries are off.
 * `maxAttempts` is for a header.
 */
export const getOrder = (client: DynamoDBClient, id: string) =>
  AwsSdk.send(
    client,
    new GetItemCommand({ TableName: "orders", Key: { id: { S: id } } }),
    {
      maxAttempts: awsDynamoDB2026
    }
  ).pipe(
    withRetry(awsDynamoDB2026),
    Effect.map(({ Item }) => Item)
  )

/**
 * The short form, including the header. Errors are those of the SDK,
 * the same objects.
 */
export const create = (client: DynamoDBClient, id: string) => {
  const put = new PutItemCommand({
    TableName: "orders",
    Item: { id: { S: id } },
    ConditionExpression: "attribute_not_exists(id)"
  })
  return AwsSdk.sendWithRetry(client, put, awsDynamoDB2026).pipe(
    Effect.as("created"),
    Effect.catchIf(
      (error) => error instanceof ConditionalCheckFailedException,
      () => Effect.succeed("was there")
    )
  )
}

/**
 * A stream can be sent only once. A function that makes the command
 * makes a new stream for every attempt.
 */
export const upload = (client: S3Client, path: string) =>
  AwsSdk.send(
    client,
    () =>
      new PutObjectCommand({
        Bucket: "backup",
        Key: path,
        Body: createReadStream(path)
      })
  ).pipe(
    withRetry(awsStandard2026)
  )

/**
 * A client whose own calls are retried by one of our policies. The
 * plug-in is for calls that are aborted.
 */
export const makeClient = (config: DynamoDBClientConfig) =>
  Effect.map(AwsSdk.makeRetryStrategy(awsAdaptive), (retryStrategy) => {
    const client = new DynamoDBClient({
      ...config,
      retryStrategy,
      maxAttempts: retryStrategy.maxAttempts
    })
    client.middlewareStack.use(AwsSdk.abortPlugin)
    return client
  })

/**
 * For code without Effect: one line of the client's settings. The
 * strategy has its own quota.
 */
export const plainClient = (config: DynamoDBClientConfig) =>
  new DynamoDBClient({
    ...config,
    retryStrategy: AwsSdk.retryStrategy(awsDynamoDB2026)
  })

/** A stand-in for DynamoDB, which is unavailable twice. */
const table = answering(
  [503, 503],
  JSON.stringify({ Item: { id: { S: "1" } } })
)

const clientOf = (endpoint: string) =>
  new DynamoDBClient({
    endpoint,
    region: "eu-west-1",
    credentials: { accessKeyId: "id", secretAccessKey: "secret" }
  })

main(
  import.meta.url,
  withServer(table, (url) => getOrder(clientOf(url), "1")).pipe(
    Effect.flatMap((item) => print(`order ${item?.id?.S}`))
  )
)
