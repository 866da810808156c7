import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { type Criticality, CurrentCriticality } from "../../Criticality.ts"
import type * as ConcurrencyLimiter from "../../gates/ConcurrencyLimiter.ts"
import { also, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { clockOf, monotonicMillis } from "../../internal/clock.ts"
import { isObject } from "../../internal/invalidField.ts"
import { option, validOptions } from "../../internal/options.ts"
import * as Propagation from "../../internal/propagation.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { get, short } from "../../internal/tryGet.ts"

/**
 * The names of the headers: the same in all processes.
 *
 * @category models
 * @since 0.1.0
 */
export interface HeaderNames {
  /** The time left until the deadline. `"grpc-timeout"` is written in gRPC's format. Default `"x-deadline-ms"`. */
  readonly deadline?: string | undefined
  /** Which send it is. Default `"x-retry-attempt"`. */
  readonly attempt?: string | undefined
  /** The maximum number of sends. Default `"x-retry-max-attempts"`. */
  readonly maxAttempts?: string | undefined
  /** How much the call matters. Default `"x-criticality"`. */
  readonly criticality?: string | undefined
}

/**
 * How a server handles what its callers tell it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerOptions {
  /** The header names, for incoming requests and for the requests made while working on them. */
  readonly headers?: HeaderNames | undefined
  /**
   * Bounds the requests being worked on: the most critical go first, and if too many wait, the least critical are
   * rejected first. Default: no bound.
   */
  readonly limiter?: ConcurrencyLimiter.Service | undefined
}

const token = /^[!#$%&'*+.^_`|~\w-]+$/

const headerName = (otherwise: string) =>
  option("name", {}, (check, field, value?: string) => {
    const name = value ?? otherwise
    const isName = typeof name === "string" && token.test(name)
    return isName ? name.toLowerCase() : check.reject(field, name, "a header name")
  })

const nameOptions = {
  deadline: headerName("x-deadline-ms"),
  attempt: headerName("x-retry-attempt"),
  maxAttempts: headerName("x-retry-max-attempts"),
  criticality: headerName("x-criticality")
}

/** The names of headers, given as options. */
export const namesOf = (options: HeaderNames, constructorName: string): Propagation.Names => {
  const check = checksOf(constructorName, options)
  const names = validOptions(check, nameOptions, options)
  const all = Object.values(names)
  const twice = all.find((name, index) => all.indexOf(name) !== index)
  return twice === undefined ? names : check.reject("headers", twice, "a different name for each header")
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
const attemptsOf = (headers: Headers, names: Propagation.Names) => {
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
const propagatedOf = (headers: Headers, names: Propagation.Names, nowMillis: number): Propagation.PropagatedContext => {
  const remaining = names.deadline === Propagation.grpcTimeout
    ? grpcMillis(headers[Propagation.grpcTimeout])
    : whole(headers[names.deadline], longestMillis) ?? grpcMillis(headers[Propagation.grpcTimeout])
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
const criticalityOf = (headers: Headers, names: Propagation.Names, context: AnyContext): Criticality => {
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
const limited = <A, E, R, B, E2>(
  work: Effect.Effect<A, E, R>,
  limiter: ConcurrencyLimiter.Service | undefined,
  shed: (criticality: Criticality) => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2, R> => {
  if (limiter === undefined) return work
  const refused = Effect.withFiber((fiber) => shed(fiber.getRef(CurrentCriticality)))
  return Effect.scopedWith((scope) =>
    Effect.matchEffect(Scope.provide(limiter.slot, scope), { onFailure: () => refused, onSuccess: () => work })
  )
}

/** What a server answers to a request that is not worked on: it has no slot, or no time is left. */
interface Answers<B, E2, C, E3> {
  readonly shed: (criticality: Criticality) => Effect.Effect<B, E2>
  readonly late: (afterMillis: number) => Effect.Effect<C, E3>
}

/**
 * Works on requests, with what each says in its context, and only until its deadline. Where the server has a deadline or
 * a criticality of its own around it, a client can only be stricter.
 */
export const serving = (constructorName: string, options: ServerOptions) => {
  const check = checksOf(constructorName, options)
  also(check, "headers", "limiter")
  const { headers = {}, limiter } = rejectUnknown(check, options, options)
  if (limiter !== undefined && get(limiter, "slot") === undefined) {
    check.reject("limiter", limiter, "a ConcurrencyLimiter")
  }
  const names = isObject(headers) ? namesOf(headers, constructorName) : check.reject("headers", headers, "an object")
  return <A, E, R, B, E2, C, E3>(
    work: Effect.Effect<A, E, R>,
    headers: Headers,
    { late, shed }: Answers<B, E2, C, E3>
  ): Effect.Effect<A | B | C, E | E2 | E3, R> =>
    Effect.withFiber((fiber) => {
      const now = monotonicMillis(clockOf(fiber))
      const theirs = propagatedOf(headers, names, now)
      const deadlineAtMillis = Math.min(theirs.deadlineAtMillis, now + Propagation.remainingIn(fiber.context))
      const criticality = Context.make(CurrentCriticality, criticalityOf(headers, names, fiber.context))
      const provided = Propagation.propagating(criticality, { ...theirs, deadlineAtMillis })
      const timely = until(limited(work, limiter, shed), theirs.deadlineAtMillis - now, late)
      return Effect.provideContext(timely, provided) as any
    })
}
