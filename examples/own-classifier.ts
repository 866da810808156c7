/**
 * Your own classifier: facts about third-party errors, and a veto.
 *
 * A classifier is a function from an unknown error to its facts, or to
 * none if it does not know the error. In a chain the first that knows
 * the error decides. A policy with `whileRetryable` does not retry
 * errors that no classifier knows.
 */
import { Effect, Option, pipe, Predicate } from "effect"
import {
  awsStandard,
  RetryClassifier,
  RetryInfo,
  withRetry
} from "effect-retry"
import { main, show } from "./support/program.ts"

/** A driver that says "database is locked" with its own code. */
const locked: RetryClassifier.RetryClassifier = (error) =>
  Predicate.hasProperty(error, "code") && error.code === "SQLITE_BUSY"
    ? Option.some(RetryInfo.transient)
    : Option.none()

/**
 * In maintenance the service answers 503, which the default chain would
 * retry.
 */
const inMaintenance = (error: unknown): boolean =>
  Predicate.hasProperty(error, "maintenance") &&
  error.maintenance === true

export const classifier = pipe(
  RetryClassifier.chain([locked, RetryClassifier.defaultClassifier]),
  RetryClassifier.vetoing(inMaintenance)
)

export const save = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    withRetry(awsStandard),
    Effect.provide(RetryClassifier.layer(classifier))
  )

main(
  import.meta.url,
  show("a locked database", [{ code: "SQLITE_BUSY" }], save),
  show("an answer with status 503", [{ status: 503 }], save),
  show(
    "the same in maintenance",
    [{ status: 503, maintenance: true }],
    save
  ),
  show("a damaged database", [{ code: "SQLITE_CORRUPT" }], save)
)
