import { GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb"
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3"
import { assert, describe, it } from "@effect/vitest"
import { awsStandard, Hedge, RetryQuota, type RetryQuotaStore, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as Effect from "effect/Effect"
import { Readable } from "node:stream"
import { type Answer, busy, dynamo, flush, getItem, handlerOf, invalid, ok, played, settings } from "../utils/awsSdk.ts"

const unlimited: RetryQuotaStore.RetryQuotaStore = {
  capacity: Infinity,
  successIncrement: 0,
  firstAttemptCost: 0,
  onExceeded: "stop",
  reserve: (cost) => ({ cost, giveBack: () => true, spend: () => true }),
  deposit: () => {},
  balance: () => Infinity
}

const services = Effect.provide([Hedge.layer({ budget: unlimited }), RetryQuota.layer()])

const hangs: Answer = { hangs: true }

const after = { after: "50 millis" } as const

const numbers = (requests: ReadonlyArray<{ readonly headers: Record<string, string> }>) =>
  requests.map(({ headers }) => headers["amz-sdk-request"])

describe("AwsSdk.sendHedged", () => {
  it.effect("sends a read again when it is late, and aborts the first", () =>
    Effect.gen(function*() {
      const { client, requests } = dynamo([hangs, ok])
      const output = yield* played(AwsSdk.sendHedged(client, getItem(), after))
      yield* flush
      assert.strictEqual(output.$metadata.attempts, 2)
      assert.deepStrictEqual(requests.map(({ aborted }) => aborted()), [true, false])
      assert.deepStrictEqual(numbers(requests), ["attempt=1", "attempt=2"])
      assert.strictEqual(new Set(requests.map(({ headers }) => headers["amz-sdk-invocation-id"])).size, 1)
    }).pipe(services))

  it.effect("makes the next one after a transient failure, and ends at any other", () =>
    Effect.gen(function*() {
      const passing = dynamo([busy, ok])
      yield* played(AwsSdk.sendHedged(passing.client, getItem(), after))
      assert.strictEqual(passing.requests.length, 2)
      const final = dynamo([invalid, ok])
      const error = yield* Effect.flip(played(AwsSdk.sendHedged(final.client, getItem(), after)))
      assert.deepStrictEqual([error.name, final.requests.length], ["ValidationException", 1])
    }).pipe(services))

  it.effect("is retried like any send", () =>
    Effect.gen(function*() {
      const { client, requests } = dynamo([busy, busy, ok])
      const output = yield* played(withRetry(AwsSdk.sendHedged(client, getItem(), after), awsStandard))
      assert.deepStrictEqual(numbers(requests), ["attempt=1", "attempt=2", "attempt=3"])
      assert.strictEqual(output.$metadata.attempts, 3)
      assert.strictEqual(new Set(requests.map(({ headers }) => headers["amz-sdk-invocation-id"])).size, 1)
    }).pipe(services))

  const put = () => new PutItemCommand({ TableName: "t", Item: { id: { S: "1" } } })

  it.effect("sends a write once, unless it says that it may run twice", () =>
    Effect.gen(function*() {
      const once = dynamo([busy, ok])
      const error = yield* Effect.flip(played(AwsSdk.sendHedged(once.client, put(), after)))
      assert.deepStrictEqual([error.name, once.requests.length], ["InternalServerError", 1])
      const twice = dynamo([busy, ok])
      yield* played(AwsSdk.sendHedged(twice.client, put(), { ...after, repeatable: true }))
      assert.strictEqual(twice.requests.length, 2)
      const read = dynamo([busy, ok])
      yield* Effect.flip(played(AwsSdk.sendHedged(read.client, getItem(), { ...after, repeatable: false })))
      assert.strictEqual(read.requests.length, 1)
    }).pipe(services))

  it.effect("does not hedge a long poll, whose loser would take a task with it", () =>
    Effect.gen(function*() {
      class GetActivityTaskCommand extends GetItemCommand {}
      const { client, requests } = dynamo([busy, ok])
      const poll = new GetActivityTaskCommand({ TableName: "t", Key: { id: { S: "1" } } })
      yield* Effect.flip(played(AwsSdk.sendHedged(client, poll, after)))
      assert.strictEqual(requests.length, 1)
    }).pipe(services))

  for (const repeatable of [true, false]) {
    it.effect(`makes one command for each send, ${repeatable ? "hedged" : "not hedged"}`, () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([hangs, ok])
        let made = 0
        const command = () => {
          made++
          return getItem()
        }
        const sent = AwsSdk.sendHedged(client, command, { ...after, repeatable })
        for (let call = 0; call < 2; call++) yield* Effect.timeoutOption(played(sent), 1000)
        assert.strictEqual(made, requests.length)
      }).pipe(services))
  }

  it.effect("never sends a stream twice", () =>
    Effect.gen(function*() {
      const { handler, requests } = handlerOf([{ status: 503, body: "<Error><Code>SlowDown</Code></Error>" }])
      const client = new S3Client({
        ...settings,
        requestHandler: handler,
        requestChecksumCalculation: "WHEN_REQUIRED"
      })
      const command = new PutObjectCommand({
        Bucket: "bucket",
        Key: "key",
        Body: Readable.from([Buffer.from("abc")]),
        ContentLength: 3
      })
      yield* Effect.flip(played(AwsSdk.sendHedged(client, command, { ...after, repeatable: true })))
      assert.strictEqual(requests.length, 1)
    }).pipe(services))

  it("refuses impossible options in its own name", () => {
    assert.throws(() => AwsSdk.sendHedged(dynamo([ok]).client, getItem(), { atMost: 11 }), /AwsSdk\.sendHedged.*atMost/)
  })
})
