import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { checksOf } from "../../internal/checks.ts"
import { withMillis } from "../../internal/clock.ts"
import { Window } from "../../internal/math/slidingWindow.ts"
import * as Options from "../../internal/options.ts"
import { isRejected } from "../../internal/rejection.ts"
import type { Outcome, Send, SendGate } from "../../SendGate.ts"
import { Lease, RefusalError } from "./gate.ts"

/**
 * A send rejected by the throttle. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class ClientThrottled extends RefusalError("ClientThrottled")<{
  /** The share of sends being rejected at that moment: above 0, at most 1. */
  readonly rejection: number
}> {
  override get message(): string {
    return `the service rejects so many sends that ${Math.round(100 * this.rejection)} % are not made`
  }
}

/** The options of a throttle. */
export const throttleOptions = {
  k: Options.factor(2),
  window: Options.positiveDuration(10_000),
  maxRejection: Options.share(0.9),
  counts: Options.word("settled", "sent"),
  isRejection: Options.callback(isRejected)
}

/** Valid options of a throttle. */
export type ThrottleOptions = Options.Valid<typeof throttleOptions>

/** Options with their defaults, checked. */
export const validated = (options: Options.Inputs<typeof throttleOptions>): ThrottleOptions =>
  Options.validOptions(checksOf("ClientThrottle.make", options), throttleOptions, options)

/** A tenth of the window, and the pass of the sends let through in it. */
class Slice extends Lease {
  requests = 0
  accepts = 0

  constructor(
    gate: ThrottleGate,
    /** Those of the gate when the sends were let through. If it has others, it counts in another way. */
    readonly sums: { requests: number; accepts: number }
  ) {
    super(gate)
  }
}

/** The gate of a throttle: it rejects at random as many sends as the service seems to reject. */
export class ThrottleGate implements SendGate<ClientThrottled> {
  readonly name = "ClientThrottle"
  readonly order = 200
  /** Of the whole window. */
  private sums!: Slice["sums"]
  private window!: Window<Slice>

  constructor(private options: ThrottleOptions, private readonly random: Random.Random, nowMillis: number) {
    this.begin(nowMillis)
  }

  /** Switches to other options, keeping its counts if they are counted as before. */
  change(options: ThrottleOptions, nowMillis: number): void {
    const { counts, windowMillis } = this.options
    this.options = options
    if (options.counts !== counts || options.windowMillis !== windowMillis) this.begin(nowMillis)
  }

  /** The current counts, and the share of sends being rejected. */
  look(nowMillis: number): { readonly requests: number; readonly accepts: number; readonly rejection: number } {
    this.window.at(nowMillis)
    const { requests, accepts } = this.sums
    return { requests, accepts, rejection: this.rejection }
  }

  enter(send: Send): void | Effect.Effect<void, ClientThrottled> {
    const isSettled = this.options.counts === "settled"
    // Nothing was rejected lately, so what leaves the window changes nothing and the time does not matter.
    if (isSettled && this.isBlank) return send.hold(this.window.current)
    const slice = this.window.at(send.nowMillis)
    const { rejection } = this
    const isRefused = rejection > 0 && this.random.nextDoubleUnsafe() < rejection
    if (isRefused || !isSettled) this.count(slice, 1, 0)
    if (isRefused) return Effect.fail(new ClientThrottled({ rejection }))
    send.hold(slice)
  }

  /** Whether it has learned nothing that would be lost with it. */
  get isBlank(): boolean {
    return this.sums.requests === this.sums.accepts
  }

  /** The service rejects so many sends that some are rejected here. */
  isStrained(nowMillis: number): boolean {
    return this.look(nowMillis).rejection > 0
  }

  /** A send has ended. */
  complete({ sums }: Slice, outcome: Outcome): void {
    if (outcome._tag === "Unknown" || sums !== this.sums) return
    const accepts = outcome._tag === "Success" || !this.options.isRejection(outcome) ? 1 : 0
    this.count(this.window.at(outcome.nowMillis), this.options.counts === "settled" ? 1 : 0, accepts)
  }

  /** A send was never made: it does not count as a request. */
  canceled(slice: Slice): void {
    if (this.options.counts === "sent" && this.window.slices.includes(slice)) this.count(slice, -1, 0)
  }

  private begin(nowMillis: number): void {
    const sums = this.sums = { requests: 0, accepts: 0 }
    this.window = new Window({
      millis: this.options.windowMillis,
      slice: () => new Slice(this, sums),
      dropped: (slice) => {
        sums.requests -= slice.requests
        sums.accepts -= slice.accepts
      }
    }, nowMillis)
  }

  /** Source: Google SRE, chapter 21, "Client-side throttling". */
  private get rejection(): number {
    const { requests, accepts } = this.sums
    const share = (requests - this.options.k * accepts) / (requests + 1)
    return Math.max(0, Math.min(this.options.maxRejection, share))
  }

  private count(slice: Slice, requests: number, accepts: number): void {
    slice.requests += requests
    slice.accepts += accepts
    slice.sums.requests += requests
    slice.sums.accepts += accepts
  }
}

/** The service of a gate. */
export const serviceOf = (gate: ThrottleGate) => ({
  gate,
  state: withMillis((nowMillis) => gate.look(nowMillis))
})

/** How a throttle is made. */
export const throttleKind = {
  validated,
  make: (valid: ThrottleOptions, random: Random.Random, nowMillis: number) =>
    new ThrottleGate(valid, random, nowMillis),
  serviceOf
}
