import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "../internal/clock.ts"
import { CurrentOnward, type Onward } from "../internal/onward.ts"
import { type AnyContext, type AnyFiber, shared } from "../internal/shared.ts"
import { CurrentObserver, type RetryObserver } from "../RetryObserver.ts"
import { RetryQuota } from "../RetryQuota.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { SendGate } from "../SendGate.ts"
import type { Lapses } from "../state/lapses.ts"

/** The fiber that runs: for callbacks, which are given none. */
export const current = Fiber.getCurrent as () => AnyFiber

export type { AnyFiber }

const noGates: ReadonlyArray<SendGate> = []

/** The gates in this context and those of the quota, in the order in which they are asked. */
const gatesOf = (context: AnyContext, store: RetryQuotaStore | undefined): ReadonlyArray<SendGate> => {
  let found = store?.gates?.slice()
  for (const { gateOf, tag } of shared.gates) {
    const service = Context.getOrUndefined(context, tag)
    const gate = service === undefined ? undefined : gateOf(service)
    if (gate !== undefined) (found ??= []).push(gate)
  }
  return found === undefined ? noGates : found.sort((a, b) => a.order - b.order)
}

/** The quota that a call in this context pays from. */
export const quotaOf = (context: AnyContext): RetryQuota["Service"] | undefined =>
  Context.getOrUndefined(context, RetryQuota)

/** A first send is held back by nothing, and nobody but the quota needs to know that it succeeded. */
const isQuietWith = (
  store: RetryQuotaStore | undefined,
  gates: ReadonlyArray<SendGate>,
  observer: RetryObserver
): boolean =>
  gates.length === 0 && (observer.onAttempt ?? observer.onSend ?? observer.onCall) === undefined &&
  (store === undefined || store.firstAttemptCost === 0)

export const isQuiet = (context: AnyContext): boolean => {
  const store = quotaOf(context)?.store
  return isQuietWith(store, gatesOf(context, store), Context.get(context, CurrentObserver)) &&
    Context.get(context, CurrentOnward) === undefined
}

/** All that a call needs to know of what is around it. Randomness and classifier are read when they are needed. */
export class World {
  readonly context: AnyContext
  readonly clock: Clock.Clock
  readonly store: RetryQuotaStore | undefined
  /** The retries of the quota that may never come. */
  readonly lapses: Lapses | undefined
  readonly gates: ReadonlyArray<SendGate>
  readonly observer: RetryObserver
  /** The metadata of the schedule around the call, if there is one. */
  readonly metadata: Schedule.Metadata | undefined
  readonly isQuiet: boolean
  /** What sends tell other processes; `undefined` where they tell nothing. */
  readonly onward: Onward | undefined
  /** The context of what is inside a send: it says that the call around accounts for it. */
  readonly inside: AnyContext

  constructor(context: AnyContext, quota: RetryQuota["Service"] | undefined, gates: ReadonlyArray<SendGate>) {
    this.context = context
    this.clock = Context.get(context, Clock.Clock)
    const store = this.store = quota?.store
    this.lapses = quota?.lapses
    this.gates = gates
    this.observer = Context.get(context, CurrentObserver)
    this.metadata = Context.getOrUndefined(context, Schedule.CurrentMetadata)
    this.onward = Context.get(context, CurrentOnward)
    this.isQuiet = this.onward === undefined && isQuietWith(store, gates, this.observer)
    this.inside = Context.add(context, InsideCall, new Mark(this))
  }

  /** Milliseconds of the monotonic clock, which no step of the wall clock moves. */
  get nowMillis(): number {
    return monotonicMillis(this.clock)
  }
}

// A context never changes, and many calls share one; but a retry has one of its own.
const known = new WeakMap<AnyContext, World>()

/** What is around a call in this context. */
export const worldOf = (context: AnyContext): World => {
  const cached = known.get(context)
  if (cached !== undefined) return cached
  const quota = quotaOf(context)
  const world = new World(context, quota, gatesOf(context, quota?.store))
  if (world.metadata === undefined) known.set(context, world)
  return world
}

/** Whether a world is that of this context, but for the metadata of a schedule. */
export const isAround = (world: World, context: AnyContext): boolean =>
  world.store === quotaOf(context)?.store && world.observer === Context.get(context, CurrentObserver) &&
  world.gates.length === 0 && gatesOf(context, world.store).length === 0

/** The metadata of a first send. It is an object of its own, by which it can be told from that of a schedule. */
export const fresh: Schedule.Metadata = { ...Schedule.CurrentMetadata.defaultValue() }

/** What a send holds, and until when its call sends: `Call`, which lies above. */
interface Sent {
  readonly permit: unknown
  readonly deadlineAtMillis: number
}

/**
 * What is inside a send of a call: that call accounts for it. Sends carry a mark of their own only from the first policy
 * that asks whether it is nested (`shared.nesting`): it costs as much as all the rest of a call that succeeds.
 */
export class Mark {
  /** What is around the call. */
  readonly world: World
  /** The fiber of the send; `undefined` when that has ended, or calls only account, and nobody asks whether they are nested. */
  private fiber: AnyFiber | undefined
  /** The send, where more of it is known. */
  readonly sent: Sent | undefined

  constructor(world: World, fiber?: AnyFiber, sent?: Sent) {
    this.world = world
    this.fiber = fiber
    this.sent = sent
  }

  /** The send runs. What was forked inside it and outlives it is inside no longer, however the send ended. */
  get isActive(): boolean {
    return this.fiber !== undefined && !this.fiber.pollUnsafe()
  }

  ended(): void {
    this.fiber = undefined
  }
}

/** The send around this context. */
export const InsideCall = /* @__PURE__ */ Context.Reference<Mark | undefined>("effect-retry/InsideCall", {
  defaultValue: () => undefined
})

/** Whether an outer call retries: around this context, or in the process that called this one. */
export const isNested = (context: AnyContext): boolean =>
  Context.get(context, InsideCall)?.isActive === true || Context.get(context, CurrentOnward)?.isRetried === true
