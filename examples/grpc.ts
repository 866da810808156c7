/**
 * gRPC: a unary call of grpc-js, cancelled with its fiber, retried as the server allows.
 *
 * The statuses are known to the default classifier, the server's pushback too. What is known of the methods is told beside:
 * these only read, so they may run again whatever became of them.
 */
import { type CallOptions, type ClientUnaryCall, Metadata, type ServiceError } from "@grpc/grpc-js"
import { Effect } from "effect"
import { Backoff, RetryClassifier, RetryPolicy, withRetry } from "effect-retry"
import * as RetryGrpc from "effect-retry/RetryGrpc"

/** A method of a client, as it is generated for grpc-js. */
export interface Stock {
  readonly get: (
    item: string,
    metadata: Metadata,
    options: CallOptions,
    callback: (error: ServiceError | null, amount?: number) => void
  ) => ClientUnaryCall
}

/** One send. It may take half a second; a retry says so to the server, in its metadata. */
export const send = (stock: Stock, item: string) =>
  RetryGrpc.unary<number>(
    (attempt, callback) => stock.get(item, attempt.metadata(new Metadata()), { deadline: attempt.deadline }, callback),
    { timeout: "500 millis" }
  )

/** The retry policy of a gRPC service config with the same numbers: 4 attempts, 0.1 s times 2 up to 1 s, a fifth of jitter. */
export const policy = Backoff.exponential({ base: "100 millis", factor: 2, cap: "1 second" }).pipe(
  RetryPolicy.jittered({ proportional: 0.2 }),
  RetryGrpc.honorPushback(),
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/** After a deadline nobody knows whether the method was carried out. One that only reads is retried all the same. */
export const classifier = RetryClassifier.layer(
  RetryClassifier.orElse(RetryGrpc.makeClassifier({ idempotent: true }), RetryClassifier.defaultClassifier)
)

export const amountOf = (stock: Stock, item: string) =>
  send(stock, item).pipe(withRetry(policy), Effect.provide(classifier))

/** A read with the hedging policy of its service config: up to three sends, half a second apart. */
export const hedgedAmountOf = (stock: Stock, item: string) =>
  send(stock, item).pipe(
    RetryGrpc.hedged({ maxAttempts: 3, hedgingDelay: "0.5s", nonFatalStatusCodes: ["UNAVAILABLE"] })
  )
