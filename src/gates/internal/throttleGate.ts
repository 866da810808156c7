import type * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { checksOf } from "../../internal/checks.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import { Window } from "../../internal/math/slidingWindow.ts"
import {
  callback,
  factor,
  type Inputs,
  positiveDuration,
  share,
  type Valid,
  validOptions,
  word
} from "../../internal/options.ts"
import { Refused } from "../../internal/refused.ts"
import { isRejected } from "../../internal/rejection.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import type { Outcome, Pass, Send, SendGate } from "../../SendGate.ts"

/**
 * A send rejected by the throttle. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class ClientThrottled extends Data.TaggedError("ClientThrottled")<{
  /** The share of sends being rejected at that moment: above 0, at most 1. */
  readonly rejection: number
}> {
  readonly [Refused] = true
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `the service rejects so many sends that ${Math.round(100 * this.rejection)} % are not made`
  }
}

/** The options of a throttle. */
export const throttleOptions = {
  k: factor(2),
  window: positiveDuration(10_000),
  maxRejection: share(0.9),
  counts: word("settled", "sent"),
  isRejection: callback(isRejected)
}

/** Valid options of a throttle. */
export type ThrottleOptions = Valid<typeof throttleOptions>

/** Options with their defaults, checked. */
export const validated = (options: Inputs<typeof throttleOptions>): ThrottleOptions =>
  validOptions(checksOf("ClientThrottle.make", options), throttleOptions, options)

/** A tenth of the window, and the pass of the sends let through in it. */
class Slice implements Pass {
  requests = 0
  accepts = 0
  isOver = false

  constructor(
    private readonly gate: ThrottleGate,
    /** Whether the gate still counts in the same way as when the sends were let through. */
    private readonly era: object
  ) {}

  settle(outcome: Outcome): void {
    if (this.era === this.gate.era) this.gate.complete(outcome)
  }

  cancel(): void {
    this.gate.canceled(this)
  }
}

/** The gate of a throttle: it rejects at random as many sends as the service seems to reject. */
export class ThrottleGate implements SendGate<ClientThrottled> {
  readonly name = "ClientThrottle"
  readonly order = 200
  private requests = 0
  private accepts = 0
  /** Identifies the time during which sends are counted in the same way. */
  era = {}
  private window: Window<Slice>

  constructor(private options: ThrottleOptions, private readonly random: Random.Random, nowMillis: number) {
    this.window = this.counting(nowMillis)
  }

  /** Switches to other options, keeping its counts if they are counted as before. */
  change(options: ThrottleOptions, nowMillis: number): void {
    const { counts, windowMillis } = this.options
    this.options = options
    if (options.counts === counts && options.windowMillis === windowMillis) return
    for (const slice of this.window.slices) this.dropped(slice)
    this.era = {}
    this.window = this.counting(nowMillis)
  }

  /** The current counts, and the share of sends being rejected. */
  look(nowMillis: number): { readonly requests: number; readonly accepts: number; readonly rejection: number } {
    this.window.at(nowMillis)
    return { requests: this.requests, accepts: this.accepts, rejection: this.rejection }
  }

  enter(send: Send): void | Effect.Effect<void, ClientThrottled> {
    const isSettled = this.options.counts === "settled"
    // Nothing was rejected lately, so what leaves the window changes nothing and the time does not matter.
    if (isSettled && this.requests === this.accepts) return send.hold(this.window.current)
    const slice = this.window.at(send.nowMillis)
    const { rejection } = this
    const isRefused = rejection > 0 && this.random.nextDoubleUnsafe() < rejection
    if (isRefused || !isSettled) this.count(slice, 1, 0)
    if (isRefused) return Effect.fail(new ClientThrottled({ rejection }))
    send.hold(slice)
  }

  /** Whether it has learned nothing that would be lost with it. */
  get isBlank(): boolean {
    return this.requests === this.accepts
  }

  /** The service rejects so many sends that some are rejected here. */
  isStrained(nowMillis: number): boolean {
    return this.look(nowMillis).rejection > 0
  }

  /** A send has ended. */
  complete(outcome: Outcome): void {
    if (outcome._tag === "Unknown") return
    const accepts = outcome._tag === "Success" || !this.options.isRejection(outcome) ? 1 : 0
    this.count(this.window.at(outcome.nowMillis), this.options.counts === "settled" ? 1 : 0, accepts)
  }

  /** A send was never made: it does not count as a request. */
  canceled(slice: Slice): void {
    if (this.options.counts === "sent" && !slice.isOver) this.count(slice, -1, 0)
  }

  private counting(nowMillis: number): Window<Slice> {
    const { era } = this
    return new Window({
      millis: this.options.windowMillis,
      slice: () => new Slice(this, era),
      dropped: (slice) => this.dropped(slice)
    }, nowMillis)
  }

  /** Source: Google SRE, chapter 21, "Client-side throttling". */
  private get rejection(): number {
    const share = (this.requests - this.options.k * this.accepts) / (this.requests + 1)
    return Math.max(0, Math.min(this.options.maxRejection, share))
  }

  private count(slice: Slice, requests: number, accepts: number): void {
    slice.requests += requests
    slice.accepts += accepts
    this.requests += requests
    this.accepts += accepts
  }

  private dropped(slice: Slice): void {
    slice.isOver = true
    this.requests -= slice.requests
    this.accepts -= slice.accepts
  }
}

/** The service of a gate. */
export const serviceOf = (gate: ThrottleGate) => ({
  gate,
  state: Effect.clockWith((clock: Clock.Clock) => Effect.sync(() => gate.look(monotonicMillis(clock))))
})
