/**
 * gRPC: a unary call of grpc-js, canceled with its fiber, retried as
 * the server allows.
 *
 * The default classifier knows the statuses and the server's pushback.
 * The program adds what it knows about the methods: these only read, so
 * they can run again whatever happened to them.
 */
import {
  type CallOptions,
  Client,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServiceError,
  status
} from "@grpc/grpc-js"
import { Effect } from "effect"
import {
  Backoff,
  RetryClassifier,
  RetryPolicy,
  withRetry
} from "effect-retry"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import { main, print } from "./support/program.ts"

/** A method of a client, as generated for grpc-js. */
export interface Stock {
  readonly get: (
    item: string,
    metadata: Metadata,
    options: CallOptions,
    callback: (error: ServiceError | null, amount?: number) => void
  ) => ClientUnaryCall
}

/**
 * One send. It may take half a second; a retry tells the server so, in
 * its metadata.
 */
export const send = (stock: Stock, item: string) =>
  RetryGrpc.unary<number>(
    (attempt, callback) =>
      stock.get(item, attempt.metadata(new Metadata()), {
        deadline: attempt.deadline
      }, callback),
    { timeout: "500 millis" }
  )

/**
 * The retry policy of a gRPC service config with the same numbers: 4
 * attempts, 0.1 s times 2 up to 1 s, a fifth of jitter.
 */
export const policy = Backoff.exponential("100 millis", 2, {
  cap: "1 second"
}).pipe(
  RetryPolicy.jittered({ proportional: 0.2 }),
  RetryGrpc.honorPushback(),
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/**
 * After a deadline it is unknown whether the method ran. One that only
 * reads is retried all the same.
 */
export const classifier = RetryClassifier.layer(
  RetryClassifier.orElse(
    RetryGrpc.makeClassifier({ idempotent: true }),
    RetryClassifier.defaultClassifier
  )
)

export const amountOf = (stock: Stock, item: string) =>
  send(stock, item).pipe(withRetry(policy), Effect.provide(classifier))

/**
 * A read with the hedging policy of its service config: up to three
 * sends, half a second apart.
 */
export const hedgedAmountOf = (stock: Stock, item: string) =>
  send(stock, item).pipe(
    RetryGrpc.hedged({
      maxAttempts: 3,
      hedgingDelay: "0.5s",
      nonFatalStatusCodes: ["UNAVAILABLE"]
    })
  )

/** A server of grpc-js that is unavailable twice, and a client. */
const stockOf = Effect.gen(function*() {
  let sends = 0
  const method = {
    path: "/Stock/Get",
    requestStream: false,
    responseStream: false,
    requestSerialize: (item: string) => Buffer.from(item),
    requestDeserialize: String,
    responseSerialize: (amount: number) => Buffer.from(String(amount)),
    responseDeserialize: Number
  } as const
  const server = new Server()
  server.addService({ get: method }, {
    get: (_: unknown, callback: sendUnaryData<number>) => {
      sends++
      console.log(`send ${sends}: ${sends < 3 ? "UNAVAILABLE" : "OK"}`)
      if (sends < 3) callback({ code: status.UNAVAILABLE })
      else callback(null, 12)
    }
  })
  const port = yield* Effect.callback<number>((resume) =>
    server.bindAsync(
      "127.0.0.1:0",
      ServerCredentials.createInsecure(),
      (_, port) => resume(Effect.succeed(port))
    )
  )
  const client = new Client(
    `127.0.0.1:${port}`,
    credentials.createInsecure()
  )
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => (client.close(), server.forceShutdown()))
  )
  const stock: Stock = {
    get: (...request) =>
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        ...request
      )
  }
  return stock
})

main(
  import.meta.url,
  Effect.scoped(Effect.gen(function*() {
    yield* print(
      `${yield* amountOf(yield* stockOf, "shoes")} pairs of shoes`
    )
  }))
)
