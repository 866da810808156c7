import type { AdaptiveRateLimiter } from "effect-retry/AdaptiveRateLimiter"
import { classify, CurrentClassifier } from "effect-retry/RetryClassifier"
import { failureClass } from "effect-retry/RetryObserver"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as RetryQuota from "effect-retry/RetryQuota"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Load from "./load.ts"
import type * as Model from "./model.ts"
import { type Asked, errorOf, type Options, validated } from "./options.ts"
import { refuse } from "./refusal.ts"
import { delaySpread, everyTrace, greatest, least, type Spread, spreadOf, type Traces } from "./spread.ts"
import { constant, seeded, type Setting, type Trace, trace } from "./trace.ts"

/** The greatest random number. */
const almostOne = 1 - Number.EPSILON / 2

type Policy = Setting["policy"]

type AnySchedule = Schedule.Schedule<unknown, any, unknown, RetryQuota.RetryQuota | AdaptiveRateLimiter>

/** A policy, its limits and its calls. */
interface Subject {
  readonly asked: Asked
  readonly limits: RetryPolicy.Limits
  readonly deadlineMillis: number
  readonly setting: Setting
  /** The calls as they happen. */
  readonly traces: Traces
  /** The same calls without a deadline: every delay that the policy gives, made or not. */
  readonly unhurried: Traces
  /** How many retries the longest of them makes. */
  readonly retries: number
  /** Calls that were sampled. */
  readonly samples: number
}

/** Samples where everything shown about delays is exact, and where it is not. */
const fewSamples = 1000
const manySamples = 5000

const tracesOf = (setting: Setting, { seed }: Asked, samples: number): Traces => {
  const random = seeded(seed)
  return {
    lowest: trace(setting, constant(0)),
    highest: trace(setting, constant(almostOne)),
    p01: trace(setting, constant(0.01)),
    p50: trace(setting, constant(0.5)),
    p99: trace(setting, constant(0.99)),
    sampled: Array.from({ length: samples }, () => trace(setting, random))
  }
}

const policyOf = (schedule: AnySchedule, { deadlineMillis }: Asked): Policy => {
  if (!Schedule.isSchedule(schedule)) refuse("policy", schedule, "a policy or a schedule")
  const policy: Policy = RetryPolicy.isRetryPolicy(schedule) ? schedule : RetryPolicy.fromSchedule(schedule)
  return deadlineMillis === Infinity ? policy : RetryPolicy.deadline(deadlineMillis)(policy)
}

const limitOf = ({ retries }: Asked, { deadline, maxAttempts }: RetryPolicy.Limits): number =>
  retries ?? (maxAttempts === Infinity && !Duration.isFinite(deadline) ? 10 : 100)

const subjectOf = (schedule: AnySchedule, asked: Asked): Subject => {
  const policy = policyOf(schedule, asked)
  const limits = RetryPolicy.limits(policy)
  const deadlineMillis = Duration.toMillis(limits.deadline)
  const { attemptMillis, coolDown, error, quota } = asked
  const setting = { policy, error, attemptMillis, quota, coolDown, limit: limitOf(asked, limits) }
  const sampled = (samples: number): Subject => {
    const traces = tracesOf(setting, asked, samples)
    const retries = greatest(everyTrace(traces).map((trace) => trace.retries.length))
    const unhurried = deadlineMillis === Infinity ? traces : tracesOf(
      { ...setting, policy: RetryPolicy.withoutDeadline(policy), limit: Math.max(1, retries) },
      asked,
      // Only its extremes matter, and whether one draw decides: few samples show that.
      Math.min(samples, fewSamples)
    )
    return { asked, limits, deadlineMillis, setting, traces, unhurried, retries, samples }
  }
  if (asked.samples !== undefined) return sampled(asked.samples)
  const few = sampled(fewSamples)
  return Array.from({ length: few.retries }, (_, n) => delayOf(few, n)).every(({ exact }) => exact)
    ? few
    : sampled(manySamples)
}

/** When a retry, from 0, is decided on at the earliest. */
const earliestMillis = ({ setting: { attemptMillis }, traces }: Subject, retry: number): number =>
  attemptMillis + least(everyTrace(traces).flatMap(({ sentAtMillis }) => sentAtMillis[retry] ?? []))

/** Whether a call ends because the delay of this retry, or of one before it, would pass the deadline. */
const isCut = ({ traces }: Subject, retry: number): boolean =>
  everyTrace(traces).some(({ reason, retries }) => reason === "deadline" && retries.length <= retry)

/**
 * The delay of a retry, from 0, where it is made. Where a deadline keeps the longer ones from being made, the percentiles
 * are those of samples, and the longest is what the deadline leaves to the call that has got there first.
 */
const delayOf = (subject: Subject, retry: number): Spread & { readonly exact: boolean } => {
  const spread = delaySpread(subject.unhurried, retry)
  if (!isCut(subject, retry)) return spread
  const made = spreadOf(subject.traces, (trace) => trace.retries[retry]?.delayMillis)
  const left = subject.deadlineMillis - earliestMillis(subject, retry)
  return { ...made, maxMillis: Math.max(made.maxMillis, Math.min(spread.maxMillis, left)), exact: false }
}

const shareOf = (traces: Traces, is: (trace: Trace) => boolean): number =>
  traces.sampled.filter(is).length / traces.sampled.length

/** How the calls end, those with fewer attempts first. */
const endsOf = (traces: Traces): ReadonlyArray<Model.End> => {
  const ends = new Map<string, Model.End>()
  for (const { attempts, reason } of everyTrace(traces)) {
    const key = `${attempts} ${reason}`
    if (ends.has(key)) continue
    const share = shareOf(traces, (trace) => trace.attempts === attempts && trace.reason === reason)
    ends.set(key, { reason, attempts, share })
  }
  return [...ends.values()].sort((a, b) => a.attempts - b.attempts || b.share - a.share)
}

/** More tokens than any call takes. */
const boundless: RetryQuota.Options = { capacity: Number.MAX_SAFE_INTEGER }

/** What every retry takes from the quota after a failure of each class. */
const costsOf = ({ retries, setting }: Subject): (retry: number) => Model.Costs => {
  const policy = RetryPolicy.withoutDeadline(setting.policy)
  const costs = (facts: Parameters<typeof errorOf>[0]) =>
    trace({ ...setting, policy, error: errorOf(facts), quota: boundless, limit: Math.max(1, retries) }, constant(0.5))
  const [transient, timeout, throttling] = [costs({}), costs({ timeout: true }), costs({ throttling: true })]
  return (retry) => ({
    transient: transient.retries[retry]?.cost ?? null,
    timeout: timeout.retries[retry]?.cost ?? null,
    throttling: throttling.retries[retry]?.cost ?? null
  })
}

const finite = (value: number | undefined): number | null =>
  value === undefined || !Number.isFinite(value) ? null : value

const finiteSpread = ({ maxMillis, minMillis, p50Millis, p99Millis }: Spread): Model.Spread => ({
  minMillis: finite(minMillis),
  p50Millis: finite(p50Millis),
  p99Millis: finite(p99Millis),
  maxMillis: finite(maxMillis)
})

/** When a retry, from 0, is sent at the latest. */
const latestMillis = ({ deadlineMillis, unhurried }: Subject, retry: number): number =>
  Math.min(deadlineMillis, greatest(everyTrace(unhurried).map((trace) => trace.sentAtMillis[retry + 1] ?? 0)))

const retriesOf = (
  subject: Subject,
  costs: (retry: number) => Model.Costs,
  ends: ReadonlyArray<Model.End>
): ReadonlyArray<Model.Retry> =>
  Array.from({ length: subject.retries }, (_, n) => {
    const made = everyTrace(subject.traces).flatMap((trace) => trace.retries[n] ?? [])
    const delay = delayOf(subject, n)
    return {
      retry: n + 1,
      delay: { ...finiteSpread(delay), exact: delay.exact },
      costs: costs(n),
      cost: greatest(made.map(({ cost }) => cost)),
      balance: subject.limits.quota === undefined ? null : least(made.map(({ balance }) => balance)),
      latestMillis: latestMillis(subject, n),
      share: shareOf(subject.traces, (trace) => trace.retries.length > n),
      ends: ends.filter(({ attempts }) => attempts === n + 2)
    }
  })

/** From the beginning of a call to its error; with a deadline, the last attempt may begin just before it. */
const latencyOf = (subject: Subject): Model.Spread => {
  const { deadlineMillis, retries, setting: { attemptMillis }, traces } = subject
  const spread = spreadOf(traces, ({ endMillis }) => endMillis)
  const atDeadline = deadlineMillis === Infinity || retries === 0
    ? 0
    : latestMillis(subject, retries - 1) + attemptMillis
  const maxMillis = Math.min(Math.max(spread.maxMillis, atDeadline), deadlineMillis + attemptMillis)
  return finiteSpread({ ...spread, maxMillis })
}

/** How far a call is followed that continues until its deadline. */
const furthest = 10_000

/**
 * How many more retries the calls make beyond those followed: as many as the policy allows; with a deadline, as many as
 * a call whose draws are all in the middle.
 */
const moreOf = ({ deadlineMillis, limits, setting }: Subject, followed: number): number => {
  const most = limits.maxAttempts - 1 - followed
  if (deadlineMillis === Infinity) return most
  const { reason, retries } = trace({ ...setting, quota: boundless, limit: furthest }, constant(0.5))
  return reason === "not-followed" ? most : Math.max(0, retries.length - followed)
}

/** How far calls get when no quota stops them. */
const reachOf = (subject: Subject): Load.Reach => {
  const { asked, limits, setting, traces } = subject
  const bounded = limits.quota !== undefined &&
    (asked.quota?.onExceeded === "wait" || everyTrace(traces).some(({ reason }) => reason === "quota-exhausted"))
  const free = bounded ? tracesOf({ ...setting, quota: boundless }, asked, subject.samples) : traces
  const longest = greatest(free.sampled.map((trace) => trace.retries.length))
  const shares = Array.from({ length: longest }, (_, n) => shareOf(free, (trace) => trace.retries.length > n))
  const cut = free.sampled.some(({ reason }) => reason === "not-followed")
  return { shares, more: cut ? moreOf(subject, longest) : 0 }
}

const loadOf = ({ hedges }: Asked, reach: Load.Reach, price: Load.Price | undefined, f: number): Model.Load => {
  const attempts = 1 + Load.paidRetriesPerCall(reach, price, f)
  return {
    failureRate: f,
    attempts: finite(attempts + hedges),
    attemptsWithoutQuota: finite(1 + Load.retriesPerCall(reach, f) + hedges),
    success: f === 1 ? 0 : Math.min(1, Number((attempts * (1 - f)).toFixed(12)))
  }
}

const quotaOf = (
  costs: Model.Costs,
  price: Load.Price,
  subject: Subject,
  reach: Load.Reach
): Model.Explanation["quota"] => {
  const { capacity } = price
  const initial = subject.asked.quota?.initial ?? capacity
  return {
    capacity,
    initial,
    costs,
    retriesInOutage: finite(Math.floor(initial / price.cost + 1e-9)),
    bitesAt: finite(Load.bitesAt(reach, price))
  }
}

/** What a retry after the failure costs, refused or not. */
const priceOf = ({ asked, limits, setting }: Subject): Load.Price | undefined => {
  if (limits.quota === undefined) return undefined
  const policy = RetryPolicy.withoutDeadline(setting.policy)
  const [first] = trace({ ...setting, policy, quota: boundless, limit: 1 }, constant(0.5)).retries
  if (first === undefined) return undefined
  const { capacity, store, onExceeded } = Effect.runSync(RetryQuota.make(asked.quota))
  return { cost: first.cost, increment: store.successIncrement, capacity, waits: onExceeded === "wait" }
}

/** A quota that pays for fewer retries also runs empty by random variation. */
const steady = 10

type Note = readonly [applies: boolean, note: string]

/** What the numbers of a quota leave out. */
const quotaNotes = (quota: RetryQuota.Options | undefined, price: Load.Price | undefined): ReadonlyArray<Note> => [
  [
    (quota?.refillPerSecond ?? 0) > 0,
    "The figures for failure rates and outages ignore the quota's refill."
  ],
  [
    (quota?.firstAttemptCost ?? 0) > 0,
    "The figures for failure rates and outages ignore the cost of first attempts."
  ],
  [
    price !== undefined && price.cost <= price.capacity && price.capacity < price.cost * steady,
    "A quota this small is sometimes empty at lower failure rates too, which lowers the load."
  ],
  [
    price?.waits === true,
    "A retry the quota cannot pay for waits: from that failure rate on, calls take longer but send as much."
  ]
]

const notesOf = (
  { asked, limits, retries, traces }: Subject,
  price: Load.Price | undefined,
  complete: boolean
): ReadonlyArray<string> => {
  const notes: ReadonlyArray<Note> = [
    [!complete, `Only the first ${retries} retries are shown: the policy continues.`],
    [
      everyTrace(traces).some(({ reason }) => reason === "deadline"),
      "Delays are those of retries actually made: a delay that would pass the deadline means no retry."
    ],
    [
      asked.coolDown !== undefined,
      "The cool-down is that of this call alone: hints to other calls close it too."
    ],
    [
      asked.hedges > 0,
      `The load includes hedges: at most ${Number((100 * asked.hedges).toFixed(2))} of 100 calls have one.`
    ],
    [
      limits.gates.includes("effect-retry/AdaptiveRateLimiter"),
      "The wait for a rate limiter token is left out: it depends on all calls of the client."
    ],
    ...quotaNotes(price === undefined ? undefined : asked.quota, price)
  ]
  return notes.filter(([applies]) => applies).map(([, note]) => note)
}

const failureOf = (error: unknown): Model.Explanation["failure"] => {
  const info = Option.getOrUndefined(classify(CurrentClassifier.defaultValue(), error))
  return {
    class: failureClass(info),
    safety: info?.safety ?? null,
    retryAfterMillis: info?.retryAfter === undefined ? null : finite(Duration.toMillis(info.retryAfter))
  }
}

/** The explanation of a policy or schedule. */
export const explained = (
  schedule: AnySchedule,
  options: Options
): Model.Explanation => {
  const asked = validated(options)
  const subject = subjectOf(schedule, asked)
  const ends = endsOf(subject.traces)
  const costs = costsOf(subject)
  const reach = reachOf(subject)
  const price = priceOf(subject)
  const complete = ends.every(({ reason }) => reason !== "not-followed")
  return {
    name: asked.name,
    failure: failureOf(asked.error),
    attemptMillis: asked.attemptMillis,
    maxAttempts: finite(subject.limits.maxAttempts),
    deadlineMillis: finite(subject.deadlineMillis),
    retries: retriesOf(subject, costs, ends),
    ends,
    complete,
    latency: latencyOf(subject),
    quota: price === undefined ? null : quotaOf(costs(0), price, subject, reach),
    load: asked.failureRates.map((f) => loadOf(asked, reach, price, f)),
    notes: notesOf(subject, price, complete),
    samples: subject.samples,
    seed: asked.seed
  }
}

/**
 * The load of a policy at the failure rates that are asked for: otherwise at that at which its quota begins to drain, and
 * where all attempts fail. It is highest at one of the two.
 */
export const loadsOf = (schedule: AnySchedule, options: Options): ReadonlyArray<Model.Load> => {
  const asked = validated(options)
  const subject = subjectOf(schedule, asked)
  const reach = reachOf(subject)
  const price = priceOf(subject)
  const drains = price === undefined ? undefined : Load.bitesAt(reach, price)
  const rates = options.failureRates === undefined ? [...drains === undefined ? [] : [drains], 1] : asked.failureRates
  return rates.map((f) => loadOf(asked, reach, price, f))
}
