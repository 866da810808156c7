import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { CurrentCriticality } from "../Criticality.ts"
import { monotonicMillis } from "./clock.ts"
import type { AnyContext } from "./shared.ts"

/** The headers by which processes describe a call to each other. */
export type Names = Readonly<Record<"deadline" | "attempt" | "maxAttempts" | "criticality", string>>

/** What a send tells the process it goes to. */
export interface PropagatedContext {
  readonly names: Names
  /** The attempt, and its maximum: those of the call that retries, here or in the process that called this one. */
  readonly attempt: number
  readonly maxAttempts: number
  /** The deadline, in milliseconds of the monotonic clock; `Infinity` without one. */
  readonly deadlineAtMillis: number
  /** Whether the process that called this one retries. */
  readonly isRetried: boolean
}

/** A run that makes sends. */
type Sender = Pick<PropagatedContext, "attempt" | "maxAttempts" | "deadlineAtMillis">

/** What sends say, with what only programs load that propagate calls. */
export interface Propagation {
  readonly propagated: PropagatedContext
  /** The same context, with what a send of the run says to the process that it goes to. */
  readonly sentBy: (run: Sender, context: AnyContext) => AnyContext
}

/** Set where calls are propagated, by {@link propagating}. */
const CurrentPropagation = /* @__PURE__ */ Context.Reference<Propagation | undefined>(
  "effect-retry/CurrentPropagation",
  { defaultValue: () => undefined }
)

/** A context whose sends say this. */
export const propagating = <Services>(
  context: Context.Context<Services>,
  propagated: PropagatedContext
): Context.Context<Services> =>
  Context.add(context, CurrentPropagation, {
    propagated,
    sentBy: ({ attempt, deadlineAtMillis, maxAttempts }, context) => {
      const earliestMillis = Math.min(propagated.deadlineAtMillis, deadlineAtMillis)
      const next = maxAttempts > 1 ? { ...propagated, attempt: attempt + 1, maxAttempts } : propagated
      return propagating(context, { ...next, deadlineAtMillis: earliestMillis })
    }
  })

/** What sends in this context say, and how those of a run do; `undefined` if nothing. */
export const propagationIn = (context: AnyContext): Propagation | undefined => Context.get(context, CurrentPropagation)

/** What sends in this context say; `undefined` if nothing. */
export const propagatedIn = (context: AnyContext): PropagatedContext | undefined => propagationIn(context)?.propagated

/** The time left until the deadline, in milliseconds: at least 0, or `Infinity` without one. */
export const remainingIn = (context: AnyContext): number => {
  const propagated = propagatedIn(context)
  if (propagated === undefined || propagated.deadlineAtMillis === Infinity) return Infinity
  return Math.max(0, propagated.deadlineAtMillis - monotonicMillis(Context.get(context, Clock.Clock)))
}

const units = [["m", 1], ["S", 1000], ["M", 60_000], ["H", 3_600_000]] as const

/** A time in gRPC's format: at most eight digits and a unit. It is rounded down. */
const grpcTime = (millis: number): string => {
  const [unit, size] = units.find(([, size]) => millis / size < 1e8) ?? units[3]
  return `${Math.min(99_999_999, Math.floor(millis / size))}${unit}`
}

export const grpcTimeout = "grpc-timeout"

/** What a send tells, as headers; `undefined` if nothing. */
export const headersIn = (context: AnyContext): { readonly [name: string]: string } | undefined => {
  const propagated = propagatedIn(context)
  if (propagated === undefined) return undefined
  const { attempt, maxAttempts, names } = propagated
  const headers: { [name: string]: string } = {
    [names.attempt]: `${attempt}`,
    [names.criticality]: Context.get(context, CurrentCriticality)
  }
  if (maxAttempts !== Infinity) headers[names.maxAttempts] = `${maxAttempts}`
  const remaining = remainingIn(context)
  if (remaining !== Infinity) {
    headers[names.deadline] = names.deadline === grpcTimeout ? grpcTime(remaining) : `${Math.floor(remaining)}`
  }
  return headers
}
