/**
 * Facts about retrying that a failure carries.
 *
 * The code that raises an error knows things that the code that retries does not: whether the operation can safely run
 * again, whether the service asked for less traffic, how long it wants to be left alone. `RetryInfo` is those facts, in
 * the terms of Smithy's retry guide. It makes no decision: policies do.
 *
 * An error carries them in one of three ways: it is made with {@link TaggedError}, it has a `RetryInfo.TypeId`
 * property, or its `Schema.TaggedError` class is annotated, with {@link annotation} or with Smithy's traits
 * (`aws/legacy/SmithyGuide`). {@link fromError} reads all three.
 *
 * @since 0.1.0
 */

import type * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type * as Types from "effect/Types"
import * as Traits from "./internal/classification/smithyTraits.ts"
import { statusOf } from "./internal/classification/wire.ts"
import { get, look } from "./internal/tryGet.ts"

/**
 * The key under which an error carries its facts.
 *
 * @category guards
 * @since 0.1.0
 */
export const TypeId = "~effect-retry/RetryInfo" as const

/**
 * Type of {@link TypeId}.
 *
 * @category guards
 * @since 0.1.0
 */
export type TypeId = typeof TypeId

/**
 * Whether the operation can run again: `"Yes"`, `"No"`, or `"Maybe"` if it may have been processed and repeating it
 * could process it twice.
 *
 * @category models
 * @since 0.1.0
 */
export type Safety = "Yes" | "No" | "Maybe"

/**
 * Who is at fault for the failure.
 *
 * @category models
 * @since 0.1.0
 */
export type Fault = "client" | "server" | "other"

/**
 * The facts.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryInfo {
  readonly [TypeId]: TypeId
  /** Whether the operation can run again. */
  readonly safety: Safety
  /** The service asked for less traffic. */
  readonly throttling: boolean
  /** The client gave up waiting for a response. */
  readonly timeout: boolean
  /** Who is at fault for the failure. */
  readonly fault: Fault
  /** How long the service asked to be left alone, if it did. */
  readonly retryAfter: Duration.Duration | undefined
  /**
   * A rule forbids the retry, regardless of the failure.
   *
   * @internal
   */
  readonly vetoed?: boolean
}

/**
 * Facts to make a `RetryInfo` from. All are optional: `safety` defaults to `"Yes"`, `fault` to `"other"`, flags to
 * `false`, and the hint to none.
 *
 * @category models
 * @since 0.1.0
 */
export interface Facts {
  readonly safety?: Safety | undefined
  readonly throttling?: boolean | undefined
  readonly timeout?: boolean | undefined
  readonly fault?: Fault | undefined
  /** An invalid, negative or NaN duration counts as no hint. */
  readonly retryAfter?: Duration.Input | undefined
}

const hint = (input: unknown): Duration.Duration | undefined => {
  if (input === undefined || (typeof input === "number" && !(input >= 0))) return undefined
  const duration = look(() => Duration.fromInputUnsafe(input as Duration.Input))
  return duration === undefined || Duration.isNegative(duration) ? undefined : duration
}

/** Only code can put this on a value: a peer that sends JSON cannot pass it off as facts. */
const madeHere = Symbol.for("effect-retry/RetryInfo/made")

/**
 * Makes facts. Never throws: an invalid hint counts as none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (facts?: Facts): RetryInfo =>
  Object.assign({
    [TypeId]: TypeId,
    safety: facts?.safety ?? "Yes",
    throttling: facts?.throttling === true,
    timeout: facts?.timeout === true,
    fault: facts?.fault ?? "other",
    retryAfter: hint(facts?.retryAfter)
  }, { [madeHere]: true })

/**
 * Facts of a transient failure: the server's fault, safe to retry.
 *
 * @category constructors
 * @since 0.1.0
 */
export const transient: RetryInfo = make({ fault: "server" })

/**
 * Facts of a timeout, when the client gave up waiting: safe to retry.
 *
 * @category constructors
 * @since 0.1.0
 */
export const timedOut: RetryInfo = make({ timeout: true })

/**
 * Facts of a throttled call: the service asked for less traffic, with its hint if it gave one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const throttled = (retryAfter?: Duration.Input): RetryInfo =>
  make({ throttling: true, fault: "client", retryAfter })

/**
 * Facts of a failure that is final: the same call would fail again.
 *
 * @category constructors
 * @since 0.1.0
 */
export const notRetryable: RetryInfo = make({ safety: "No" })

/**
 * Facts of a failure not retried because a rule forbids it, regardless of the failure: the stop reason is `"vetoed"`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const vetoed: RetryInfo = /* @__PURE__ */ (() => ({ ...notRetryable, vetoed: true }))()

/** Whether a value is a `RetryInfo` made by {@link make}; a look-alike, such as decoded JSON, is not. */
const isRetryInfo = (u: any): u is RetryInfo => u?.[madeHere] === true

/**
 * Annotations that give every error of a `Schema.TaggedError` class its facts, as Smithy's `@retryable` and `@error`
 * traits do.
 *
 * **Details**
 *
 * If the facts have no `retryAfter`, a `retryAfter` field of the error is the hint.
 *
 * **Example** (A modeled error)
 *
 * ```ts
 * class TableBusy extends Schema.TaggedError<TableBusy>()("TableBusy", {
 *   table: Schema.String
 * }, RetryInfo.annotation({ throttling: true, fault: "client" })) {}
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const annotation = (facts?: Facts): { readonly [TypeId]: RetryInfo } => ({ [TypeId]: make(facts) })

/** The facts on a class: those it is annotated with, or what its Smithy traits say. */
const annotated = (annotations: any): unknown => {
  if (annotations === undefined) return undefined
  const facts = Traits.infoOfTraits(annotations)
  return annotations[TypeId] ?? (facts === undefined ? undefined : make(facts))
}

/** The facts on the error, or on its class. */
const carried = (error: any): unknown => error[TypeId] ?? annotated(error.constructor?.ast?.annotations)

/**
 * The facts that the error itself carries; none for an error of any other shape. Never throws.
 *
 * @category getters
 * @since 0.1.0
 */
export const fromError = (error: unknown): Option.Option<RetryInfo> => {
  try {
    const info = carried(error)
    if (!isRetryInfo(info)) return Option.none()
    const retryAfter = info.retryAfter ?? hint((error as { readonly retryAfter?: unknown }).retryAfter)
    return Option.some(retryAfter === info.retryAfter ? info : { ...info, retryAfter })
  } catch {
    return Option.none()
  }
}

const byTraits = (error: unknown): Fault | undefined => {
  const annotations = get(get(get(error, "constructor"), "ast"), "annotations")
  return annotations === undefined ? undefined : Traits.faultOf(annotations as Traits.Traits)
}

/**
 * Who is at fault, according to the error; none if it does not say. Never throws.
 *
 * **Details**
 *
 * For many failures this is all that is known: a server that answers 501 has failed, one that answers 404 has not. So
 * it is separate from the facts, as in Smithy's retry guide. The traits of the error's class decide, then its
 * `RetryInfo`, then the `$fault` of an AWS SDK error, then its HTTP status: a 4xx is the client's fault, a 5xx the
 * server's.
 *
 * @category getters
 * @since 0.1.0
 */
export const faultOf = (error: unknown): Option.Option<Fault> => {
  const own = Option.getOrUndefined(fromError(error))?.fault
  const classified = byTraits(error) ?? (own === "other" ? undefined : own) ?? Traits.faultOfSdk(error) ??
    Traits.faultOfStatus(statusOf(error))
  return Option.fromNullishOr(classified ?? own)
}

/**
 * Makes a class of tagged errors that carry facts.
 *
 * **Details**
 *
 * `facts` are the same for every error of the class, or computed from the error, whose type the function must name:
 * TypeScript cannot infer it. If they have no `retryAfter`, a `retryAfter` field of the error is the hint.
 *
 * **Gotchas**
 *
 * Facts count in place of those of a `cause`: an error that wraps every failure of a request is then retried after a 404
 * too. Make such a class with `Data.TaggedError` or `Schema.TaggedError`: it is classified by its `cause`.
 *
 * **Example** (An error with a hint)
 *
 * ```ts
 * class Busy extends RetryInfo.TaggedError("Busy", { throttling: true })<{
 *   readonly retryAfter: Duration.Duration
 * }> {}
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const TaggedError = <Tag extends string>(
  tag: Tag,
  facts?: Facts | ((error: any) => Facts)
): new<A extends Record<string, any> = {}>(
  args: Types.VoidIfEmpty<{ readonly [P in keyof A as P extends "_tag" ? never : P]: A[P] }>
) => Cause.YieldableError & { readonly _tag: Tag; readonly [TypeId]: RetryInfo } & Readonly<A> => {
  const fixed = typeof facts === "function" ? undefined : make(facts)
  class Base extends Data.TaggedError(tag)<{}> {
    get [TypeId](): RetryInfo {
      return fixed ?? make((facts as (error: unknown) => Facts)(this))
    }
  }
  return Base as any
}
