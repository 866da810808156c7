/**
 * What the examples in doc comments leave to the reader: the calls and clients of a program, its requests, its settings.
 * Under `TestClock` every call is throttled once before it is answered; on a real clock nothing fails, so nothing waits.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { assert } from "@effect/vitest"
import type { Metadata } from "@grpc/grpc-js"
import { HttpResponse } from "@smithy/core/protocols"
import { awsStandard, Hedge, ResourceLimiters, RetryQuota, withRetry } from "effect-retry"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import type * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as RetryConfig from "effect-retry/RetryConfig"
import type * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"

class Throttled extends Data.Error<{ readonly name: string; readonly $metadata: object }> {}
const throttled = new Throttled({ name: "ThrottlingException", $metadata: { httpStatusCode: 400 } })

export class ValidationError extends Data.TaggedError("ValidationError") {}

export type Table = { readonly status: "CREATING" | "ACTIVE" }
export type Job = { readonly status: "SUCCESS" | "NOT_READY" }
export type Item = { readonly id: string }
export type GetItemRequest = { readonly id: string }

const throttledOnce = (): Effect.Effect<string, Throttled> => {
  let sends = 0
  return Effect.clockWith((clock) =>
    "adjust" in clock && sends++ % 2 === 0 ? Effect.fail(throttled) : Effect.succeed("answer")
  )
}
export const call = throttledOnce()
export const callDynamo = throttledOnce()
export const getItem = throttledOnce()
export const send = (_headers: RequestHeaders.RequestHeaders) => call

const requestHandler = {
  handle: async () => ({
    response: new HttpResponse({ statusCode: 200, headers: {}, body: new TextEncoder().encode("{}") })
  })
}

/** The method of a client: with a promise, or with a callback as in gRPC. */
function item(request: GetItemRequest, options: { readonly signal: AbortSignal }): Promise<Item>
function item(
  request: GetItemRequest,
  metadata: Metadata,
  options: { readonly deadline: number },
  callback: RetryGrpc.UnaryCallback<Item>
): { readonly cancel: () => void }
function item(request: GetItemRequest, ...rest: ReadonlyArray<unknown>): unknown {
  const callback = rest[2] as RetryGrpc.UnaryCallback<Item> | undefined
  if (callback === undefined) return Promise.resolve(request)
  callback(null, request)
  return { cancel: () => {} }
}

/** A client of the SDK that has the method of other clients too. */
export const client = Object.assign(
  new DynamoDBClient({
    region: "eu-west-1",
    credentials: { accessKeyId: "id", secretAccessKey: "key" },
    requestHandler
  }),
  { getItem: item }
)
export const get = (path: string, _options: { readonly signal: AbortSignal }) => Promise.resolve(path)
export const key = { id: "1" }
export const TableName = "orders"
export const Key = { id: { S: "1" } }
export const signal = new AbortController().signal

/** A model of effect/ai. */
export const model = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({ generateText: () => Effect.succeed([]), streamText: () => Stream.empty })
)

export const policy = awsStandard
export const program = withRetry(call, policy)
export const strategy = Kotlin.standardRetryStrategy()
export const json = JSON.stringify({
  name: "orders",
  duration: "1 second",
  fleets: [{ name: "shop", to: "orders", rate: 10, policy: "none" }],
  services: [{ name: "orders", capacity: 100, outages: [{ kind: "fail", from: 0, to: 100 }] }]
})

let locked = false
export const isLocked = () => locked
export const withLock = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(Effect.sync(() => locked = true), () => self, () => Effect.sync(() => locked = false))

export const console = { log: (line: string): void => assert.isNotEmpty(line) }

/** Compares a value with what an example says, to as many digits as it says. */
export const claim = (value: unknown, said: string): void =>
  assert.strictEqual(
    typeof value === "number" ? value.toFixed(said.split(".")[1]?.length ?? 0) : JSON.stringify(value),
    said
  )

/** What the environment of a program offers. */
export const services = Layer.mergeAll(
  ResourceLimiters.layer(),
  RetryStrategy.layer(awsStandard),
  Hedge.layer(),
  RetryConfig.layer({ default: {} }),
  FileSystem.layerNoop({}),
  WorkflowEngine.layerMemory,
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}"))))
  )
).pipe(Layer.provideMerge(RetryQuota.layer()))

class BankDown extends Schema.TaggedError<BankDown>()("BankDown", {}) {}

export const Pay = Workflow.make("Pay", {
  payload: Schema.Struct({ order: Schema.String }),
  idempotencyKey: ({ order }: { readonly order: string }) => order,
  success: Schema.String,
  error: BankDown
})

export const charge = (order: string) =>
  Activity.make({ name: "charge", success: Schema.String, error: BankDown, execute: Effect.succeed(order) })
