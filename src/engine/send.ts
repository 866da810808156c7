import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Tracer from "effect/Tracer"
import { firstIn } from "../internal/cause.ts"
import { shared } from "../internal/shared.ts"
import { safely } from "../internal/sharing.ts"
import { QuotaExhausted } from "../RetryQuota.ts"
import type { Ask, RetryQuotaStore, Shortage } from "../RetryQuotaStore.ts"
import type { SendGate } from "../SendGate.ts"
import { type AnyFiber, type CallEnvironment, CurrentScope, SendScope } from "./environment.ts"
import { Permit } from "./permit.ts"

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
type Wait = Effect.Effect<void> | undefined

export const waited = (answer: void | Effect.Effect<void>): Wait =>
  Effect.isEffect(answer) ? patiently(answer) : undefined

const raise = (): never => {
  throw undefined
}

/** Notifies an observer on which nothing depends. */
export const notify = (environment: CallEnvironment, callback: () => void | Effect.Effect<void>): Wait => {
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
export const notified = (environment: CallEnvironment, succeeded: boolean, error: unknown): Wait => {
  const { context, observer: { onAttempt } } = environment
  if (onAttempt === undefined) return undefined
  return succeeded
    ? notify(environment, () => onAttempt(true, error, context))
    : waited(onAttempt(false, error, context))
}

/** First the one, if there is one, then the other. */
export const after = <A, E>(first: AnyEffect | undefined, next: Effect.Effect<A, E, any>): Effect.Effect<A, E, any> =>
  first === undefined ? next : Effect.andThen(first, next)

/** What follows a failure: gets the error, and the cause it came in. */
export type Failed = (error: unknown, cause: Cause.Cause<unknown>) => AnyEffect

/** Fails in the same way. */
export const failAgain: Failed = (_, cause) => Effect.failCause(cause)

/**
 * Like `Effect.matchEffect`, but also passes the cause of a failure, so that it can be failed with again unchanged. `died`
 * is for a cause without an error to decide about: a defect, or only an interruption.
 */
export const settling = (
  self: AnyEffect,
  onSuccess: (value: any) => AnyEffect,
  failed: Failed,
  died?: () => void
): AnyEffect =>
  Effect.matchCauseEffect(self, {
    onSuccess,
    onFailure: (cause) => {
      if (died !== undefined && firstIn(cause) === undefined) died()
      return failing(cause, failed)
    }
  })

/** Continues with the first error of a cause, if it has one. Nearly all causes have nothing else: no allocation. */
export const failing = <A, B>(
  cause: Cause.Cause<unknown>,
  failed: (error: unknown, cause: Cause.Cause<unknown>, a: A, b: B) => AnyEffect,
  a?: A,
  b?: B
): AnyEffect => {
  const { reasons } = cause
  const reason = reasons[0]
  return reason?._tag === "Fail" && reasons.length === 1
    ? failed(reason.error, cause, a!, b!)
    : Effect.catch(Effect.failCause(cause), (error) => failed(error, Cause.fail(error), a!, b!))
}

/** A first send pays its fee. */
const paid = (permit: Permit): Effect.Effect<void, QuotaExhausted> | undefined => {
  const { clock, store } = permit.environment
  if (permit.retry > 0 || !store?.firstAttemptCost) return undefined
  const { firstAttemptCost: cost } = store
  const refused = () => Effect.fail(new QuotaExhausted({ cost, balance: store.balance(clock) }))
  const answer = store.reserve(cost, clock)
  if (typeof answer === "function") {
    return Effect.flatMap(
      asking(answer, permit, Infinity),
      () => permit.reservation !== undefined ? Effect.void : refused()
    )
  }
  if (answer === undefined) return refused()
  permit.pay(answer)
  return undefined
}

/** A gate must not throw. If it does, no token is lost. */
const entered = (gate: SendGate, permit: Permit): Effect.Effect<void, unknown> | undefined => {
  try {
    const wait = gate.enter(permit)
    return wait === undefined ? undefined : waiting(permit.environment, gate.name, wait)
  } catch (defect) {
    permit.cancel()
    throw defect
  }
}

/** Waits until the quota and the gates, starting at `from`, let the send pass; `undefined` if they do immediately. */
export const admission = (permit: Permit, from = -1): Effect.Effect<void, unknown> | undefined => {
  const { gates } = permit.environment
  for (let next = from; next < gates.length; next++) {
    const wait = next < 0 ? paid(permit) : entered(gates[next]!, permit)
    if (wait !== undefined) {
      permit.gate = gates[next]?.name || "gate"
      return Effect.flatMap(wait, () => {
        permit.waited()
        return admission(permit, next + 1) ?? Effect.void
      })
    }
  }
  return undefined
}

/** Like {@link admission}, but only until a deadline. Returns `false` if that has passed. */
export const admissionUntil = (
  permit: Permit,
  deadlineAtMillis: number
): Effect.Effect<boolean, unknown> | undefined => {
  const { environment } = permit
  const wait = admission(permit)
  const isIn = () => deadlineAtMillis === Infinity || environment.nowMillis < deadlineAtMillis
  if (wait === undefined) return isIn() ? undefined : Effect.succeed(false)
  return Effect.suspend(() => Effect.map(within(wait, Math.max(0, deadlineAtMillis - environment.nowMillis)), isIn))
}

/** One send: admitted, made, and recorded. */
export interface Sending {
  /** Whether it may be made: `undefined` if it may be now. */
  readonly admitted: Effect.Effect<boolean, unknown> | undefined
  readonly permit: Permit | undefined
  /** Marks the permit as sent, sends, and records how it ends. */
  readonly sent: AnyEffect
  /** What follows if the quota or a gate refuses the send. */
  readonly refused: Failed
  /** What follows if the deadline passes before the gates let it pass. */
  readonly expired: () => AnyEffect
}

/** Sends once the quota and the gates permit it. A send that was not made costs nothing. */
export const send = ({ admitted, expired, permit, refused, sent }: Sending): AnyEffect =>
  admitted === undefined ? sent : Effect.matchCauseEffect(admitted, {
    onSuccess: (isIn) => {
      if (isIn) return sent
      permit?.cancel()
      return expired()
    },
    onFailure: (cause) => {
      permit?.cancel()
      return failing(cause, refused)
    }
  })

const deposit = ({ clock }: CallEnvironment, store: RetryQuotaStore): void =>
  store.deposit(store.successIncrement, clock)

/** A run has succeeded without a retry. */
export const earn = (environment: CallEnvironment): void => {
  const { store } = environment
  if (store !== undefined && store.successIncrement > 0 && store.isFull !== true) {
    safely(environment, deposit, environment, store)
  }
}

/**
 * Puts the frame of an effect around what its fiber runs next. Returns what runs inside. The frame is there when this
 * returns: the fiber cannot yield or be interrupted in between.
 */
export const framed = (frame: AnyEffect, fiber: AnyFiber): AnyEffect =>
  (frame as unknown as Tracer.EffectPrimitive<any>)["~effect/Effect/evaluate"](fiber) as AnyEffect

/**
 * The first send of a run that only the quota and gates see, or a lone one. A frame settles what it holds, in place of a
 * scope of its fiber, which costs more than everything else here. Call it in a step of the fiber.
 */
export const guarded = (self: AnyEffect, environment: CallEnvironment, fiber: AnyFiber): AnyEffect => {
  const permit = new Permit(environment, 0)
  const { context } = fiber
  const scope = shared.marking
    ? new SendScope(environment, fiber, { permit, deadlineAtMillis: Infinity, isAlone: true })
    : undefined
  const onExit = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> | undefined => {
    scope?.close()
    fiber.setContext(context)
    const isSent = permit.state === "sent"
    permit.settle(exit)
    if (permit.state === "returned") earn(environment)
    if (!isSent || environment.isUnseen) return undefined
    if (exit._tag === "Success") return notified(environment, true, undefined)
    const failure = firstIn(exit.cause)
    return failure && notified(environment, false, failure.error)
  }
  void framed(Effect.onExitPrimitive(self, onExit), fiber)
  const sent = () => {
    permit.sent()
    fiber.setContext(scope === undefined ? environment.inside : Context.add(environment.context, CurrentScope, scope))
    return self
  }
  const wait = admission(permit)
  return wait === undefined ? sent() : Effect.flatMap(wait, sent)
}
