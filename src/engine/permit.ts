import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { type AnyContext, shared } from "../internal/shared.ts"
import { classify, CurrentClassifier } from "../RetryClassifier.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Reservation } from "../RetryQuotaStore.ts"
import type { Outcome, Pass, Send } from "../SendGate.ts"
import { type AnyFiber, current, type World } from "./world.ts"

/** The first failure in a cause; `undefined` with a defect, or with only an interruption. */
export const failureIn = ({ reasons }: Cause.Cause<unknown>): Cause.Fail<unknown> | undefined => {
  let failure: Cause.Fail<unknown> | undefined
  for (const reason of reasons) {
    if (reason._tag === "Die") return undefined
    if (reason._tag === "Fail") failure ??= reason
  }
  return failure
}

/** How a send ended, for the gates it passed. */
class Ended implements Outcome {
  readonly _tag: Outcome["_tag"]
  readonly value: unknown
  readonly error: unknown
  private readonly world: World
  private known: Option.Option<RetryInfo> | undefined = undefined
  private now = -1

  constructor(tag: Outcome["_tag"], error: unknown, value: unknown, world: World) {
    this._tag = tag
    this.error = error
    this.value = value
    this.world = world
  }

  get info(): RetryInfo | undefined {
    if (this._tag !== "Failure") return undefined
    this.known ??= classify(Context.get(this.world.context, CurrentClassifier), this.error)
    return Option.getOrUndefined(this.known)
  }

  get nowMillis(): number {
    return this.now < 0 ? this.now = this.world.nowMillis : this.now
  }
}

/**
 * What one send holds: quota tokens and gate passes. It is taken, then the send is made, then it is settled, once: a
 * send that was never made returns everything (`canceled`), one that was made spends it (`spent`) unless it succeeds
 * (`returned`).
 */
export class Permit implements Send {
  /** The surroundings of the send; until it is known which attempt makes it, those of the decision. */
  world: World
  /** The number of the retry it is for; 0 for a first send, whose tokens are a fee that a success does not return. */
  readonly retry: number
  state: "taken" | "left" | "returned" | "spent" | "canceled" = "taken"
  /**
   * Special kinds. `"lapses"`: its retry may never be sent, since a condition around a schedule can stop it without
   * notice. `"outlives"`: its fiber may pass it on, for example to a promise, so only a failing fiber settles it.
   */
  kind: "plain" | "lapses" | "outlives" = "plain"
  /** Settles it if its fiber ends, and knows what else that fiber holds. */
  watch: Watch | undefined = undefined
  below: Permit | undefined = undefined
  reservation: Reservation | undefined = undefined
  /** Of the gates that it has passed so far. */
  passes: Array<Pass> | undefined = undefined
  private now = -1

  constructor(world: World, retry: number) {
    this.world = world
    this.retry = retry
  }

  get attempt(): number {
    return this.retry + 1
  }

  get context(): AnyContext {
    return this.world.context
  }

  get nowMillis(): number {
    return this.now < 0 ? this.now = this.world.nowMillis : this.now
  }

  /** A gate has made it wait: the next ones get the time at which they are asked. */
  waited(): void {
    this.now = -1
  }

  /** Holds a gate's pass from now on. If it comes too late, it goes back. */
  hold(pass: Pass): void {
    if (this.state !== "taken") return pass.cancel() // An empty array takes room for seventeen with the first: no further pass allocates.
    ;(this.passes ??= []).push(pass)
  }

  /** Holds tokens from now on. If they come too late, they go back. */
  pay(reservation: Reservation): void {
    if (this.state === "taken") this.reservation = reservation
    else reservation.giveBack()
  }

  /**
   * The send is made: from now on, what it holds is used. Observers are notified unless another permit is that of the
   * send.
   */
  leave(isSend = true): void {
    if (this.state !== "taken") return
    if (isSend) this.world.observer.onSend?.(this)
    this.state = "left"
    this.reservation?.sent?.()
    if (this.retry === 0) this.reservation?.spend()
  }

  /** The send was never made: everything goes back. Returns `false` if it was made or is already settled. */
  cancel(): boolean {
    if (this.state !== "taken") return false
    this.end("canceled")
    this.reservation?.giveBack()
    if (this.passes !== undefined) { for (const pass of this.passes) pass.cancel() }
    return true
  }

  succeeded(value: unknown): void {
    this.ended("Success", undefined, value)
  }

  failed(error: unknown): void {
    this.ended("Failure", error)
  }

  /** How the send ends, or whether it is made, will never be known. */
  abandon(): void {
    this.cancel()
    this.ended("Unknown")
  }

  /** What it was for has ended like this, or was never begun. */
  settle(exit: Exit.Exit<unknown, unknown>): void {
    if (exit._tag === "Success") {
      this.succeeded(exit.value)
    } else {
      const failure = failureIn(exit.cause)
      if (failure !== undefined) this.failed(failure.error)
    }
    this.abandon()
  }

  private ended(tag: Outcome["_tag"], error?: unknown, value?: unknown): void {
    if (this.state !== "left") return
    const isBack = tag === "Success"
    this.end(isBack ? "returned" : "spent")
    if (isBack) this.reservation?.giveBack()
    else this.reservation?.spend()
    if (this.passes === undefined) return
    const outcome = new Ended(tag, error, value, this.world)
    for (const pass of this.passes) pass.settle(outcome)
  }

  private end(state: Permit["state"]): void {
    this.state = state
    this.watch?.release(this)
  }
}

/** Settles what a fiber holds when the fiber ends, in any way. A fiber has one for its whole life. */
export class Watch {
  /** The last retry that a schedule decided on in this fiber: `bridge.ts`. */
  pending: any = undefined
  /** The call that a schedule began in this fiber, until its first attempt: `bridge.ts`. */
  begun: any = undefined
  private top: Permit | undefined = undefined

  constructor(fiber: AnyFiber) {
    fiber.addObserver((exit) => {
      while (this.top !== undefined) {
        if (this.top.kind === "outlives" && exit._tag === "Success") this.release(this.top)
        else this.top.abandon()
      }
    })
  }

  hold(permit: Permit): void {
    permit.watch = this
    permit.below = this.top
    this.top = permit
  }

  /** Returns what is held for a retry that the fiber apparently will not make. */
  lapse(): void {
    while (this.top?.kind === "lapses") this.top.cancel()
  }

  release(permit: Permit): void {
    if (this.top === permit) {
      this.top = permit.below
    } else {
      let above = this.top!
      while (above.below !== permit) above = above.below!
      above.below = permit.below
    }
    permit.watch = permit.below = undefined
  }
}

/** The watch of a fiber. */
export const watchOf = (fiber: AnyFiber): Watch => {
  const known: Watch | undefined = shared.watches.get(fiber)
  if (known !== undefined) return known
  const watch = new Watch(fiber)
  shared.watches.set(fiber, watch)
  return watch
}

/**
 * A permit, held by a fiber if one is given. The running fiber has moved on: a retry that a schedule decided on in it is no
 * longer coming.
 */
export const permitOf = (world: World, retry: number, fiber: AnyFiber | undefined): Permit => {
  const permit = new Permit(world, retry)
  shared.watches.get(current())?.lapse()
  if (fiber !== undefined) watchOf(fiber).hold(permit)
  return permit
}
