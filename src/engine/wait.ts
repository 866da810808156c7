import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { safely } from "../internal/sharing.ts"
import type { Ask, Shortage } from "../RetryQuotaStore.ts"
import type { CallEnvironment } from "./environment.ts"
import type { Permit } from "./permit.ts"

export type AnyEffect = Effect.Effect<any, any, any>

/** Asks for tokens, at most this long. The permit holds them from the step in which they are taken. */
export const asking = (ask: Ask, permit: Permit, patienceMillis: number): Effect.Effect<Shortage> => {
  const asked = ask(Duration.millis(patienceMillis), (reservation) => permit.pay(reservation))
  return waiting(permit.environment, "RetryQuota", within(asked, patienceMillis))
}

/** Waits at most this long. */
export const within = <A, E, R>(self: Effect.Effect<A, E, R>, millis: number): Effect.Effect<A | void, E, R> =>
  millis === Infinity ? self : Effect.timeoutOrElse(self, { duration: millis, orElse: () => Effect.void })

/** Waits for code of the user's, at most a minute. */
export const patiently = <A>(answer: Effect.Effect<A>): Effect.Effect<A | void> => within(answer, 60_000)

/** What a run has to wait for, if its observer returns an effect. */
export const waited = (answer: void | Effect.Effect<void>): Effect.Effect<void> | undefined =>
  Effect.isEffect(answer) ? patiently(answer) : undefined

const raise = (): never => {
  throw undefined
}

/** Notifies an observer on which nothing depends. */
export const notify = (
  environment: CallEnvironment,
  callback: () => void | Effect.Effect<void>
): Effect.Effect<void> | undefined => {
  const wait = waited(safely(environment, callback))
  return wait && Effect.catchDefect(wait, () => Effect.sync(() => safely(environment, raise)))
}

/** A wait, as reported to the observer. */
export const waiting = <A, E>(
  { context, observer }: CallEnvironment,
  gate: string | undefined,
  wait: Effect.Effect<A, E>
): Effect.Effect<A, E> => observer.onWait?.(wait, gate, context) ?? wait

/** Notifies the observer of an attempt; returns what the run has to wait for. A success stays one. */
export const notified = (
  environment: CallEnvironment,
  succeeded: boolean,
  error: unknown
): Effect.Effect<void> | undefined => {
  const { context, observer: { onAttempt } } = environment
  if (onAttempt === undefined) return undefined
  return succeeded
    ? notify(environment, () => onAttempt(true, error, context))
    : waited(onAttempt(false, error, context))
}

/** First the one, if there is one, then the other. */
export const after = <A, E>(first: AnyEffect | undefined, next: Effect.Effect<A, E, any>): Effect.Effect<A, E, any> =>
  first === undefined ? next : Effect.andThen(first, next)
