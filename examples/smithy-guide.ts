/**
 * Smithy's retry guide: errors that say what they are, and a strategy
 * for clients that own their request loop.
 *
 * The traits of a model become annotations of its error classes; every
 * policy reads them. A strategy decides like its policy, but the client
 * asks it: before the first attempt, after each failure, after a
 * success. `RetryStrategy.run` is the loop of the guide; a generated
 * client, or a promise, can be the loop instead.
 */
import { Duration, Effect, Layer, Schema } from "effect"
import { awsStandard2026, RetryQuota } from "effect-retry"
import * as SmithyGuide from "effect-retry/aws/legacy/SmithyGuide"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import { main, show } from "./support/program.ts"

/** `@retryable(throttling: true) @error("client") @httpError(429)` */
export class TooManyRequests
  extends Schema.TaggedError<TooManyRequests>()("TooManyRequests", {
    retryAfter: Schema.optional(Schema.Duration)
  }, {
    ...SmithyGuide.retryable({ throttling: true }),
    ...SmithyGuide.error("client"),
    ...SmithyGuide.httpError(429)
  })
{}

/** `@error("client") @httpError(404)` */
export class NoSuchOrder
  extends Schema.TaggedError<NoSuchOrder>()("NoSuchOrder", {
    id: Schema.String
  }, { ...SmithyGuide.error("client"), ...SmithyGuide.httpError(404) })
{}

/**
 * The loop of the guide, with any strategy that the client is given.
 */
export const getOrder = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(RetryStrategy.run)

/** The standard mode of AWS as a strategy. */
export const standard = RetryStrategy.layer(awsStandard2026).pipe(
  Layer.provideMerge(RetryQuota.layer())
)

/** The guide's own example. */
export const example = SmithyGuide.layer().pipe(
  Layer.provideMerge(RetryQuota.layer())
)

/**
 * Your own loop, which reports how long it waited. An unused token is
 * abandoned: it holds quota.
 */
export const waited = <E>(send: Effect.Effect<string, E>) =>
  Effect.gen(function*() {
    const strategy = yield* RetryStrategy.RetryStrategy
    const first = yield* strategy.acquireInitialToken()
    const failure = yield* Effect.flip(
      Effect.tap(send, () => strategy.recordSuccess(first))
    )
    const second = yield* strategy.refreshRetryToken(first, failure)
    yield* Effect.onInterrupt(
      Effect.sleep(second.delay),
      () => second.abandon
    )
    yield* second.markSent
    const order = yield* send
    yield* strategy.recordSuccess(second)
    return `${order} after ${Duration.format(second.delay)}`
  })

const busy = () => new TooManyRequests({})

main(
  import.meta.url,
  Effect.gen(function*() {
    yield* show("too many requests", [busy(), busy()], getOrder)
    yield* show(
      "no such order",
      [new NoSuchOrder({ id: "1" })],
      getOrder
    )
    yield* show("your own loop", [busy()], waited)
  }).pipe(Effect.provide(standard)),
  show("the guide's own example", [busy(), busy()], getOrder).pipe(
    Effect.provide(example)
  )
)
