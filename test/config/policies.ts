import { AdaptiveRateLimiter, Backoff, RetryPolicy } from "effect-retry"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as Duration from "effect/Duration"

export type AnyPolicy = RetryPolicy.RetryPolicy<any, any, any>

type Draw = () => number

/** Numbers from 0 to 1 by a seed: mulberry32. */
const drawing = (seed: number): Draw => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const oneOf = <A>(draw: Draw, values: ReadonlyArray<A>): A => values[Math.floor(draw() * values.length)]!

const maybe = <A>(draw: Draw, value: () => A): A | undefined => draw() < 0.5 ? value() : undefined

/** A duration above 0, spelled in any way. */
const duration = (draw: Draw): Duration.Input => {
  const millis = oneOf(draw, [1, 20, 50, 100, 1000, 1500, 60_000, 90_000, 3_600_000, 0.5, 12.25])
  return oneOf<() => Duration.Input>(draw, [
    () => millis,
    () => Duration.millis(millis),
    () => ({ seconds: millis / 1000 }),
    () => `${millis} millis`,
    () => `${millis / 1000} seconds` as Duration.Input
  ])()
}

const longest: Duration.Input = "2 hours"

const jitter = (draw: Draw): RetryPolicy.Jitter =>
  oneOf<RetryPolicy.Jitter>(draw, ["none", "full", "equal", { proportional: draw() }])

const common = (draw: Draw) => ({ cap: maybe(draw, () => longest), jitter: maybe(draw, () => jitter(draw)) })

const cost = (draw: Draw): number => oneOf(draw, [0, 1, 5, 14, 0.5])

const price = (draw: Draw): RetryPolicy.QuotaOptions => ({
  cost: maybe(draw, () => cost(draw)),
  timeoutCost: maybe(draw, () => cost(draw)),
  throttlingCost: maybe(draw, () => cost(draw)),
  longPolling: maybe(draw, () => draw() < 0.5)
})

/** Every source of delays that the library has, except the user's functions and schedules. */
export const sources: Readonly<Record<string, (draw: Draw) => AnyPolicy>> = {
  exponential: (draw) => Backoff.exponential(duration(draw), maybe(draw, () => 1 + draw()), common(draw)),
  linear: (draw) => Backoff.linear(duration(draw), { increment: maybe(draw, () => duration(draw)), ...common(draw) }),
  fibonacci: (draw) => Backoff.fibonacci(duration(draw), common(draw)),
  fixed: (draw) => Backoff.fixed(duration(draw), { jitter: maybe(draw, () => jitter(draw)) }),
  decorrelated: (draw) =>
    Backoff.decorrelated(duration(draw), { cap: longest, additive: maybe(draw, () => draw() < 0.5) }),
  immediate: () => RetryPolicy.immediate,
  never: () => RetryPolicy.never,
  max: (draw) => RetryPolicy.max([composed(draw, 2), composed(draw, 2)]),
  min: (draw) => RetryPolicy.min([composed(draw, 1), composed(draw, 2)]),
  "JavaV1.exponentialBackoff": (draw) =>
    JavaV1.exponentialBackoff({ baseDelay: duration(draw), maxBackoff: duration(draw) }),
  "JavaV1.fullJitterBackoff": (draw) =>
    JavaV1.fullJitterBackoff({ baseDelay: duration(draw), maxBackoff: duration(draw) }),
  "JavaV1.equalJitterBackoff": (draw) =>
    JavaV1.equalJitterBackoff({ baseDelay: duration(draw), maxBackoff: duration(draw) }),
  "JavaScriptV2.backoff": (draw) =>
    JavaScriptV2.backoff({
      base: maybe(draw, () => duration(draw)),
      addRetryAfter: maybe(draw, () => draw() < 0.5),
      maxRetryAfter: maybe(draw, () => duration(draw))
    }),
  "Kotlin.exponentialBackoffWithJitter": (draw) =>
    Kotlin.exponentialBackoffWithJitter({
      useNewRetries: maybe(draw, () => draw() < 0.5),
      initialDelay: maybe(draw, () => duration(draw)),
      scaleFactor: maybe(draw, () => 1 + draw()),
      jitter: maybe(draw, draw),
      maxBackoff: maybe(draw, () => oneOf(draw, [Duration.infinity, "1 minute"])),
      throttlingBaseDelay: maybe(draw, () => duration(draw)),
      retryAfterMaxOvershoot: maybe(draw, () => duration(draw))
    })
}

/** Every combinator that the library has. */
export const combinators: Readonly<Record<string, (draw: Draw, self: AnyPolicy) => AnyPolicy>> = {
  capped: (draw, self) => RetryPolicy.capped(self, duration(draw)),
  jittered: (draw, self) => RetryPolicy.jittered(self, jitter(draw)),
  honorRetryAfter: (draw, self) =>
    RetryPolicy.honorRetryAfter(self, {
      atMost: maybe(draw, () => duration(draw)),
      overshoot: maybe(draw, () => duration(draw)),
      beyond: maybe(draw, () => oneOf(draw, ["clamp", "stop"]))
    }),
  maxAttempts: (draw, self) => RetryPolicy.maxAttempts(self, oneOf(draw, [1, 2, 3, 10, Infinity])),
  withMaxAttempts: (draw, self) => RetryPolicy.withMaxAttempts(self, oneOf(draw, [1, 2, 3, 10, Infinity])),
  deadline: (draw, self) => RetryPolicy.deadline(self, duration(draw)),
  withDeadline: (draw, self) => RetryPolicy.withDeadline(self, duration(draw)),
  quotaGated: (draw, self) => RetryPolicy.quotaGated(self, price(draw)),
  withQuota: (draw, self) => RetryPolicy.withQuota(self, price(draw)),
  whileRetryable: (_, self) => RetryPolicy.whileRetryable(self),
  whileMaybeRetryable: (_, self) => RetryPolicy.whileMaybeRetryable(self),
  withMaybeRetryable: (_, self) => RetryPolicy.withMaybeRetryable(self),
  withoutDeadline: (_, self) => RetryPolicy.withoutDeadline(self),
  outermostOnly: (_, self) => RetryPolicy.outermostOnly(self),
  requires: (_, self) => RetryPolicy.requires(self, AdaptiveRateLimiter.AdaptiveRateLimiter),
  whenThrottled: (draw, self) => RetryPolicy.whenThrottled(self, composed(draw, 2)),
  concat: (draw, self) => RetryPolicy.concat(self, composed(draw, 2)),
  "RetryGrpc.honorPushback": (draw, self) =>
    RetryGrpc.honorPushback(self, {
      atMost: maybe(draw, () => duration(draw)),
      beyond: maybe(draw, () => oneOf(draw, ["clamp", "stop"]))
    })
}

const composed = (draw: Draw, most: number): AnyPolicy => {
  let policy = oneOf(draw, Object.values(sources))(draw)
  const steps = Math.floor(draw() * (most + 1))
  for (let step = 0; step < steps; step++) {
    policy = oneOf(draw, Object.values(combinators))(draw, policy)
  }
  return policy
}

/** A policy of up to 8 combinators, any of them, with any of their options: the same for the same seed. */
export const policyOf = (seed: number): AnyPolicy => composed(drawing(seed), 8)

/** What a printed policy evaluates to. */
export const evaluated = (text: string): AnyPolicy => {
  const scope = { AdaptiveRateLimiter, Backoff, RetryPolicy, RetryGrpc, JavaV1, JavaScriptV2, Kotlin }
  // oxlint-disable-next-line no-new-func
  return new Function(...Object.keys(scope), `return ${text}`)(...Object.values(scope))
}
