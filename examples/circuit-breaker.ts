/**
 * Effect's circuit breaker: inside the retry, around each send.
 *
 * The breaker then sees every send. It opens after the configured
 * number of failed sends, not of failed calls with several sends each;
 * the retries of running calls meet the open circuit and are not sent;
 * its probe is one send. An open circuit is an error like any other:
 * the policy waits until the circuit lets a probe through, if that is
 * soon, and otherwise ends the call immediately. Nothing was sent, so
 * `CircuitOpen` is safe to retry, and its `retryAfter` is a hint.
 */
import { Cause, Effect, Exit, Layer, Option } from "effect"
import {
  Backoff,
  RetryClassifier,
  RetryPolicy,
  withRetry
} from "effect-retry"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as CoolDown from "effect-retry/CoolDown"
import { CircuitBreaker } from "effect/persistence"
import { main, showMany, Unavailable } from "./support/program.ts"

/**
 * A service with transient failures is unhealthy, possibly for a stated
 * time. One that says no is healthy.
 */
export const classify = <A, E>(
  exit: Exit.Exit<A, E>
): CircuitBreaker.Outcome => {
  if (Exit.isSuccess(exit)) return CircuitBreaker.success
  const error = Cause.findErrorOption(exit.cause)
  if (Option.isNone(error)) return CircuitBreaker.failure()
  return Option.match(RetryClassifier.defaultClassifier(error.value), {
    onNone: () => CircuitBreaker.success,
    onSome: ({ retryAfter, safety }) =>
      safety === "No"
        ? CircuitBreaker.success
        : CircuitBreaker.failure({ retryAfter })
  })
}

/**
 * Four attempts. They wait for an open circuit only if it opens within
 * two seconds.
 */
export const policy = Backoff.exponential("100 millis").pipe(
  RetryPolicy.jittered("full"),
  RetryPolicy.honorRetryAfter({ atMost: "2 seconds", beyond: "stop" }),
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/**
 * From the inside out: the send, its timeout, so that a hanging send
 * counts as failed, the breaker, the retry.
 */
export const order = <A, E>(
  breaker: CircuitBreaker.CircuitBreaker,
  send: Effect.Effect<A, E>
) =>
  send.pipe(
    Effect.timeout("1 second"),
    breaker.execute({ key: "orders", classify }),
    withRetry(policy)
  )

/**
 * The other way around: the breaker sees whole calls, and a call that
 * passed it keeps sending even if it has opened since.
 */
export const orderTheOtherWayRound = <A, E>(
  breaker: CircuitBreaker.CircuitBreaker,
  send: Effect.Effect<A, E>
) =>
  send.pipe(
    Effect.timeout("1 second"),
    withRetry(policy),
    breaker.execute({ key: "orders", classify })
  )

const isRejection = (error: unknown): boolean =>
  error instanceof CircuitBreaker.CircuitBreakerError &&
  error.reason._tag !== "CircuitBreakerStoreError"

/**
 * Waits for an open circuit, and retries nothing else: that was done
 * inside.
 */
export const patience = RetryPolicy.fromDelay(({ attempt, error }) =>
  isRejection(error) ? 100 * 2 ** (attempt - 1) : undefined
).pipe(
  RetryPolicy.jittered("full"),
  RetryPolicy.honorRetryAfter({ atMost: "2 seconds", beyond: "stop" }),
  RetryPolicy.maxAttempts(4)
)

export const orderPatiently = <A, E>(
  breaker: CircuitBreaker.CircuitBreaker,
  send: Effect.Effect<A, E>
) => orderTheOtherWayRound(breaker, send).pipe(withRetry(patience))

/** It needs the gate: a program without the layer does not compile. */
const checked = policy.pipe(
  RetryPolicy.requires(CircuitBreakerGate.CircuitBreakerGate)
)

/**
 * As a gate: no call names the breaker, every send asks it. A refused
 * send costs nothing and ends the call.
 */
export const gated = CircuitBreakerGate.layer({ key: "orders" }).pipe(
  Layer.provideMerge(
    CircuitBreaker.layer({
      tripPolicy: CircuitBreaker.consecutive(5),
      openDuration: "30 seconds"
    })
  )
)

/**
 * With a cool-down: an open circuit closes it, and once the circuit
 * lets a probe through, sends follow a few at a time.
 */
export const ramped = Layer.merge(gated, CoolDown.layer())

export const orderGated = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(Effect.timeout("1 second"), withRetry(checked))

const calls = { calls: 20, everyMillis: 100 }
const failing = Effect.suspend(() => Effect.fail(new Unavailable()))

/** Its circuit opens after five failures, for 30 seconds. */
const showBroken = (title: string, program: typeof order) =>
  Effect.flatMap(
    CircuitBreaker.make({
      tripPolicy: CircuitBreaker.consecutive(5),
      openDuration: "30 seconds"
    }),
    (breaker) =>
      showMany(title, calls, failing, (send) => program(breaker, send))
  ).pipe(
    Effect.scoped,
    Effect.provide(CircuitBreaker.layerStoreMemory())
  )

main(
  import.meta.url,
  showBroken("inside the retry", order),
  showBroken("around the retry", orderTheOtherWayRound),
  showMany("as a gate", calls, failing, orderGated).pipe(
    Effect.provide(
      gated.pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))
    )
  )
)
