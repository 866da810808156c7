import { awsAdaptive, awsStandard, RetryPromise, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import { busy, dynamo, flush, getItem, ok, throttle } from "../../utils/awsSdk.ts"
import { clientOf } from "../utils/http.ts"
import type { Program, Services, Sweeps } from "./sweep.ts"

const unary = Effect.suspend(() => {
  let sends = 0
  const call = RetryGrpc.unary<number>((_, callback) => {
    const isFirst = ++sends === 1
    queueMicrotask(() =>
      isFirst
        ? callback(Object.assign(new Error("14"), { code: 14, details: "", metadata: new Map() }))
        : callback(null, 1)
    )
    return { cancel: () => undefined }
  })
  return withRetry(call, awsAdaptive)
})

/** A promise with the signal of the interruption; the work it started ends before the sweep checks. */
const promised = (call: (signal: AbortSignal) => PromiseLike<unknown>): Program<never> =>
  Effect.ensuring(Effect.tryPromise(call), flush)

/** A client of the SDK that retries with our strategy. */
const withStrategy = (policy: typeof awsAdaptive, plugin: boolean): Program =>
  Effect.flatMap(AwsSdk.makeRetryStrategy(policy), (retryStrategy) => {
    const { client } = dynamo([busy, throttle, ok], { retryStrategy, maxAttempts: retryStrategy.maxAttempts })
    if (plugin) client.middlewareStack.use(AwsSdk.abortPlugin)
    return promised((abortSignal) => client.send(getItem(), { abortSignal }))
  })

/** A function that fails twice, then succeeds. */
const rejecting = () => {
  let sends = 0
  const errors = [new Kit.Transient(), new Kit.Throttled({})]
  return () => sends < errors.length ? Promise.reject(errors[sends++]) : Promise.resolve("ok")
}

/** Adapters for clients of other libraries. */
export const adapterSweeps: Sweeps = {
  "RetryHttp.retry": {
    program: Effect.suspend(() => {
      const answers = [{ status: 503 }, { status: 429, headers: { "retry-after": "1" } }, { status: 200 }]
      return RetryHttp.retry(clientOf(answers).client, awsStandard, { attemptTimeout: "1 second" }).get("http://a/")
    })
  },
  "RetryHttp.retry with a limiter": {
    program: Effect.suspend(() =>
      RetryHttp.retry(clientOf([{ status: 503 }, { status: 200 }]).client, awsAdaptive).get("http://a/")
    )
  },
  "RetryHttp.retry without an answer": {
    program: Effect.suspend(() =>
      RetryHttp.retry(clientOf(["never"]).client, awsStandard, { attemptTimeout: 50 }).get("http://a/")
    )
  },
  "RetryHttp.layer": {
    program: Effect.suspend(() =>
      Effect.flatMap(HttpClient.HttpClient, (client) => client.get("http://a/")).pipe(
        Effect.provide(RetryHttp.layer(awsStandard)),
        Effect.provideService(HttpClient.HttpClient, clientOf([{ status: 503 }, { status: 200 }]).client)
      )
    )
  },
  "RetryHttp.transform": {
    program: Effect.suspend(() =>
      Effect.flatMap(
        RetryHttp.transform(awsStandard),
        (apply) => apply(clientOf([{ status: 503 }, { status: 200 }]).client).get("http://a/")
      )
    )
  },
  "RetryGrpc.unary": { program: unary },
  "AwsSdk.send": {
    program: Effect.suspend(() => withRetry(AwsSdk.send(dynamo([busy, throttle, ok]).client, getItem()), awsAdaptive))
  },
  "AwsSdk.sendWithRetry": {
    program: Effect.suspend(() => AwsSdk.sendWithRetry(dynamo([busy, throttle, ok]).client, getItem(), awsAdaptive))
  },
  "AwsSdk.makeRetryStrategy": { program: withStrategy(awsAdaptive, false) },
  "AwsSdk.makeRetryStrategy, AwsSdk.abortPlugin": { program: withStrategy(awsAdaptive, true) },
  "RetryPromise.retryPromise": {
    program: Effect.flatMap(
      Effect.context<Services>(),
      (context) => promised((signal) => RetryPromise.retryPromise(rejecting(), awsAdaptive, { context, signal }))
    )
  },
  "RetryPromise.make": {
    program: Effect.flatMap(
      Effect.context<Services>(),
      (context) => promised((signal) => RetryPromise.make(awsAdaptive, { context })(rejecting(), { signal }))
    )
  }
}
