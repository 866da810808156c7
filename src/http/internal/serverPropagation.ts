import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { type Criticality, CurrentCriticality } from "../../Criticality.ts"
import type * as ConcurrencyLimiter from "../../gates/ConcurrencyLimiter.ts"
import { also, checks, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { clockOf, monotonicMillis } from "../../internal/clock.ts"
import { isObject } from "../../internal/invalidField.ts"
import {
  grpcTimeout,
  type Names,
  type PropagatedContext,
  propagating,
  remainingIn
} from "../../internal/propagation.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { get, short } from "../../internal/tryGet.ts"

type NameOptions = { readonly [Name in keyof Names]?: string | undefined }

const token = /^[!#$%&'*+.^_`|~\w-]+$/

/** The names of headers, given as an option. */
export const headersOf = ({ headers = {} }: { readonly headers?: NameOptions | undefined }, constructorName: string) =>
  isObject(headers)
    ? namesOf(headers, constructorName)
    : checks(constructorName).reject("headers", headers, "an object")

export const namesOf = (options: NameOptions, constructorName: string): Names => {
  const check = checksOf(constructorName, options)
  const name = (field: keyof NameOptions, otherwise: string): string => {
    const name = options[field] ?? otherwise
    if (typeof name !== "string" || !token.test(name)) check.reject(field, name, "a header name")
    return name.toLowerCase()
  }
  const names = {
    deadline: name("deadline", "x-deadline-ms"),
    attempt: name("attempt", "x-retry-attempt"),
    maxAttempts: name("maxAttempts", "x-retry-max-attempts"),
    criticality: name("criticality", "x-criticality")
  }
  also(check, ...Object.keys(names))
  rejectUnknown(check, options)
  const all = Object.values(names)
  const twice = all.find((name, index) => all.indexOf(name) !== index)
  if (twice !== undefined) check.reject("headers", twice, "a different name for each header")
  return names
}

type Headers = { readonly [name: string]: string | undefined }

const whole = (text: string | undefined, most: number): number | undefined =>
  /^\d{1,15}$/.test(short(text)) ? Math.min(Number(text), most) : undefined

const unitMillis: { readonly [unit: string]: number } = { n: 1e-6, u: 1e-3, m: 1, S: 1000, M: 60_000, H: 3_600_000 }

/** A week: no caller waits longer, and every timer supports it. */
const longestMillis = 604_800_000

const grpcMillis = (text: string | undefined): number | undefined => {
  const [, digits, unit] = /^(\d{1,8})([numSMH])$/.exec(short(text)) ?? []
  return unit === undefined ? undefined : Math.min(Number(digits) * unitMillis[unit]!, longestMillis)
}

/** Which send of how many: as sent by this library, by Envoy, by gRPC. */
const attemptsOf = (headers: Headers, names: Names): Pick<PropagatedContext, "attempt" | "maxAttempts"> => {
  const attempt = whole(headers[names.attempt], 1e9)
  if (attempt !== undefined && attempt > 0) {
    return { attempt, maxAttempts: Math.max(attempt, whole(headers[names.maxAttempts], 1e9) ?? Infinity) }
  }
  const envoy = whole(headers["x-envoy-attempt-count"], 1e9)
  const grpc = whole(headers["grpc-previous-rpc-attempts"], 1e9)
  const found = Math.max(1, envoy ?? (grpc ?? 0) + 1)
  return { attempt: found, maxAttempts: found }
}

/**
 * What the headers of a request say about its call. Values that are not numbers are ignored: they come from anywhere.
 */
const propagatedOf = (headers: Headers, names: Names, nowMillis: number): PropagatedContext => {
  const remaining = names.deadline === grpcTimeout
    ? grpcMillis(headers[grpcTimeout])
    : whole(headers[names.deadline], longestMillis) ?? grpcMillis(headers[grpcTimeout])
  const attempts = attemptsOf(headers, names)
  return {
    names,
    ...attempts,
    deadlineAtMillis: remaining === undefined ? Infinity : nowMillis + remaining,
    isRetried: attempts.maxAttempts > 1
  }
}

const criticalities: ReadonlyArray<Criticality> = ["sheddable", "normal", "critical"]

/** The caller's criticality, or the server's own where that is lower. */
const criticalityOf = (headers: Headers, names: Names, context: AnyContext): Criticality => {
  const theirs = criticalities.indexOf(headers[names.criticality] as Criticality)
  const own = Context.get(context, CurrentCriticality)
  if (theirs < 0) return own
  const isSet = context.mapUnsafe.has(CurrentCriticality.key)
  return criticalities[isSet ? Math.min(theirs, criticalities.indexOf(own)) : theirs]!
}

/** Ends an effect after this time, with the given response. If no time is left, it does not begin. */
export const until = <A, E, R, B, E2>(
  self: Effect.Effect<A, E, R>,
  millis: number,
  late: (afterMillis: number) => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2, R> => {
  if (millis === Infinity) return self
  return millis <= 0 ? late(0) : Effect.timeoutOrElse(self, { duration: millis, orElse: () => late(millis) })
}

/** Holds a slot of the limiter, if any, during the work. A refusal is answered before any work is done. */
export const limiting = (limiter: ConcurrencyLimiter.Service | undefined, constructorName: string) => {
  if (limiter !== undefined && get(limiter, "slot") === undefined) {
    checks(constructorName).reject("limiter", limiter, "a ConcurrencyLimiter")
  }
  return <A, E, R, B, E2>(
    work: Effect.Effect<A, E, R>,
    refused: Effect.Effect<B, E2>
  ): Effect.Effect<A | B, E | E2, R> => {
    if (limiter === undefined) return work
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        Scope.make(),
        (scope) =>
          Effect.matchEffect(restore(Effect.provideService(limiter.slot, Scope.Scope, scope)), {
            onFailure: () => refused,
            onSuccess: () => restore(work)
          }).pipe(Effect.onExit((exit) => Scope.close(scope, exit)))
      )
    )
  }
}

/**
 * The work on a request, with what the request says in its context, and only until the deadline. Where the server has a
 * deadline or a criticality of its own around it, a client can only be stricter.
 */
export const working = <A, E, R, B, E2>(
  work: Effect.Effect<A, E, R>,
  headers: Headers,
  names: Names,
  late: (afterMillis: number) => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2, R> =>
  Effect.withFiber((fiber) => {
    const now = monotonicMillis(clockOf(fiber))
    const theirs = propagatedOf(headers, names, now)
    const deadlineAtMillis = Math.min(theirs.deadlineAtMillis, now + remainingIn(fiber.context))
    const criticality = Context.make(CurrentCriticality, criticalityOf(headers, names, fiber.context))
    const provided = propagating(criticality, { ...theirs, deadlineAtMillis })
    return Effect.provideContext(until(work, theirs.deadlineAtMillis - now, late), provided) as Effect.Effect<
      A | B,
      E | E2,
      R
    >
  })
