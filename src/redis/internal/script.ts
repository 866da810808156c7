import * as Redis from "effect/persistence/Redis"
import type { Section } from "./outbox.ts"

/** What a quota is made of, as every exchange brings it along: Redis holds tokens only. */
export interface Settings {
  /** The key in Redis. */
  readonly key: string
  readonly capacity: number
  readonly initial: number
  readonly refillPerSecond: number
  /** How long tokens may be held before Redis takes them back. */
  readonly leaseMillis: number
  /** How long what Redis knows is kept when nobody uses it. */
  readonly idleMillis: number
  /** Reservations are granted in order only: none after one that has to wait. */
  readonly inOrder: boolean
}

/** Tokens that are asked for, under an id that is used once. */
export interface Wanted {
  readonly id: number
  readonly cost: number
}

/** One exchange: what has to be told, then what is asked. */
export interface Exchange {
  readonly client: string
  readonly sequence: number
  readonly sections: ReadonlyArray<Section>
  readonly wanted: ReadonlyArray<Wanted>
}

/** What Redis answers. */
export interface Reply {
  readonly tokens: number
  /** For each reservation: 0 when granted, else milliseconds until it could be, -1 for never. */
  readonly millis: ReadonlyArray<number>
}

const sectionArguments = (section: Section): ReadonlyArray<number> => [
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
  // A time to live in Redis is a whole number, and 0 would be none at all.
  Math.min(Math.ceil(settings.idleMillis), Number.MAX_SAFE_INTEGER),
  exchange.client,
  exchange.sequence,
  settings.inOrder ? 1 : 0,
  exchange.sections.length,
  ...exchange.sections.flatMap(sectionArguments),
  exchange.wanted.length,
  ...exchange.wanted.flatMap(({ cost, id }) => [id, cost])
]

/**
 * The one script there is: a whole exchange in one atomic step, on one key, on the clock of Redis.
 *
 * The key is a hash: `tokens`, `at` (when they were counted), `sweep` (when something may expire next), a field
 * `l:<client>:<id>` for each lease and `c:<client>` for the last sequence number of each client. An exchange with a
 * number that is not above that one is a copy that comes late: its sender has given it up, so it must change nothing.
 * A section with such a number has been applied already and is sent again because its answer was lost.
 *
 * Everything is computed first. The first write is one that Redis refuses when it is out of memory or read-only, so
 * either all is written or nothing.
 */
export const script = Redis.script(exchangeArguments, {
  numberOfKeys: 1,
  lua: `
local key = KEYS[1]
local capacity, initial, refill = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local lease, idle = tonumber(ARGV[4]), tonumber(ARGV[5])
local client, sequence, inOrder = ARGV[6], tonumber(ARGV[7]), ARGV[8] == "1"
local position = 8
local function argument()
  position = position + 1
  return tonumber(ARGV[position])
end
-- An answer is an integer of 64 bits.
local function millisFor(amount) return math.max(1, math.min(2 ^ 53, math.ceil(amount / refill))) end
local function exact(number) return string.format("%.17g", number) end

local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local state = redis.call("HMGET", key, "tokens", "at", "sweep", "c:" .. client)
local last = tonumber(string.match(state[4] or "0", "^%S+"))
if sequence <= last then return redis.error_reply("STALE exchange") end

local tokens = tonumber(state[1] or initial)
local function add(amount) tokens = math.min(capacity, tokens + amount) end
add(math.max(0, now - tonumber(state[2] or now)) * refill)

local changed = {}
local sweep = tonumber(state[3] or now + idle)
if now >= sweep then
  sweep = now + idle
  local fields = redis.call("HGETALL", key)
  for i = 1, #fields, 2 do
    local amount, expires = string.match(fields[i + 1], "^(%S+) (%S+)$")
    if amount and tonumber(expires) <= now then
      changed[fields[i]] = false
      if string.sub(fields[i], 1, 2) == "l:" then add(tonumber(amount)) end
    elseif amount then
      sweep = math.min(sweep, tonumber(expires))
    end
  end
  sweep = math.max(sweep, now + lease / 10)
end

local function leaseOf(id) return "l:" .. client .. ":" .. string.format("%.0f", id) end
local function hold(id, cost)
  tokens = math.max(0, tokens - cost)
  sweep = math.min(sweep, now + lease)
  changed[leaseOf(id)] = exact(cost) .. " " .. exact(now + lease)
end
local function release(id)
  local field = leaseOf(id)
  local value = changed[field]
  if value == nil then value = redis.call("HGET", key, field) end
  if not value then return 0 end
  changed[field] = false
  return tonumber(string.match(value, "^%S+"))
end

for _ = 1, argument() do
  local isNew = argument() > last
  local deposit = argument()
  if isNew then add(deposit) end
  for _ = 1, argument() do
    local id = argument()
    if isNew then add(release(id)) end
  end
  for _ = 1, argument() do
    local id = argument()
    if isNew then release(id) end
  end
end

local waits = false
local reply = { "" }
for _ = 1, argument() do
  local id, cost = argument(), argument()
  local shortfall = cost - tokens
  if shortfall <= 1e-9 and not waits then
    hold(id, cost)
    reply[#reply + 1] = 0
  else
    waits = inOrder
    reply[#reply + 1] = refill == 0 and -1 or millisFor(shortfall)
  end
end
reply[1] = exact(tokens)

redis.call("HSET", key, "tokens", exact(tokens), "at", exact(now), "sweep", exact(sweep),
  "c:" .. client, exact(sequence) .. " " .. exact(now + idle))
for field, value in pairs(changed) do
  if value then
    redis.call("HSET", key, field, value)
  else
    redis.call("HDEL", key, field)
  end
end
redis.call("PEXPIRE", key, string.format("%.0f", idle))
return reply
`
}).withReturnType<unknown>()

const numberOf = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : NaN

/** The reply, or `undefined` when it is none. */
export const replyOf = (answer: unknown, wanted: number): Reply | undefined => {
  if (!Array.isArray(answer) || answer.length !== wanted + 1) return undefined
  const [tokens = NaN, ...millis] = answer.map(numberOf)
  const isAmount = (amount: number, least: number) => amount >= least && amount < Infinity
  return isAmount(tokens, 0) && millis.every((each) => isAmount(each, -1)) ? { tokens, millis } : undefined
}
