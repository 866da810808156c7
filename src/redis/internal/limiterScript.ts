import * as Redis from "effect/persistence/Redis"
import { luaAmount, numberOf } from "./scriptReply.ts"

/** The settings of a shared limiter, sent with every exchange. Rates in sends per second. */
export interface LimiterSettings {
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
export interface FleetCurve {
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

const exchangeArguments = (settings: LimiterSettings, exchange: LimiterExchange): ReadonlyArray<string | number> => [
  settings.key,
  settings.beta,
  settings.scaleConstant,
  settings.minFillRate,
  settings.memberMillis,
  settings.idleMillis,
  settings.cutMillis,
  exchange.client,
  exchange.rate,
  exchange.isHungry ? 1 : 0,
  exchange.isThrottled ? 1 : 0,
  exchange.cuts,
  exchange.lastMaxRate,
  exchange.millis
]

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
export const limiterScript = Redis.script(exchangeArguments, {
  numberOfKeys: 1,
  lua: `
local key = KEYS[1]
local beta, scale, least = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local member, idle = tonumber(ARGV[4]), ARGV[5]
local grace, client, rate, hungry, throttled = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9], ARGV[10] == "1"
local knownCuts, knownLast, knownMillis = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local function exact(amount) return string.format("%.17g", amount) end
${luaAmount}

local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local stored = redis.call("HMGET", key, "cuts", "last", "at", "level", "leveled", "measured")
local cuts, last = math.min(2 ^ 52, amount(stored[1]) or 0), amount(stored[2]) or 0
local at = math.min(now, amount(stored[3]) or now)
local level, leveled, measured = amount(stored[4]) or 0, amount(stored[5]) or 0, amount(stored[6]) or 0
local reports = throttled and knownCuts >= cuts and (cuts == 0 or now - at >= grace)
if knownCuts > cuts then
  cuts, last, at, leveled = knownCuts, knownLast, now - knownMillis, 0
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

redis.call("HSET", key, "c:" .. client, rate .. " " .. hungry .. " " .. exact(now))
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
redis.call("PEXPIRE", key, idle)
return { cuts, exact(last), exact(now - at), exact(level / curve()), exact(measured) }
`
}).withReturnType<unknown>()

/** The reply, or `undefined` if it is invalid. */
export const limiterReplyOf = (answer: unknown): LimiterReply | undefined => {
  if (!Array.isArray(answer) || answer.length !== 5) return undefined
  const [cuts = NaN, lastMaxRate = NaN, millis = NaN, share = NaN, measured = NaN] = answer.map(numberOf)
  const isAmount = (amount: number) => amount >= 0 && amount < Infinity
  return [cuts, lastMaxRate, millis, share, measured].every(isAmount) && share > 0
    ? { cuts, lastMaxRate, millis, share, measured }
    : undefined
}
