import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { Engine } from "../../AdaptiveRateLimiter.ts"
import { classify, CurrentClassifier } from "../../RetryClassifier.ts"
import { QuotaExhausted } from "../../RetryQuota.ts"
import type { RetryToken } from "../../RetryToken.ts"
import { type CallFiber, clockOf, monotonicMillis } from "../state/clock.ts"
import type { Patience } from "../state/waiters.ts"
import type { Environment } from "./environment.ts"
import { inside, Mark, nesting } from "./nesting.ts"
import { lapse } from "./pending.ts"
import { failAgain, type Failed, settling } from "./settling.ts"

type AnyEffect = Effect.Effect<any, any, any>

/** The fiber that runs: for callbacks, which are given none. */
export const current = (): CallFiber => Fiber.getCurrent()!

const noGrants: Array<() => void> = []

/** Books the outcomes of sends with the quota, the limiter and the observer. */
export class Booking {
  readonly environment: Environment
  /** The token of the retry that is sent; `undefined` for a first attempt. */
  token: RetryToken | undefined
  private granted: Array<() => void> = noGrants
  private mark: Mark | undefined = undefined

  constructor(environment: Environment, token: RetryToken | undefined) {
    this.environment = environment
    this.token = token
  }

  /** The context of the send, marked if a policy asks for marks. */
  marked(context: Context.Context<any>): Context.Context<any> {
    if (!nesting.inUse) return context
    this.mark = new Mark()
    return inside(context, this.mark)
  }

  /** The send leaves: from now on, what it holds of quota and limiter is used. */
  leaves(): void {
    for (const used of this.granted) used()
    if (this.token === undefined) return
    if (this.token.claimUnsafe()) this.token.held?.sentUnsafe(current())
    else this.token = undefined
  }

  /** The effect, which leaves when it starts. */
  leaving(self: AnyEffect): AnyEffect {
    return Effect.suspend(() => {
      this.leaves()
      return self
    })
  }

  /**
   * Sends an effect that {@link leaves}, once quota and limiter let it, and goes on with `next` after a failure.
   */
  send(self: AnyEffect, fiber: CallFiber, next: Failed): AnyEffect {
    const { store } = this.environment
    const limiter = this.limiter
    const paying = this.token === undefined && store !== undefined && store.firstAttemptCost > 0 ? store : undefined
    if (limiter === undefined && paying === undefined) return this.booked(self, next)
    const clock = clockOf(fiber)
    this.granted = []
    const booked = this.booked(self, failAgain)
    const limited = limiter === undefined ? booked : this.limited(booked, limiter, clock)
    const sent = paying === undefined ? limited : paying.afterFirstCost(
      clock,
      ({ sends }) => this.keeping(limited)(sends),
      () => new QuotaExhausted({ cost: paying.firstAttemptCost, balance: paying.balance(clock) })
    )
    // An attempt can be interrupted in its wait while its call goes on, as by a time-out of the attempt.
    const kept = Effect.onInterrupt(sent, () => Effect.sync(() => this.token?.cancelUnsafe()))
    return settling(kept, Effect.succeed, (error, cause) => {
      // What was refused was never sent, so what it held is not spent.
      this.token?.cancelUnsafe()
      return next(error, cause)
    })
  }

  /** What holds the send back: nothing before the first throttle, but for a retry that may have to end at its deadline. */
  private get limiter(): Engine | undefined {
    const { limiter } = this.environment
    return limiter?.enabled === true || this.token !== undefined ? limiter : undefined
  }

  private limited(booked: AnyEffect, limiter: Engine, clock: Clock.Clock): AnyEffect {
    const timely = Effect.suspend(() => {
      const atMost = this.atMost(clock)
      return atMost?.millis === 0 ? Effect.fail(atMost.expired()) : booked
    })
    return limiter.afterToken(this.keeping(timely), clock, this.atMost(clock))
  }

  /** A retry waits for its send token until the deadline of its call; then the call ends with its last failure. */
  private atMost(clock: Clock.Clock): Patience<unknown>["atMost"] {
    const token = this.token
    if (token === undefined || token.deadlineAtMillis === Infinity) return undefined
    return {
      millis: Math.max(0, token.deadlineAtMillis - monotonicMillis(clock)),
      expired: () => {
        token.expired = true
        return token.error
      }
    }
  }

  private keeping(effect: AnyEffect): (used: () => void) => AnyEffect {
    return (used) => {
      this.granted.push(used)
      return effect
    }
  }

  private booked(self: AnyEffect, next: Failed): AnyEffect {
    return settling(self, (value) => Effect.succeed(this.succeeded(value)), (error, cause) => {
      this.failed(error)
      return next(error, cause)
    }, () => this.died())
  }

  /** The attempt has ended in a defect, or was interrupted alone: it has been sent, so what its retry holds is spent. */
  private died(): void {
    if (this.mark !== undefined) this.mark.active = false
    this.token?.held?.spendUnsafe()
  }

  /** The attempt has succeeded: what its retry holds goes back. */
  succeeded<A>(value: A): A {
    const { limiter, observer, store } = this.environment
    if (this.mark !== undefined) this.mark.active = false
    const fiber = current()
    lapse(fiber)
    if (this.token !== undefined) {
      this.token.held?.giveBackUnsafe()
    } else if (store !== undefined) {
      store.put(store.successIncrement, clockOf(fiber))
    }
    limiter?.update(false, clockOf(fiber))
    observer.onAttempt?.(true, fiber)
    return value
  }

  /** The attempt has failed: what its retry holds is spent. */
  failed(error: unknown): void {
    const { limiter, observer } = this.environment
    if (this.mark !== undefined) this.mark.active = false
    this.token?.held?.spendUnsafe()
    if (limiter === undefined && observer.onAttempt === undefined) return
    const fiber = current()
    if (limiter !== undefined) {
      const info = classify(fiber.getRef(CurrentClassifier), error)
      limiter.update(Option.isSome(info) && info.value.throttling, clockOf(fiber))
    }
    observer.onAttempt?.(false, fiber)
  }
}
