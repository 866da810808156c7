import * as Redis from "effect/persistence/Redis"
import { luaAmount, numberOf } from "./scriptReply.ts"

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
export interface CoolDownReply {
  readonly state: "free" | "closed" | "others" | "yours"
  /** How much longer it is closed, or another process has for its probe, in milliseconds. */
  readonly millis: number
  /** Which closing it is: each has its own name. */
  readonly closing: string
}

const states = ["free", "closed", "others", "yours"] as const

const exchangeArguments = (
  { atMostMillis, key, probeMillis }: CoolDownSettings,
  { client, closedMillis, hasOpened, wantsToOpen }: CoolDownExchange
): ReadonlyArray<string | number> => [
  key,
  client,
  closedMillis,
  hasOpened ? 1 : 0,
  wantsToOpen ? 1 : 0,
  probeMillis,
  atMostMillis
]

/**
 * The only script, on one key, on the clock of Redis. The key is a hash: `until` when the server wants no sends,
 * `closing` identifies that closing, `holder` and `probe` say who probes, and until when. It exists while the resource
 * is not open, and expires if it is never opened.
 */
export const coolDownScript = Redis.script(exchangeArguments, {
  numberOfKeys: 1,
  lua: `${luaAmount}
local key, client, closed, opened, wants = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3] == "1", ARGV[4] == "1"
local lease, most = tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local stored = redis.call("HMGET", key, "until", "closing", "holder", "probe")
local ends, closing = amount(stored[1]) or 0, stored[2] or ""
local holder, probe = stored[3] or "", amount(stored[4]) or 0
local function exact(amount) return string.format("%.17g", amount) end
local function keep()
  redis.call("HSET", key, "until", exact(ends))
  redis.call("HSET", key, "closing", closing)
  redis.call("HSET", key, "holder", holder)
  redis.call("HSET", key, "probe", exact(probe))
  redis.call("PEXPIRE", key, string.format("%.0f", math.max(0, ends - now) + 2 * lease + 60000))
end

if ends > now + most or probe > now + lease then
  ends, probe = math.min(ends, now + most), math.min(probe, now + lease)
  keep()
end
if closed > 0 and now + closed > ends then
  ends, closing, holder, probe = now + closed, client .. ":" .. exact(now), "", 0
  keep()
elseif opened and holder == client and closing ~= "" and now >= ends then
  redis.call("DEL", key)
  return { 0, 0, "" }
end
if closing == "" then return { 0, 0, "" } end
if now < ends then return { 1, math.ceil(ends - now), closing } end
if wants and (holder == "" or holder == client or probe <= now) then
  holder, probe = client, now + lease
  keep()
end
if holder == client then return { 3, 0, closing } end
return { 2, math.max(0, math.ceil(probe - now)), closing }
`
}).withReturnType<unknown>()

/** The reply, or `undefined` if it is invalid. */
export const coolDownReplyOf = (answer: unknown): CoolDownReply | undefined => {
  if (!Array.isArray(answer) || answer.length !== 3) return undefined
  const state = states[numberOf(answer[0])]
  const millis = numberOf(answer[1])
  return state !== undefined && millis >= 0 && millis < Infinity && typeof answer[2] === "string"
    ? { state, millis, closing: answer[2] }
    : undefined
}
