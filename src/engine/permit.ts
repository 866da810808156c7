import * as Context from "effect/Context"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { type AnyContext, shared } from "../internal/shared.ts"
import { classify, CurrentClassifier } from "../RetryClassifier.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Reservation } from "../RetryQuotaStore.ts"
import type { Outcome, Pass, Send } from "../SendGate.ts"
import type { AnyFiber, World } from "./world.ts"

/** How a send ended, for the gates that it has passed. */
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
 * What one send holds: tokens of the quota and passes of gates. It is taken, then the send leaves, then it is settled,
 * once: what was never sent goes back (`canceled`), what was sent is `spent` unless it succeeds (`returned`).
 */
export class Permit implements Send {
  readonly world: World
  /** The number of the retry that it is for; 0 for a first send, whose tokens are a fee that no success gives back. */
  readonly retry: number
  state: "taken" | "left" | "returned" | "spent" | "canceled" = "taken"
  /**
   * What is special about it. `"lapses"`: its retry may never come, for a schedule can be stopped by a condition around
   * it, and is not notified. `"outlives"`: its fiber may hand it on, as to a promise, so only a fiber that fails settles it.
   */
  kind: "plain" | "lapses" | "outlives" = "plain"
  /** Who settles it if its fiber ends, and what that fiber holds besides. */
  watch: Watch | undefined = undefined
  below: Permit | undefined = undefined
  reservation: Reservation | undefined = undefined
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

  /** Holds a pass of a gate from now on. What comes when nobody needs it any more goes back. */
  hold(pass: Pass): void {
    if (this.state !== "taken") pass.cancel()
    else if (this.passes === undefined) this.passes = [pass]
    else this.passes.push(pass)
  }

  /** Holds tokens from now on. What comes when nobody needs it any more goes back. */
  pay(reservation: Reservation): void {
    if (this.state === "taken") this.reservation = reservation
    else reservation.giveBack()
  }

  /** The send leaves: from now on, what it holds is used. Observers are notified unless another permit is that of the send. */
  leave(isSend = true): void {
    if (this.state !== "taken") return
    if (isSend) this.world.observer.onSend?.(this)
    this.state = "left"
    this.reservation?.sent?.()
    if (this.retry === 0) this.reservation?.spend()
  }

  /** The send was never made: all goes back. Answers `false` when it was made, or has been settled before. */
  cancel(): boolean {
    if (this.state !== "taken") return false
    this.end("canceled")
    this.reservation?.giveBack()
    if (this.passes !== undefined) { for (const pass of this.passes) pass.cancel() }
    return true
  }

  succeeded(value: unknown): void {
    if (this.state !== "left") return
    this.end("returned")
    this.reservation?.giveBack()
    this.tell("Success", undefined, value)
  }

  failed(error: unknown): void {
    if (this.state !== "left") return
    this.end("spent")
    this.reservation?.spend()
    this.tell("Failure", error)
  }

  /** Nobody will say how the send ends, or whether it is made. */
  abandon(): void {
    if (this.cancel() || this.state !== "left") return
    this.end("spent")
    this.reservation?.spend()
    this.tell("Unknown")
  }

  private tell(tag: Outcome["_tag"], error?: unknown, value?: unknown): void {
    if (this.passes === undefined) return
    const outcome = new Ended(tag, error, value, this.world)
    for (const pass of this.passes) pass.settle(outcome)
  }

  private end(state: Permit["state"]): void {
    this.state = state
    this.watch?.release(this)
  }
}

/** Settles what a fiber holds when the fiber ends, whatever ends it. A fiber has one, for as long as it lives. */
export class Watch {
  /** The retry that a schedule has decided on last in this fiber: `bridge.ts`. */
  pending: any = undefined
  /** The call that a schedule has begun in this fiber, until its first attempt: `bridge.ts`. */
  begun: any = undefined
  private top: Permit | undefined = undefined

  constructor(fiber: AnyFiber) {
    fiber.addObserver((exit) => {
      while (this.top !== undefined) {
        if (this.top.kind === "outlives" && Exit.isSuccess(exit)) this.release(this.top)
        else this.top.abandon()
      }
    })
  }

  hold(permit: Permit): void {
    permit.watch = this
    permit.below = this.top
    this.top = permit
  }

  /** Gives back what is held for a retry that the fiber no longer seems to make. */
  lapse(): void {
    while (this.top !== undefined && this.top.kind === "lapses" && this.top.state === "taken") this.top.cancel()
  }

  release(permit: Permit): void {
    if (this.top === permit) {
      this.top = permit.below
    } else {
      let above = this.top
      while (above !== undefined && above.below !== permit) above = above.below
      if (above !== undefined) above.below = permit.below
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

/** A permit for a send of this fiber, which goes on: a retry that it had decided on before does not come any more. */
export const permitOf = (world: World, retry: number, fiber: AnyFiber | undefined): Permit => {
  const permit = new Permit(world, retry)
  if (fiber !== undefined) {
    const watch = watchOf(fiber)
    watch.lapse()
    watch.hold(permit)
  }
  return permit
}
