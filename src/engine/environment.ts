import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "../internal/clock.ts"
import { type PropagatedContext, propagatedIn } from "../internal/propagation.ts"
import { type AnyContext, type AnyFiber, shared } from "../internal/shared.ts"
import { CurrentClassifier, type RetryClassifier } from "../RetryClassifier.ts"
import { observerOf, type RetryObserver } from "../RetryObserver.ts"
import { RetryQuota } from "../RetryQuota.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { SendGate } from "../SendGate.ts"

/** The running fiber: for callbacks, which do not get it. */
export const current = Fiber.getCurrent as () => AnyFiber

export type { AnyFiber }

/** The gates of this context and of the quota, in the order in which they are asked. */
const gatesOf = (context: AnyContext, store: RetryQuotaStore | undefined): ReadonlyArray<SendGate> => {
  const found = [...store?.gates ?? []]
  for (const { gateOf, tag } of shared.gates) {
    const service = Context.getOrUndefined(context, tag)
    const gate = service === undefined ? undefined : gateOf(service)
    if (gate !== undefined) found.push(gate)
  }
  return found.sort((a, b) => a.order - b.order)
}

/** These gates and those of a store, in the order in which they are asked. */
export const gatesWith = (gates: ReadonlyArray<SendGate>, store: RetryQuotaStore): ReadonlyArray<SendGate> => {
  const more = store.gates?.filter((gate) => !gates.includes(gate)) ?? []
  return more.length === 0 ? gates : [...gates, ...more].sort((a, b) => a.order - b.order)
}

/** Everything a call needs to know about its surroundings. Randomness and classifier are read when needed. */
export class CallEnvironment {
  readonly clock: Clock.Clock
  readonly store: RetryQuotaStore | undefined
  readonly classifier: RetryClassifier
  readonly random: Random.Random
  readonly observer: RetryObserver
  /** The metadata of the schedule around the call, if any. */
  readonly metadata: Schedule.Metadata | undefined
  /** Only the quota and gates need to know about a first send; if it is quiet, only the quota. */
  readonly isUnseen: boolean
  readonly isQuiet: boolean
  /** What sends say to other processes; `undefined` if nothing. */
  readonly propagated: PropagatedContext | undefined
  /** The context inside a send: it says that the outer call accounts for it. */
  readonly inside: AnyContext

  constructor(
    readonly context: AnyContext,
    quota: RetryQuota["Service"] | undefined,
    readonly gates: ReadonlyArray<SendGate>,
    /** Where the policy finds what it needs: the context, with the services that the policy brings. */
    readonly services = context
  ) {
    this.clock = Context.get(context, Clock.Clock)
    const store = this.store = quota?.store
    this.classifier = Context.get(context, CurrentClassifier)
    this.random = Context.get(context, Random.Random)
    this.observer = observerOf(context)
    this.metadata = Context.getOrUndefined(context, Schedule.CurrentMetadata)
    this.propagated = propagatedIn(context)
    const { onAttempt, onCall, onSend } = this.observer
    this.isUnseen = (onAttempt ?? onSend ?? onCall ?? this.propagated) === undefined
    this.isQuiet = this.isUnseen && gates.length === 0 && !store?.firstAttemptCost
    this.inside = Context.add(context, CurrentScope, new SendScope(this))
  }

  /** Milliseconds of the monotonic clock, unaffected by changes to the wall clock. */
  get nowMillis(): number {
    return monotonicMillis(this.clock)
  }
}

// A context never changes, and many calls share one; but each retry has its own.
const environments = new WeakMap<AnyContext, CallEnvironment>()

/** Services for the policies of the next run alone: what it sends does not see them. */
export const Provided = /* @__PURE__ */ Context.Reference<AnyContext | undefined>("effect-retry/Provided", {
  defaultValue: () => undefined
})

/** The surroundings of a call in this context. */
export const environmentOf = (context: AnyContext): CallEnvironment => {
  const cached = environments.get(context)
  if (cached !== undefined) return cached
  const provided = Context.get(context, Provided)
  const services = provided === undefined ? context : Context.merge(context, provided)
  const quota = Context.getOrUndefined(services, RetryQuota)
  const own = provided === undefined ? context : Context.add(context, Provided, undefined) as AnyContext
  const environment = new CallEnvironment(own, quota, gatesOf(services, quota?.store), services)
  if (environment.metadata === undefined) environments.set(context, environment)
  return environment
}

/** The metadata of a first send. A separate object, to distinguish it from that of a schedule. */
export const fresh: Schedule.Metadata = { ...Schedule.CurrentMetadata.defaultValue() }

/** A send: what it holds, and until when others may be made in its place. */
interface Sent {
  readonly permit: unknown
  readonly deadlineAtMillis: number
  /** Whether nothing retries it. Default `false`. */
  readonly isAlone?: boolean
}

/**
 * Marks what is inside a send, which a run accounts for. Sends have their own mark only once something asks for it
 * (`shared.marking`): it costs as much as all the rest of a run that succeeds.
 */
export class SendScope {
  constructor(
    /** The surroundings of the run. */
    readonly environment: CallEnvironment,
    /** The fiber of the send; `undefined` once it has ended, or if nothing asks about sends. */
    private fiber: AnyFiber | undefined = undefined,
    readonly sent: Sent | undefined = undefined
  ) {}

  /**
   * Whether the send is running. A fiber forked inside it that outlives it is no longer inside, however the send ended.
   */
  get isActive(): boolean {
    return this.fiber !== undefined && !this.fiber.pollUnsafe()
  }

  close(): void {
    this.fiber = undefined
  }
}

/** The send around this context. */
export const CurrentScope = /* @__PURE__ */ Context.Reference<SendScope | undefined>("effect-retry/CurrentScope", {
  defaultValue: () => undefined
})

/** Whether an outer run retries: around this context, or in the process that called this one. */
export const isNested = (context: AnyContext): boolean => {
  const scope = Context.get(context, CurrentScope)
  const isInside = scope?.isActive && (!scope.sent?.isAlone || isNested(scope.environment.context))
  return isInside || propagatedIn(context)?.isRetried === true
}

/** Whether a send around these surroundings pays from the same quota: its success counts once. */
export const isInside = ({ context, store }: CallEnvironment): boolean => {
  const scope = Context.get(context, CurrentScope)
  return scope?.isActive === true && scope.environment.store === store
}
