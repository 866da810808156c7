import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import type { CallFiber } from "../state/clock.ts"

/** Leave to make an attempt: when, and what it holds until it is sent. */
export interface Token {
  /** The number of the attempt that it is for: 1 for the first. */
  readonly attempt: number
  /** How long to wait before the attempt is sent. */
  readonly delay: Duration.Duration
  /** The back-off that the strategy has waited out itself before it gave the token. */
  readonly waited: Duration.Duration
  /** Tokens of the quota that the attempt holds. */
  readonly cost: number
  /** The attempt is sent: what it holds is spent unless it succeeds. Answers `false` when the token is used up. */
  readonly leave: Effect.Effect<boolean>
  /** The attempt is never sent: what it holds goes back. Answers `false` when it has left or the token is used up. */
  readonly abandon: Effect.Effect<boolean>
}

/**
 * A token that its strategy does not take: another one issued it, or it has been used up by a refresh, a success or by
 * being abandoned. It is a mistake of the program, so it is a defect.
 */
export class InvalidToken extends Data.TaggedError("InvalidToken")<{
  /** What is wrong with the token. */
  readonly reason: "foreign" | "used"
}> {
  override get message(): string {
    return this.reason === "foreign"
      ? "the retry token is not one of this strategy"
      : "the retry token has been used up already"
  }
}

/** What a token is issued for. */
export interface Terms {
  readonly attempt: number
  readonly delayMillis: number
  readonly waitedMillis: number
  readonly cost: number
  /** Puts back what the attempt holds; empty when it holds nothing. */
  readonly undo: ReadonlyArray<() => void>
  /** The attempt was sent, and ended in a defect or an interruption: nobody will settle it. */
  readonly died?: (() => void) | undefined
  /** The attempt is sent, in this fiber. */
  readonly sent?: ((fiber: CallFiber) => void) | undefined
}

class Issued<Call> implements Token {
  readonly issuer: Issuer<Call>
  readonly call: Call
  private readonly terms: Terms
  private readonly unwatch: () => void = constVoid
  private state: "waiting" | "left" | "used" = "waiting"

  constructor(issuer: Issuer<Call>, call: Call, terms: Terms, fiber: CallFiber) {
    this.issuer = issuer
    this.call = call
    this.terms = terms
    // A fiber keeps its observers until it ends, and may be given any number of tokens.
    if (terms.undo.length === 0) return
    this.unwatch = fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) this.abandonUnsafe()
    })
  }

  get attempt(): number {
    return this.terms.attempt
  }

  get delay(): Duration.Duration {
    return Duration.millis(this.terms.delayMillis)
  }

  get waited(): Duration.Duration {
    return Duration.millis(this.terms.waitedMillis)
  }

  get cost(): number {
    return this.terms.cost
  }

  get leave(): Effect.Effect<boolean> {
    return Effect.withFiber((fiber) => Effect.succeed(this.leaveUnsafe(fiber)))
  }

  get abandon(): Effect.Effect<boolean> {
    return Effect.sync(() => this.abandonUnsafe())
  }

  redeemUnsafe(): boolean {
    if (this.state === "used") return false
    this.unwatch()
    this.state = "used"
    return true
  }

  diedUnsafe(): void {
    if (this.state === "left" && this.redeemUnsafe()) this.terms.died?.()
  }

  private leaveUnsafe(fiber: CallFiber): boolean {
    if (this.state !== "waiting") return false
    this.unwatch()
    this.state = "left"
    this.terms.sent?.(fiber)
    return true
  }

  private abandonUnsafe(): boolean {
    if (this.state !== "waiting") return false
    this.redeemUnsafe()
    for (const undo of this.terms.undo) undo()
    return true
  }

  toJSON(): unknown {
    const { attempt, cost, delayMillis, waitedMillis } = this.terms
    return { _tag: "RetryStrategyToken", attempt, delayMillis, waitedMillis, cost }
  }
}

/** The attempt of a token has ended in a defect, or was interrupted alone. */
export const died = (token: Token): void => {
  if (token instanceof Issued) token.diedUnsafe()
}

/** Issues the tokens of one strategy, and takes each of them once. */
export class Issuer<Call> {
  /**
   * Issues a token. What it holds goes back if the fiber fails before the attempt leaves; a fiber that succeeds may have
   * handed the token on, to a promise for instance.
   */
  issue(call: Call, terms: Terms, fiber: CallFiber): Token {
    return new Issued(this, call, terms, fiber)
  }

  /** Uses a token up. Throws `InvalidToken`, for a defect. */
  redeem(token: Token): Call {
    if (!(token instanceof Issued) || token.issuer !== this) throw new InvalidToken({ reason: "foreign" })
    if (!token.redeemUnsafe()) throw new InvalidToken({ reason: "used" })
    return token.call as Call
  }
}
