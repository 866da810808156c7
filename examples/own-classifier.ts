/**
 * An own classifier: facts about errors of someone else's making, and a veto.
 *
 * A classifier is a function from an unknown error to its facts, or to none when it does not know the error. In a chain
 * the first that knows the error decides. A policy with `whileRetryable` does not retry what no classifier knows.
 */
import { Effect, Option, pipe, Predicate } from "effect"
import { awsStandard, RetryClassifier, RetryInfo, withRetry } from "effect-retry"

/** A driver that says "database is locked" with a code of its own. */
const locked: RetryClassifier.RetryClassifier = (error) =>
  Predicate.hasProperty(error, "code") && error.code === "SQLITE_BUSY"
    ? Option.some(RetryInfo.transient)
    : Option.none()

/** In maintenance the service answers 503, which the default chain would retry. */
const inMaintenance = (error: unknown): boolean =>
  Predicate.hasProperty(error, "maintenance") && error.maintenance === true

export const classifier = pipe(
  RetryClassifier.chain([locked, RetryClassifier.defaultClassifier]),
  RetryClassifier.vetoing(inMaintenance)
)

export const save = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    withRetry(awsStandard),
    Effect.provide(RetryClassifier.layer(classifier))
  )
