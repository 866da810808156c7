import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Checks, checksOf } from "../../internal/checks.ts"
import { limitNames, limitsIn, merged, type Usage, usageOf } from "../../internal/classification/tokenUsage.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { monotonicMillis, withMillis } from "../../internal/clock.ts"
import { isObject } from "../../internal/invalidField.ts"
import * as Allowances from "../../internal/math/tokenAllowance.ts"
import * as Options from "../../internal/options.ts"
import { Stateful } from "../../internal/savedState.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { look } from "../../internal/tryGet.ts"
import { Line } from "../../internal/waitingLine.ts"
import type { Outcome, Send, SendGate } from "../../SendGate.ts"
import { Lease, RefusalError } from "./gate.ts"

/**
 * A send rejected for lack of tokens. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class TokenLimitExceeded extends RefusalError("TokenLimitExceeded")<{
  /** `"exceeded"` if there will not be enough in time, `"queue-full"` if `maxWaiters` were already waiting. */
  readonly reason: "exceeded" | "queue-full"
  /** When there could be enough for it: on current knowledge, if no other send is made. */
  readonly retryAfter: Duration.Duration
}> {
  override get message(): string {
    return this.reason === "exceeded"
      ? `the token or request limit is reached: try again in ${Duration.format(this.retryAfter)}`
      : "too many sends are waiting for tokens"
  }
}

const refusal = (reason: TokenLimitExceeded["reason"], millis: number): TokenLimitExceeded =>
  new TokenLimitExceeded({ reason, retryAfter: Duration.millis(Math.ceil(millis)) })

/**
 * The expected usage of a call, in tokens: input and output separately, or both together.
 *
 * @category models
 * @since 0.1.0
 */
export type Estimate = number | {
  /** Default: the 95th percentile of recent calls. */
  readonly input?: number | undefined
  /** Default: the 95th percentile of recent calls. */
  readonly output?: number | undefined
}

/**
 * The expected usage of the calls of an effect; see {@link estimate}. Default: none.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentEstimate: Context.Reference<Estimate | undefined> = Context.Reference<Estimate | undefined>(
  "effect-retry/TokenLimiter/CurrentEstimate",
  { defaultValue: () => undefined }
)

/** A number is input and output together: for separate limits it is an upper bound of the input. */
const expectedOf = (estimate: Estimate | undefined) =>
  typeof estimate === "number" ? { input: estimate, output: 0 } : estimate

/** Checks an estimate. */
export const validEstimate = (check: Checks, estimate: Estimate): Estimate => {
  if (typeof estimate === "number") return check.amount("estimate", estimate)
  if (!isObject(estimate)) {
    return check.reject("estimate", estimate, "a number of tokens, or of input and output")
  }
  const fields = (["input", "output"] as const).filter((field) => estimate[field] !== undefined)
  return Object.fromEntries(fields.map((field) => [field, check.amount(`estimate.${field}`, estimate[field])]))
}

const ceiling = Options.count(1, Infinity)

/** The options of a limiter. */
export const tokenOptions = {
  requests: ceiling,
  tokens: ceiling,
  inputTokens: ceiling,
  outputTokens: ceiling,
  per: Options.positiveDuration(60_000),
  burst: Options.optional(Options.positiveDuration()),
  slack: Options.optional(Options.duration()),
  share: Options.weight(1),
  cachedInput: Options.word("free", "counted"),
  estimate: Options.inCode,
  usage: Options.functionOf<(value: unknown) => Partial<Usage> | undefined>("a function of a value", usageOf),
  onExceeded: Options.word("wait", "fail"),
  maxWait: Options.optional(Options.positiveDuration()),
  maxWaiters: Options.count(0, 10_000)
}

/** Options with their defaults, checked. */
const validated = (options: Options.Inputs<typeof tokenOptions>) => {
  const check = checksOf("TokenLimiter.make", options)
  const valid = Options.validOptions(check, tokenOptions, options)
  const { perMillis, burstMillis = perMillis, slackMillis = burstMillis / 50, maxWaitMillis = 2 * perMillis } = valid
  if (burstMillis > perMillis) check.reject("burst", options.burst, "a duration of at most per")
  if (slackMillis >= burstMillis) check.reject("slack", options.slack, "a duration below burst")
  const { estimate = {} } = options
  const { input = 1000, output = 1000 } = expectedOf(validEstimate(check, estimate))!
  /** For requests, tokens, input tokens and output tokens; `Infinity` if only the server knows. */
  const ceilings = limitNames.map((name) => valid[name])
  return { ...valid, burstMillis, slackMillis, maxWaitMillis, ceilings, estimate: { input, output } }
}

type TokenOptions = ReturnType<typeof validated>

/** What a send uses of each limit. */
type Amounts = readonly [requests: number, tokens: number, inputTokens: number, outputTokens: number]

const amountsOf = (input: number, output: number): Amounts => [1, input + output, input, output]

/** The usage of recent sends. */
class Recent {
  private readonly values: Array<number> = []
  private next = 0

  add(value: number): void {
    this.values[this.next] = value
    this.next = (this.next + 1) % 100
  }

  /** The 95th percentile; `undefined` if nothing is known. */
  get high(): number | undefined {
    return this.values.slice().sort((a, b) => a - b)[Math.ceil(this.values.length * 0.95) - 1]
  }
}

/** The usage of one stream, reported in its last parts: its send is settled when the stream has ended. */
export class Meter {
  private reservation: Reservation | undefined = undefined
  private usage: Usage | undefined = undefined

  constructor(private readonly clock: Clock.Clock) {}

  /** The stream of a send has begun. */
  begin(reservation: Reservation, usage: Usage | undefined): void {
    this.end()
    this.reservation = reservation
    this.usage = usage
  }

  /** A part of it has arrived. */
  see(part: unknown): void {
    const { reservation } = this
    if (reservation === undefined) return
    this.usage = merged(this.usage, reservation.gate.usageOf(part))
    reservation.gate.learn(reservation, part, monotonicMillis(this.clock))
  }

  /** It has ended, for any reason. */
  end(): void {
    const { reservation } = this
    this.reservation = undefined
    reservation?.gate.used(reservation, this.usage, monotonicMillis(this.clock))
  }
}

/** Counts the usage of a stream: see `RetryLlm.metered`. */
export const CurrentMeter = Context.Reference<Meter | undefined>("effect-retry/TokenLimiter/CurrentMeter", {
  defaultValue: () => undefined
})

/** What a send has reserved. */
class Reservation extends Lease {
  constructor(
    override readonly gate: TokenGate,
    readonly amounts: Amounts,
    readonly meter: Meter | undefined,
    readonly snapshots: ReadonlyArray<Allowances.Snapshot>
  ) {
    super(gate)
  }
}

const isCount = (n: unknown): n is number => typeof n === "number" && n >= 0 && n <= Number.MAX_SAFE_INTEGER

/** The server rejected it before a model saw it. */
const isRefusal = ({ error, info }: Outcome): boolean => {
  const status = statusOf(error)
  return info?.throttling === true || (status !== undefined && status >= 400 && status < 500 && status !== 408)
}

/** What the windows hold, and until when the server wants no sends, in milliseconds of the monotonic clock. */
const initial = (options: TokenOptions) => ({
  allowances: options.ceilings.map((ceiling) => Allowances.full(ceiling, options)),
  closedUntilMillis: -Infinity,
  /** Sends that have passed and not ended. */
  inFlight: 0
})

type TokenState = Readonly<ReturnType<typeof initial>>

/** The gate of a token limiter: a send reserves its expected usage, and is settled by its actual usage. */
export class TokenGate extends Stateful<TokenState> implements SendGate<TokenLimitExceeded> {
  readonly order = 250
  private readonly inputs = new Recent()
  private readonly outputs = new Recent()
  private readonly line: Line<TokenLimitExceeded, Amounts>

  constructor(private readonly options: TokenOptions) {
    super(initial(options))
    this.line = new Line<TokenLimitExceeded, Amounts>({
      order: "fifo",
      maxWaiters: options.maxWaiters,
      maxWaitMillis: () => options.maxWaitMillis,
      opensInMillis: (now, amounts) => this.opensIn(now, amounts),
      isOpen: ({ nowMillis }, amounts) => this.opensIn(nowMillis, amounts) === 0,
      refused: (reason, now, amounts) => refusal(reason === "full" ? "exceeded" : reason, this.opensIn(now, amounts))
    })
  }

  stateAt(nowMillis: number) {
    const levels = this.levels(nowMillis)
    const named = Object.fromEntries(limitNames.map((name, of) => [name, levels[of]!]))
    return {
      ...named as Record<typeof limitNames[number], typeof levels[number]>,
      inFlight: this.state.inFlight,
      waiting: this.line.size
    }
  }

  /** The share that is left of the limit that is used most. */
  remainingShare(nowMillis: number): number {
    return Math.min(...this.levels(nowMillis).map(({ limit, remaining }) => limit === Infinity ? 1 : remaining / limit))
  }

  /** The limits and what is left of them. */
  private levels(nowMillis: number) {
    return this.state.allowances.map((allowance) => {
      const { bucket, filling } = Allowances.at(allowance, nowMillis)
      return { limit: filling?.perWindow ?? Infinity, remaining: filling === undefined ? Infinity : bucket.tokens }
    })
  }

  enter(send: Send): void | Effect.Effect<void, TokenLimitExceeded> {
    const { context, nowMillis } = send
    const { maxWaitMillis, onExceeded } = this.options
    const amounts = this.expectedOf(context)
    const millis = this.opensIn(nowMillis, amounts)
    if (millis === 0 && this.line.size === 0) return this.pass(send, nowMillis, amounts)
    if (onExceeded === "fail" || millis > maxWaitMillis) return Effect.fail(refusal("exceeded", millis))
    return this.line.wait(context, ({ nowMillis }) => this.pass(send, nowMillis, amounts), amounts)
  }

  /** The usage that a value reports. */
  usageOf(value: unknown): Usage | undefined {
    const usage = look(() => this.options.usage(value))
    if (usage === undefined || usage === null) return undefined
    const [input, cached, output] = [usage.input, usage.cached, usage.output].map((n) => isCount(n) ? n : undefined)
    return input === undefined && output === undefined ? undefined : { input, cached, output }
  }

  /** A send has ended. */
  complete(reservation: Reservation, outcome: Outcome): void {
    const { meter } = reservation
    const now = outcome.nowMillis
    if (outcome._tag === "Success") {
      const usage = this.usageOf(outcome.value)
      this.learn(reservation, outcome.value, now)
      if (meter !== undefined) return meter.begin(reservation, usage)
      return this.used(reservation, usage, now)
    }
    const isRefused = outcome._tag === "Failure" && isRefusal(outcome)
    this.settle(reservation, isRefused ? [1, 0, 0, 0] : reservation.amounts, now)
    if (outcome._tag === "Failure") {
      const limits = this.learn(reservation, outcome.error, now)
      if (outcome.info?.throttling === true) this.throttled(outcome, limits)
    }
    this.line.admit(outcome)
    this.line.signal()
  }

  /** A send was never made. */
  canceled(reservation: Reservation): void {
    this.settle(reservation, [0, 0, 0, 0], -Infinity)
    this.line.signal()
  }

  /** A send that succeeded used this much; what it expected, if it does not report both input and output. */
  used(reservation: Reservation, { cached = 0, input, output }: Partial<Usage> = {}, nowMillis: number): void {
    let used = reservation.amounts
    if (input !== undefined && output !== undefined) {
      used = amountsOf(this.options.cachedInput === "counted" ? input + cached : input, output)
      const { allowances: [, tokens, inputs, outputs] } = this.state
      this.inputs.add(Allowances.most(tokens!, Allowances.most(inputs!, used[2])))
      this.outputs.add(Allowances.most(tokens!, Allowances.most(outputs!, used[3])))
    }
    this.settle(reservation, used, nowMillis)
    this.line.admit({ nowMillis })
    this.line.signal()
  }

  /** Learns from the headers of a response, if any. Returns whether they say what is left. */
  learn({ snapshots }: Reservation, answer: unknown, nowMillis: number): boolean {
    const limits = limitsIn(answer)
    if (limits === undefined) return false
    this.change((allowance, of) =>
      Allowances.learn(Allowances.at(allowance, nowMillis), this.options, limits[of]!, { ...snapshots[of]!, nowMillis })
    )
    return limits.some(({ remaining }) => remaining !== undefined)
  }

  private throttled({ info, nowMillis }: Outcome, hasRemaining: boolean): void {
    const hint = info?.retryAfter === undefined ? 0 : Duration.toMillis(info.retryAfter)
    if (hint > 0) {
      const untilMillis = nowMillis + Math.min(hint, this.options.perMillis)
      this.state = { ...this.state, closedUntilMillis: Math.max(this.state.closedUntilMillis, untilMillis) }
    } else if (!hasRemaining) {
      this.change((allowance) => Allowances.drain(Allowances.at(allowance, nowMillis)))
    }
  }

  private expectedOf(context: AnyContext): Amounts {
    const { estimate } = this.options
    const { input, output } = expectedOf(Context.get(context, CurrentEstimate)) ?? {}
    return amountsOf(
      isCount(input) ? input : this.inputs.high ?? estimate.input,
      isCount(output) ? output : this.outputs.high ?? estimate.output
    )
  }

  private opensIn(nowMillis: number, amounts: Amounts): number {
    const { allowances, closedUntilMillis } = this.state
    const millis = allowances.map((allowance, of) =>
      Allowances.opensInMillis(Allowances.at(allowance, nowMillis), amounts[of]!)
    )
    return Math.max(0, Math.ceil(closedUntilMillis - nowMillis), ...millis)
  }

  private pass(send: Send, nowMillis: number, amounts: Amounts): void {
    const before = this.state.allowances
    this.change((allowance, of) => Allowances.reserve(Allowances.at(allowance, nowMillis), amounts[of]!), 1)
    const snapshots = this.state.allowances.map(({ drawn }, of) => ({
      sentMillis: nowMillis,
      held: before[of]!.held,
      drawn
    }))
    send.hold(new Reservation(this, amounts, Context.get(send.context, CurrentMeter), snapshots))
  }

  private settle({ amounts }: Reservation, used: Amounts, nowMillis: number): void {
    this.change((allowance, of) => Allowances.settle(Allowances.at(allowance, nowMillis), amounts[of]!, used[of]!), -1)
  }

  private change(next: (allowance: Allowances.Allowance, of: number) => Allowances.Allowance, inFlight = 0): void {
    const { allowances, closedUntilMillis, inFlight: before } = this.state
    this.state = { allowances: allowances.map(next), closedUntilMillis, inFlight: before + inFlight }
  }
}

/** How a limiter is made. */
export const tokenKind = {
  validated,
  make: (valid: TokenOptions) => new TokenGate(valid),
  serviceOf: (gate: TokenGate) => ({ gate, state: withMillis((nowMillis) => gate.stateAt(nowMillis)) })
}
