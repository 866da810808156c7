import * as Redis from "effect/persistence/Redis"
import { lostMillis } from "./exchanges.ts"
import type { Section } from "./outbox.ts"
import { luaAmount, numberOf } from "./scriptReply.ts"

/** The settings of a quota, sent with every exchange: Redis holds only tokens. */
export interface Settings {
  /** The key in Redis. */
  readonly key: string
  readonly capacity: number
  readonly initial: number
  readonly refillPerSecond: number
  /** How long tokens may be held before Redis takes them back. */
  readonly leaseMillis: number
  /** How long Redis keeps its data when unused. */
  readonly idleMillis: number
  /** Whether reservations are granted only in order: none after one that has to wait. */
  readonly inOrder: boolean
}

/** Requested tokens, under an id that is used once. */
export interface Wanted {
  readonly id: number
  readonly cost: number
}

/** The name of a client's held tokens. */
export const leaseOf = ({ cost, id }: Wanted): string => `${id}:${cost}`

/** One exchange: updates first, then requests. */
export interface Exchange {
  readonly client: string
  readonly sequence: number
  readonly sections: ReadonlyArray<Section>
  readonly wanted: ReadonlyArray<Wanted>
}

/** The response of Redis. */
export interface Reply {
  readonly tokens: number
  /** The last exchange of this process that Redis knew of; 0 for none. */
  readonly last: number
  /** For each reservation: 0 if granted, else milliseconds until it could be, -1 for never. */
  readonly millis: ReadonlyArray<number>
}

/** The most expired entries that one exchange removes: all users of Redis wait for it. */
const mostExpired = 100

const sectionArguments = (section: Section): ReadonlyArray<string | number> => [
  section.sequence,
  section.deposit,
  section.returned.length,
  ...section.returned,
  section.spent.length,
  ...section.spent
]

const exchangeArguments = (settings: Settings, exchange: Exchange): ReadonlyArray<string | number> => [
  settings.key,
  settings.capacity,
  settings.initial,
  settings.refillPerSecond / 1000,
  settings.leaseMillis,
  settings.leaseMillis + 2 * lostMillis,
  // A time to live in Redis is a whole number, and 0 would mean none at all.
  Math.min(Math.ceil(settings.idleMillis), Number.MAX_SAFE_INTEGER),
  exchange.client,
  exchange.sequence,
  settings.inOrder ? 1 : 0,
  exchange.sections.length,
  ...exchange.sections.flatMap(sectionArguments),
  exchange.wanted.length,
  ...exchange.wanted.map(leaseOf)
]

/**
 * The only script: a whole exchange in one atomic step, on one key, on the clock of Redis.
 *
 * The key is a sorted set, so that expired members are found without looking at the rest. A score above 0 is the moment
 * at which its member expires: `lease:<client>:<id>:<cost>`, and `client:<client>`; any other expires too. Other scores are negated values:
 * `tokens`, `capacity` (of which they are a share), `at` (when they were counted) and `seq:<client>`, the last sequence number of each client. An exchange with
 * a number not above that one is a late copy: its sender has given it up, so it must change nothing. A section with
 * such a number has already been applied and is resent because its response was lost. A client is remembered as long as
 * it may resend updates, or its messages may be on their way.
 *
 * Everything is computed first. The first write is one that Redis refuses when it is out of memory or read-only, so
 * either everything is written or nothing.
 */
export const script = Redis.script(exchangeArguments, {
  numberOfKeys: 1,
  lua: `
local key = KEYS[1]
local capacity, initial, refill = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local lease, remembered, idle = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local client, sequence, inOrder = ARGV[7], tonumber(ARGV[8]), ARGV[9] == "1"
local position = 9
local function text()
  position = position + 1
  return ARGV[position]
end
local function number() return tonumber(text()) end
-- An answer is an integer of 64 bits.
local function millisFor(amount) return math.max(1, math.min(2 ^ 53, math.ceil(amount / refill))) end
local function exact(amount) return string.format("%.17g", amount) end
${luaAmount}
local function valueOf(member)
  local score = redis.call("ZSCORE", key, member)
  return score and -tonumber(score)
end

local last = valueOf("seq:" .. client) or 0
if sequence <= last then return redis.error_reply("STALE exchange") end

local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local tokens = valueOf("tokens") or initial
local before = valueOf("capacity") or capacity
if before ~= capacity then tokens = tokens / before * capacity end
local function add(amount) tokens = math.max(0, math.min(capacity, tokens + amount)) end
add(math.max(0, now - (valueOf("at") or now)) * refill)

local gone = {}
local function release(member)
  if gone[member] or not redis.call("ZSCORE", key, member) then return 0 end
  gone[member] = true
  return amount(string.match(member, "^lease:.*:(.*)$")) or 0
end
local function leaseOf(name) return "lease:" .. client .. ":" .. name end

-- What is written in any case.
local kept = { tokens = true, capacity = true, at = true, ["seq:" .. client] = true, ["client:" .. client] = true }
for _, member in ipairs(redis.call("ZRANGEBYSCORE", key, "(0", exact(now), "LIMIT", 0, ${mostExpired})) do
  local expired = string.match(member, "^client:(.*)$")
  if not kept[member] then
    add(release(member))
    if expired then gone["seq:" .. expired] = true end
  end
end

for _ = 1, number() do
  local isNew = number() > last
  local deposit = number()
  if isNew then add(deposit) end
  for _ = 1, number() do
    local name = text()
    if isNew then add(release(leaseOf(name))) end
  end
  for _ = 1, number() do
    local name = text()
    if isNew then release(leaseOf(name)) end
  end
end

local waits = false
local reply = { "", last }
local changed = {}
local function set(member, score)
  changed[#changed + 1] = exact(score)
  changed[#changed + 1] = member
end
for _ = 1, number() do
  local name = text()
  local cost = tonumber(string.match(name, "[^:]+$"))
  local shortfall = cost - tokens
  if shortfall <= 1e-9 and not waits then
    tokens = math.max(0, tokens - cost)
    set(leaseOf(name), now + lease)
    reply[#reply + 1] = 0
  else
    waits = inOrder
    reply[#reply + 1] = refill == 0 and -1 or millisFor(shortfall)
  end
end
reply[1] = exact(tokens)

set("tokens", -tokens)
set("capacity", -capacity)
set("at", -now)
set("seq:" .. client, -sequence)
set("client:" .. client, now + remembered)
redis.call("ZADD", key, unpack(changed))
for member in pairs(gone) do redis.call("ZREM", key, member) end
redis.call("PEXPIRE", key, string.format("%.0f", idle))
return reply
`
}).withReturnType<unknown>()

/** The reply, or `undefined` if it is invalid. */
export const replyOf = (answer: unknown, wanted: number): Reply | undefined => {
  if (!Array.isArray(answer) || answer.length !== wanted + 2) return undefined
  const [tokens = NaN, last = NaN, ...millis] = answer.map(numberOf)
  const isAmount = (amount: number, least: number) => amount >= least && amount < Infinity
  return isAmount(tokens, 0) && isAmount(last, 0) && millis.every((each) => isAmount(each, -1))
    ? { tokens, last, millis }
    : undefined
}
