import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { fleetOptionsOf } from "../../config/internal/fleetStores.ts"
import type * as CoolDown from "../../gates/CoolDown.ts"
import * as Gate from "../../gates/internal/coolDownGate.ts"
import { checksOf } from "../../internal/checks.ts"
import { type Inputs, readOptions } from "../../internal/options.ts"
import { anytime, type Connect, type Exchange, numberOf, RegularTopic, scriptOf } from "./exchange.ts"
import { joining, type SharedOptions, type ValidGate, validShared } from "./fleet.ts"

/** The settings of a cool-down, sent with every exchange. */
export interface CoolDownSettings {
  /** The key in Redis. */
  readonly key: string
  /** How long the process that opens the resource has for its probe. */
  readonly probeMillis: number
  /** The longest closing, whatever is in Redis: others may have written there. */
  readonly atMostMillis: number
}

/** One exchange: what is reported, and what is asked. */
export interface CoolDownExchange {
  readonly client: string
  /** How much longer a server wants no sends; 0 if none has said so. */
  readonly closedMillis: number
  /** Whether the probe of this process has succeeded. */
  readonly hasOpened: boolean
  /** Whether the process would open the resource. */
  readonly wantsToOpen: boolean
}

/** The response of Redis: the resource is free, closed, about to be opened by another process, or by this one. */
interface CoolDownReply {
  readonly state: "free" | "closed" | "others" | "yours"
  /** How much longer it is closed, or another process has for its probe, in milliseconds. */
  readonly millis: number
  /** Which closing it is: each has its own name. */
  readonly closing: string
}

const states = ["free", "closed", "others", "yours"] as const

/**
 * The only script, on one key, on the clock of Redis. The key is a hash: `until` when the server wants no sends,
 * `closing` identifies that closing, `holder` and `probe` say who probes, and until when. It exists while the resource
 * is not open, and expires if it is never opened.
 */
export const coolDownScript = scriptOf<CoolDownSettings, CoolDownExchange>(`
local client, closed, lease, most = sent.client, sent.closedMillis, sent.probeMillis, sent.atMostMillis
local stored = redis.call("HMGET", key, "until", "closing", "holder", "probe")
local ends, closing = amount(stored[1]) or 0, stored[2] or ""
local holder, probe = stored[3] or "", amount(stored[4]) or 0
local function keep()
  redis.call("HSET", key, "until", exact(ends), "closing", closing, "holder", holder, "probe", exact(probe))
  redis.call("PEXPIRE", key, string.format("%.0f", math.max(0, ends - now) + 2 * lease + 60000))
end

if ends > now + most or probe > now + lease then
  ends, probe = math.min(ends, now + most), math.min(probe, now + lease)
  keep()
end
if closed > 0 and now + closed > ends then
  ends, closing, holder, probe = now + closed, client .. ":" .. exact(now), "", 0
  keep()
elseif sent.hasOpened and holder == client and closing ~= "" and now >= ends then
  redis.call("DEL", key)
  return { 0, 0, "" }
end
if closing == "" then return { 0, 0, "" } end
if now < ends then return { 1, math.ceil(ends - now), closing } end
if sent.wantsToOpen and (holder == "" or holder == client or probe <= now) then
  holder, probe = client, now + lease
  keep()
end
if holder == client then return { 3, 0, closing } end
return { 2, math.max(0, math.ceil(probe - now)), closing }
`)

/** The reply, or `undefined` if it is invalid. */
export const coolDownReplyOf = (answer: unknown): CoolDownReply | undefined => {
  if (!Array.isArray(answer) || answer.length !== 3) return undefined
  const state = states[numberOf(answer[0])]
  const millis = numberOf(answer[1])
  return state !== undefined && millis >= 0 && millis < Infinity && typeof answer[2] === "string"
    ? { state, millis, closing: answer[2] }
    : undefined
}

/**
 * What a process reports to the others about one resource, and asks about it.
 */
class CoolDownClient extends RegularTopic<Gate.CoolDownGate, CoolDownSettings, CoolDownReply> implements Gate.Peers {
  /** Whether this process would open the resource. */
  isAsked = false
  /** Whether it may, once. */
  private mayOpenNow = false
  /** Whether this process is probing, and has to report the result. */
  private isProbing = false
  private hasOpened = false
  /** Until when a server wants no sends, if that is still to be reported. */
  private closedUntilMillis = -Infinity
  /** The closing known to the gate. */
  private closing = ""

  closed(untilMillis: number): void {
    this.closedUntilMillis = untilMillis
    this.mayOpenNow = this.isProbing = this.hasOpened = false
    this.exchanges.signal()
  }

  mayOpen(): boolean {
    if (this.exchanges.isAlone || this.mayOpenNow) {
      this.mayOpenNow = false
      return true
    }
    if (!this.isAsked) {
      this.isAsked = true
      this.look = anytime
      this.exchanges.signal()
    }
    return false
  }

  opened(): void {
    if (!this.isProbing) return
    this.isProbing = false
    this.hasOpened = true
    this.exchanges.signal()
  }

  protected isUrgent(now: number): boolean {
    return this.closedUntilMillis > now || this.hasOpened
  }

  protected get hasReason(): boolean {
    return this.isAsked || this.isActive
  }

  next(now: number): Exchange<CoolDownReply> {
    const { closedUntilMillis, hasOpened, isAsked } = this
    const closedMillis = Math.max(0, closedUntilMillis - now)
    const report = { client: this.exchanges.name, closedMillis, hasOpened, wantsToOpen: isAsked }
    this.isActive = false
    return {
      ask: (redis) => Effect.map(redis.eval(coolDownScript)(this.terms.settings, report), coolDownReplyOf),
      answered: (reply) => {
        if (this.closedUntilMillis === closedUntilMillis) this.closedUntilMillis = -Infinity
        if (hasOpened) this.hasOpened = false
        this.look = this.exchanges.nextLook(this.terms.lookMillis)
        this.follow(reply, closedMillis > 0, this.exchanges.nowMillis)
      }
    }
  }

  decideAlone(): void {
    this.look = anytime
    this.isAsked = this.isProbing = this.hasOpened = false
    this.gate.look(this.exchanges.nowMillis)
  }

  private follow({ closing, millis: remainingMillis, state }: CoolDownReply, report: boolean, now: number): void {
    const { gate } = this
    const millis = Math.min(remainingMillis, this.terms.settings.atMostMillis)
    const isNews = closing !== "" && closing !== this.closing
    this.closing = closing
    if (state === "closed") {
      this.mayOpenNow = this.isProbing = false
      // The process trusts its own report more than the response, unless another process was asked to wait longer.
      const isLonger = now + millis > gate.untilMillis + (report ? this.exchanges.timeoutMillis : 0)
      if (isNews && isLonger) gate.closeUntil(now, now + millis)
      this.askAgain(now, millis)
    } else if (state === "others") {
      if (isNews && gate.phase === "free") gate.closeUntil(now, now)
    } else if (this.isAsked) {
      this.granted(state === "yours", now)
    }
  }

  /** The gate asks when its own time is over. If it was, a hint has reached Redis late: it opens there a little later. */
  private askAgain(now: number, millis: number): void {
    if (this.gate.untilMillis > now) this.isAsked = false
    else this.look = { ...this.look, atMillis: Math.min(this.look.atMillis, now + millis) }
  }

  private granted(isProbing: boolean, now: number): void {
    this.isAsked = false
    this.mayOpenNow = true
    this.isProbing = isProbing
    this.gate.look(now)
  }
}

type Valid = ValidGate<Gate.CoolDownOptions, CoolDownSettings>

/** The options of a shared cool-down, with their defaults, checked. */
export const validated = (
  options: CoolDown.Options & SharedOptions & Inputs<typeof fleetOptionsOf.coolDown>
): Valid => {
  const check = checksOf("CoolDownRedis.make", options)
  const { key, name, times } = validShared(check, options, "cool-down:")
  const { lookIntervalMillis: lookMillis } = readOptions(check, fleetOptionsOf.coolDown, options)
  const gate = Gate.validated(options, check)
  const { atMostMillis, probeTimeMillis: probeMillis } = gate
  return { name, gate, terms: { settings: { key, probeMillis, atMostMillis }, lookMillis, ...times } }
}

/** Makes a gate one of a fleet. */
export const joined = joining("cool-down", CoolDownClient)

/** Makes a shared cool-down. */
export const over = (valid: Valid, connect: Connect) =>
  Effect.flatMap(Random.Random, (random) => {
    const gate = new Gate.CoolDownGate(valid.gate, random)
    return Effect.as(joined(gate, valid, connect), Gate.serviceOf(gate))
  })
