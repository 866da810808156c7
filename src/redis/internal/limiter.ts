import * as Effect from "effect/Effect"
import { fleetOptionsOf } from "../../config/internal/fleetStores.ts"
import type * as AdaptiveRateLimiter from "../../gates/AdaptiveRateLimiter.ts"
import * as Gate from "../../gates/internal/adaptiveGate.ts"
import { checksOf } from "../../internal/checks.ts"
import { withMillis } from "../../internal/clock.ts"
import * as Cubic from "../../internal/math/cubic.ts"
import { type Inputs, readOptions } from "../../internal/options.ts"
import type { Outcome, Send } from "../../SendGate.ts"
import { amountsOf, anytime, type Connect, type Exchange, RegularTopic, scriptOf } from "./exchange.ts"
import { joining, type SharedOptions, type ValidGate, validShared } from "./fleet.ts"

/** The settings of a shared limiter, sent with every exchange. Rates in sends per second. */
interface LimiterSettings {
  /** The key in Redis. */
  readonly key: string
  readonly beta: number
  readonly scaleConstant: number
  readonly minFillRate: number
  /** How long a process counts after its last exchange. */
  readonly memberMillis: number
  /** How long a cut takes to reach all: throttles in that time are part of it. */
  readonly cutMillis: number
  /** How long the rate is kept while no process sends. */
  readonly idleMillis: number
}

/** The rate of the fleet: when its curve began, and from which rate. */
interface FleetCurve {
  /** How often the rate was cut: 0 before the first throttle. */
  readonly cuts: number
  readonly lastMaxRate: number
  /** How long ago it was cut. */
  readonly millis: number
}

/** One exchange: what a process has done, and what it knows. */
export interface LimiterExchange extends FleetCurve {
  readonly client: string
  /** What it sends. */
  readonly rate: number
  /** Whether sends wait for tokens: it would send more. */
  readonly isHungry: boolean
  /** Whether a send made after the last cut was throttled. */
  readonly isThrottled: boolean
}

/** The response of Redis. */
export interface LimiterReply extends FleetCurve {
  /** The part of the fleet's rate that a process may use: above 0. */
  readonly share: number
  /** What the fleet sends. */
  readonly measured: number
}

/**
 * The only script, on one key, on the clock of Redis. The key is a hash: `cuts`, `last` and `at` are the curve;
 * `c:<client>` is what a process sends, whether it would send more, and when it reported that; `level` and `measured` were
 * computed from those at `leveled`.
 *
 * The level is that of max-min fairness: a process that sends less gets what it sends, the others get the level. Computing it
 * reads all processes, so that happens a few times per second, less often the more there are, and at each cut.
 *
 * While sends wait for tokens in any process, the fleet sends at its rate. Otherwise it sends what is measured: then its rate
 * is at most twice that, and a cut starts from what it sends.
 *
 * A throttle counts if its send left after all processes knew of the last cut, which already answered the earlier ones. A
 * process that knows of more cuts than Redis restores what Redis has lost.
 */
export const limiterScript = scriptOf<LimiterSettings, LimiterExchange>(`
local beta, scale, least, member = sent.beta, sent.scaleConstant, sent.minFillRate, sent.memberMillis
local stored = redis.call("HMGET", key, "cuts", "last", "at", "level", "leveled", "measured")
local cuts, last = math.min(2 ^ 52, amount(stored[1]) or 0), amount(stored[2]) or 0
local at = math.min(now, amount(stored[3]) or now)
local level, leveled, measured = amount(stored[4]) or 0, amount(stored[5]) or 0, amount(stored[6]) or 0
local reports = sent.isThrottled and sent.cuts >= cuts and (cuts == 0 or now - at >= sent.cutMillis)
if sent.cuts > cuts then
  cuts, last, at, leveled = sent.cuts, sent.lastMaxRate, now - sent.millis, 0
end

local function curve()
  local window = (last * (1 - beta) / scale) ^ (1 / 3)
  local since = (now - at) / 1000 - window
  return math.max(least, scale * since * since * since + last)
end

local function measure()
  local gone, demands, count = {}, {}, 0
  local fields = redis.call("HGETALL", key)
  measured = 0
  for index = 1, #fields, 2 do
    if string.sub(fields[index], 1, 2) == "c:" then
      local sends, wants, seen = string.match(fields[index + 1], "^(.-) (.-) (.*)$")
      sends, seen = amount(sends), amount(seen)
      if not sends or not seen or math.abs(now - seen) > member then
        gone[#gone + 1] = fields[index]
      else
        count = count + 1
        measured = measured + sends
        if wants == "0" then demands[#demands + 1] = sends end
      end
    end
  end
  for _, field in ipairs(gone) do redis.call("HDEL", key, field) end
  table.sort(demands)
  return demands, count
end

local function allowed(demands, count)
  return count > #demands and curve() or math.min(curve(), math.max(least, 2 * measured))
end

local function share(demands, count)
  local left = allowed(demands, count)
  local others = count
  for _, demand in ipairs(demands) do
    if demand * others > left then break end
    left = left - demand
    others = others - 1
  end
  level = others > 0 and left / others or demands[#demands] + left / count
end

redis.call("HSET", key, "c:" .. sent.client,
  exact(sent.rate) .. (sent.isHungry and " 1 " or " 0 ") .. exact(now))
local size = redis.call("HLEN", key)
if reports or now - leveled > 100 + size or now < leveled then
  local demands, count = measure()
  if reports then
    if cuts == 0 then
      last = measured
    else
      last = count > #demands and curve() or math.min(measured, curve())
    end
    cuts, at = cuts + 1, now
  end
  share(demands, count)
  redis.call("HSET", key, "cuts", cuts, "last", exact(last), "at", exact(at), "level", exact(level),
    "leveled", exact(now), "measured", exact(measured))
end
redis.call("PEXPIRE", key, string.format("%.0f", sent.idleMillis))
return { cuts, exact(last), exact(now - at), exact(level / curve()), exact(measured) }
`)

/** The reply, or `undefined` if it is invalid. */
export const limiterReplyOf = (answer: unknown): LimiterReply | undefined => {
  const [cuts = 0, lastMaxRate = 0, millis = 0, share = 0, measured = 0] = amountsOf(answer, 5, 0) ?? []
  return share > 0 ? { cuts, lastMaxRate, millis, share, measured } : undefined
}

/** The gate of a limiter whose rate is a share of a fleet's. Without Redis it continues by its own throttles. */
export class SharedAdaptiveGate extends Gate.AdaptiveGate {
  /** The other processes of the fleet. */
  peers: LimiterClient | undefined = undefined
  /** The curve of the fleet as this process knows it, when it was cut, and the share of this process. */
  private fleet = { cuts: 0, lastMaxRate: 0, cutAtMillis: -Infinity, share: 1 }
  private cubic: Cubic.CubicConfig

  constructor(options: Gate.AdaptiveOptions, nowMillis: number) {
    super(options, Gate.initial(options, nowMillis))
    this.cubic = options.cubic
  }

  /** What this process sends, per second. */
  get measuredTxRate(): number {
    return this.state.measuredTxRate
  }

  /** What this process knows of the fleet's curve. */
  curveAt(nowMillis: number): FleetCurve {
    const { cutAtMillis, cuts, lastMaxRate } = this.fleet
    return { cuts, lastMaxRate, millis: cuts === 0 ? 0 : nowMillis - cutAtMillis }
  }

  /** Follows the curve of the fleet, at a share of its rate. */
  follow({ cuts, lastMaxRate, millis, share }: LimiterReply, nowMillis: number): void {
    const cutAtMillis = nowMillis - millis
    this.fleet = { cuts, lastMaxRate, cutAtMillis, share }
    const cubic = this.ownCubic
    this.use({ ...this.options, cubic })
    if (cuts === 0) return
    const curve = { enabled: true, lastMaxRate: lastMaxRate * share, lastThrottleTime: cutAtMillis / 1000 }
    this.state = Cubic.follow(this.state, cubic, curve, nowMillis / 1000)
    this.waiters?.wakeHead()
  }

  override change(options: Gate.AdaptiveOptions): void {
    this.cubic = options.cubic
    super.change({ ...options, cubic: this.ownCubic })
  }

  /** The process is no longer one of a fleet: it keeps the rate it had as its part. */
  leave(): void {
    this.peers = undefined
    this.fleet = { ...this.fleet, cuts: 0, share: 1 }
    this.use({ ...this.options, cubic: this.cubic })
  }

  /** The cubic of a share takes as long as that of the whole. */
  private get ownCubic(): Cubic.CubicConfig {
    const { cubic, fleet: { share } } = this
    return { ...cubic, scaleConstant: cubic.scaleConstant * share, minFillRate: cubic.minFillRate * share }
  }

  override enter(send: Send): void | Effect.Effect<void, Gate.RateLimitExceeded> {
    const wait = super.enter({
      attempt: send.attempt,
      failureClass: send.failureClass,
      context: send.context,
      nowMillis: send.nowMillis,
      hold: (pass) => {
        const { cuts } = this.fleet
        send.hold({ settle: (outcome) => this.settleSend(outcome, cuts), cancel: () => pass.cancel() })
      }
    })
    if (wait !== undefined) this.peers?.sent()
    return wait
  }

  override update(throttled: boolean, nowMillis: number): void {
    this.book(throttled, this.fleet.cuts, nowMillis)
  }

  /** A throttle that was recorded as one for the fleet is one for this process alone. */
  cutAlone(nowMillis: number): void {
    // Recorded once: the response has been counted.
    const uncounted = { ...this.state, requestCount: this.state.requestCount - 1 }
    this.state = Cubic.update(uncounted, this.cubicOf(true), nowMillis / 1000, true)
  }

  private settleSend(outcome: Outcome, cuts: number): void {
    if (outcome._tag !== "Unknown") this.book(outcome.info?.throttling === true, cuts, outcome.nowMillis)
  }

  private book(throttled: boolean, cuts: number, nowMillis: number): void {
    const isAlone = this.peers?.isAlone !== false
    this.peers?.countEnd(throttled && cuts === this.fleet.cuts)
    this.moveTo(Cubic.update(this.state, this.cubicOf(isAlone), nowMillis / 1000, isAlone && throttled))
  }

  private cubicOf(isAlone: boolean): Cubic.CubicConfig {
    const { measuredTxRate, options: { cubic }, peers, state } = this
    // A process of a fleet that has measured nothing yet still has its part.
    const isMeasuredElsewhere = !isAlone || (peers !== undefined && state.curve.enabled && measuredTxRate === 0)
    return isMeasuredElsewhere ? { ...cubic, isMeasuredElsewhere } : cubic
  }
}

/** Reports the sends of a process, and asks for its part of the rate. */
class LimiterClient extends RegularTopic<SharedAdaptiveGate, LimiterSettings, LimiterReply> {
  private isThrottled = false

  /** Redis does not decide: this process does, by its own throttles. */
  get isAlone(): boolean {
    return this.exchanges.isAlone
  }

  /** A send has ended; throttled, if it left after the last cut. */
  countEnd(isThrottled: boolean): void {
    const isNews = isThrottled && !this.isThrottled
    this.isThrottled ||= isThrottled
    this.sent(isNews)
  }

  protected isUrgent(): boolean {
    return this.isThrottled
  }

  protected get hasReason(): boolean {
    return this.isActive || this.gate.waiting > 0
  }

  next(now: number): Exchange<LimiterReply> {
    const { gate, isThrottled } = this
    this.isActive = this.isThrottled = false
    const report = {
      client: this.exchanges.name,
      rate: gate.measuredTxRate,
      isHungry: gate.waiting > 0,
      isThrottled,
      ...gate.curveAt(now)
    }
    return {
      ask: (redis) => Effect.map(redis.eval(limiterScript)(this.terms.settings, report), limiterReplyOf),
      answered: (reply) => {
        this.look = this.exchanges.nextLook(this.terms.lookMillis)
        gate.follow(reply, this.exchanges.nowMillis)
      },
      failed: () => {
        this.isThrottled ||= isThrottled
      }
    }
  }

  /** A throttle that Redis may not know of cuts the rate of this process. */
  decideAlone(): void {
    if (this.isThrottled) this.gate.cutAlone(this.exchanges.nowMillis)
    this.isThrottled = false
    this.look = anytime
  }
}

type Valid = ValidGate<Gate.AdaptiveOptions, LimiterSettings>

type Options = AdaptiveRateLimiter.Options & SharedOptions & Inputs<typeof fleetOptionsOf.limiter>

/** The options of a shared limiter, with their defaults, checked. */
export const validated = (options: Options): Valid => {
  const check = checksOf("AdaptiveRateLimiterRedis.make", options)
  const { key, name, times } = validShared(check, options, "rate-limit:")
  const { idleTimeToLiveMillis, lookIntervalMillis: lookMillis } = readOptions(check, fleetOptionsOf.limiter, options)
  const idleMillis = Math.ceil(idleTimeToLiveMillis)
  const gate = Gate.validated(options, check)
  const { beta, minFillRate, scaleConstant } = gate.cubic
  const spans = { memberMillis: 4 * lookMillis, cutMillis: 2 * lookMillis, idleMillis }
  const settings = { key, beta, scaleConstant, minFillRate, ...spans }
  return { name, gate, terms: { settings, lookMillis, ...times } }
}

/** Makes a gate one of a fleet. */
export const joined = joining("rate limiter", LimiterClient)

/** Makes a shared limiter. */
export const over = (valid: Valid, connect: Connect) =>
  Effect.flatMap(
    withMillis((nowMillis) => new SharedAdaptiveGate(valid.gate, nowMillis)),
    (gate) => Effect.as(joined(gate, valid, connect), Gate.serviceOf(gate))
  )
