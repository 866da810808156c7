import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { firstIn } from "../internal/cause.ts"
import type { AnyContext } from "../internal/shared.ts"
import { safely } from "../internal/sharing.ts"
import { classify } from "../RetryClassifier.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Reservation } from "../RetryQuotaStore.ts"
import type { Outcome, Pass, Send } from "../SendGate.ts"
import type { AnyFiber, CallEnvironment } from "./environment.ts"

/** Two reservations for one send, of a store that cannot resize one. It shrinks by the second as a whole. */
const both = (first: Reservation, second: Reservation): Reservation => {
  let more: Reservation | undefined = second
  return {
    get cost() {
      return first.cost + (more?.cost ?? 0)
    },
    resize(cost) {
      if (cost !== first.cost) return cost === this.cost
      more?.giveBack()
      more = undefined
      return true
    },
    sent() {
      first.sent?.()
      more?.sent?.()
    },
    giveBack: () => {
      more?.giveBack()
      return first.giveBack()
    },
    spend: () => {
      more?.spend()
      return first.spend()
    }
  }
}

/** Something whose time is read when it is first asked for. */
class Timed {
  protected now = -1

  constructor(public environment: CallEnvironment) {}

  get nowMillis(): number {
    return this.now < 0 ? this.now = this.environment.nowMillis : this.now
  }
}

/** How a send ended, for the gates it passed. */
class SendOutcome extends Timed implements Outcome {
  private cachedInfo: Option.Option<RetryInfo> | undefined = undefined

  constructor(
    environment: CallEnvironment,
    readonly _tag: Outcome["_tag"],
    readonly error: unknown,
    readonly value: unknown
  ) {
    super(environment)
  }

  get info(): RetryInfo | undefined {
    if (this._tag !== "Failure") return undefined
    this.cachedInfo ??= classify(this.environment.classifier, this.error)
    return Option.getOrUndefined(this.cachedInfo)
  }
}

const notify = (permit: Permit): void => permit.environment.observer.onSend?.(permit)

const depart = ({ reservation, retry }: Permit): void => {
  reservation?.sent?.()
  if (retry === 0) reservation?.spend()
}

const settleTokens = ({ reservation, state }: Permit): unknown =>
  state === "spent" ? reservation?.spend() : reservation?.giveBack()

const settle = (pass: Pass, outcome: Outcome | undefined): void =>
  outcome === undefined ? pass.cancel() : pass.settle(outcome)

/**
 * What one send holds: quota tokens and gate passes. It is taken, then the send is made, then it is settled, once: a
 * send that was never made returns everything (`canceled`), one that was made spends it (`spent`) unless it succeeds
 * (`returned`).
 */
export class Permit extends Timed implements Send {
  state: "taken" | "sent" | "returned" | "spent" | "canceled" = "taken"
  /** What the fiber holds that it ends with: see {@link fiberScope}. */
  declare holder: Set<Permit> | undefined
  reservation: Reservation | undefined = undefined
  /** Of the gates that it has passed so far. */
  passes: Array<Pass> | undefined = undefined
  /** The gate that it waits for, or that has refused it. */
  declare gate: string | undefined
  declare failureClass: Send["failureClass"]

  constructor(
    environment: CallEnvironment,
    /** The number of the retry it is for; 0 for a first send, whose tokens are a fee that a success does not return. */
    readonly retry: number
  ) {
    super(environment)
  }

  get attempt(): number {
    return this.retry + 1
  }

  get context(): AnyContext {
    return this.environment.context
  }

  /** A gate has made it wait: the next ones get the time at which they are asked. */
  waited(): void {
    this.now = -1
  }

  /** Holds a gate's pass from now on. If it comes too late, it goes back. */
  hold(pass: Pass): void {
    if (this.state !== "taken") return pass.cancel()
    // An empty array takes room for seventeen with the first: no further pass allocates.
    const passes = this.passes ??= []
    passes.push(pass)
  }

  /** Holds tokens from now on. If they come too late, they go back. */
  pay(reservation: Reservation): void {
    if (this.state !== "taken") reservation.giveBack()
    else this.reservation = this.reservation === undefined ? reservation : both(this.reservation, reservation)
  }

  /** Holds no more tokens than this. A store that cannot resize a reservation, and is not remote, gives another. */
  shrink(cost: number): void {
    const { reservation, environment: { clock, store } } = this
    if (reservation === undefined || reservation.cost <= cost || reservation.resize?.(cost) === true) return
    let other = cost > 0 && store!.reserve(cost, clock)
    if (typeof other === "function") return
    reservation.giveBack()
    other ||= store!.reserve(cost, clock)
    this.reservation = typeof other === "object" ? other : undefined
  }

  /**
   * The send is made: from now on, what it holds is used. Observers are notified unless another permit is that of the
   * send.
   */
  sent(isSend = true): void {
    if (this.state !== "taken") return
    if (isSend) safely(this.environment, notify, this)
    this.state = "sent"
    safely(this.environment, depart, this)
  }

  /** The send was never made: everything goes back. Returns `false` if it was made or is already settled. */
  cancel(): boolean {
    if (this.state !== "taken") return false
    this.end("canceled")
    return true
  }

  succeeded(value: unknown): void {
    this.settlePasses("Success", undefined, value)
  }

  failed(error: unknown): void {
    this.settlePasses("Failure", error)
  }

  /** How the send ends, or whether it is made, will never be known. */
  abandon(): void {
    this.cancel()
    this.settlePasses("Unknown")
  }

  /** What it was for has ended like this, or was never begun. */
  settle(exit: Exit.Exit<unknown, unknown>): void {
    if (exit._tag === "Success") {
      this.succeeded(exit.value)
    } else {
      const failure = firstIn(exit.cause)
      if (failure !== undefined) this.failed(failure.error)
    }
    this.abandon()
  }

  private settlePasses(tag: Outcome["_tag"], error?: unknown, value?: unknown): void {
    if (this.state !== "sent") return
    const outcome = this.passes && new SendOutcome(this.environment, tag, error, value)
    this.end(tag === "Success" ? "returned" : "spent", outcome)
  }

  /** Settles all that it holds, whatever a store or a gate of the user's throws. */
  private end(state: Permit["state"], outcome?: Outcome): void {
    const { passes, environment } = this
    this.state = state
    this.holder?.delete(this)
    safely(environment, settleTokens, this)
    if (passes !== undefined) { for (const pass of passes) safely(environment, settle, pass, outcome) }
  }
}

/** What each fiber holds. */
const held = new WeakMap<AnyFiber, Set<Permit>>()

/**
 * Settles a permit when this fiber ends, in any way: for the tokens of strategies, which no frame is around. A fiber that
 * succeeds may have passed them on, for example to a promise.
 */
export const fiberScope = (permit: Permit, fiber: AnyFiber): void => {
  const permits = held.get(fiber) ?? new Set()
  if (!held.has(fiber)) {
    held.set(fiber, permits)
    fiber.addObserver((exit) => {
      if (exit._tag === "Failure") { for (const permit of [...permits].reverse()) permit.abandon() }
      permits.clear()
    })
  }
  permit.holder?.delete(permit)
  permit.holder = permits.add(permit)
}
