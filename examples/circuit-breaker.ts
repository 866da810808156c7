/**
 * Effect's circuit breaker: inside the retry, around each send.
 *
 * The breaker then hears of every send. It opens after as many failed sends as it is told, not after as many failed calls
 * of several sends each; the retries of calls that run already meet the open circuit and are not sent; its probe is one
 * send. An open circuit is an error like another: the policy waits until the circuit lets a probe through, if that is
 * soon, and ends the call at once if it is not. Nothing was sent, so `CircuitOpen` is safe to retry, and its `retryAfter`
 * is a hint.
 */
import { Cause, Effect, Exit, Layer, Option } from "effect"
import { Backoff, RetryClassifier, RetryPolicy, withRetry } from "effect-retry"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as CoolDown from "effect-retry/CoolDown"
import { CircuitBreaker } from "effect/persistence"

/** A service that fails in a way that may pass is ill, and says for how long. One that says no is well. */
export const classify = <A, E>(exit: Exit.Exit<A, E>): CircuitBreaker.Outcome => {
  if (Exit.isSuccess(exit)) return CircuitBreaker.success
  const error = Cause.findErrorOption(exit.cause)
  if (Option.isNone(error)) return CircuitBreaker.failure()
  return Option.match(RetryClassifier.defaultClassifier(error.value), {
    onNone: () => CircuitBreaker.success,
    onSome: ({ retryAfter, safety }) =>
      safety === "No" ? CircuitBreaker.success : CircuitBreaker.failure({ retryAfter })
  })
}

/** Four attempts. An open circuit is waited for if it is open for no more than two seconds. */
export const policy = Backoff.exponential({ base: "100 millis", factor: 2 }).pipe(
  RetryPolicy.jittered("full"),
  RetryPolicy.honorRetryAfter({ atMost: "2 seconds", beyond: "stop" }),
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/** From the inside out: the send, its time-out, so that a send that hangs counts as failed, the breaker, the retry. */
export const order = <A, E>(breaker: CircuitBreaker.CircuitBreaker, send: Effect.Effect<A, E>) =>
  send.pipe(
    Effect.timeout("1 second"),
    breaker.execute({ key: "orders", classify }),
    withRetry(policy)
  )

/** The other way round: the breaker hears of whole calls, and whoever has passed it sends on though it has opened since. */
export const orderTheOtherWayRound = <A, E>(breaker: CircuitBreaker.CircuitBreaker, send: Effect.Effect<A, E>) =>
  send.pipe(
    Effect.timeout("1 second"),
    withRetry(policy),
    breaker.execute({ key: "orders", classify })
  )

const isRejection = (error: unknown): boolean =>
  error instanceof CircuitBreaker.CircuitBreakerError && error.reason._tag !== "CircuitBreakerStoreError"

/** Waits for a circuit that is open, and retries nothing else: that was done inside. */
export const patience = RetryPolicy.fromDelay(({ attempt, error }) =>
  isRejection(error) ? 100 * 2 ** (attempt - 1) : undefined
).pipe(
  RetryPolicy.jittered("full"),
  RetryPolicy.honorRetryAfter({ atMost: "2 seconds", beyond: "stop" }),
  RetryPolicy.maxAttempts(4)
)

export const orderPatiently = <A, E>(breaker: CircuitBreaker.CircuitBreaker, send: Effect.Effect<A, E>) =>
  orderTheOtherWayRound(breaker, send).pipe(withRetry(patience))

/** As a gate: no call names the breaker, every send asks it. What it refuses costs nothing and ends the call. */
export const gated = CircuitBreakerGate.layer({ key: "orders" }).pipe(
  Layer.provideMerge(CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(5), openDuration: "30 seconds" }))
)

/** With a cool-down an open circuit closes it: when the circuit lets a probe through, sends follow one after the other. */
export const ramped = Layer.merge(gated, CoolDown.layer())

export const orderGated = <A, E>(send: Effect.Effect<A, E>) => send.pipe(Effect.timeout("1 second"), withRetry(policy))
