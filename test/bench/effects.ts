/** Retrying in Effect: ours, Effect's own, and the least that any wrapper with a success and an error hook costs. */
import { awsStandard, Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constVoid, identity } from "effect/Function"
import * as Schedule from "effect/Schedule"
import { isTransient, type ServiceError } from "./operations.ts"

export type Operation = Effect.Effect<unknown, ServiceError>
type Retried = Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>

/** Retries the operation somehow. */
export type Retrying = (operation: Operation) => Retried

/** Two hooks that do nothing but send again. */
const floor: Retrying = (operation) => {
  const again: Retried = Effect.catch(
    Effect.map(operation, identity),
    (error) => isTransient(error) ? again : Effect.fail(error)
  )
  return again
}

/**
 * The whole policy, written for these errors: attempts, quota, jitter, cap. It knows no other errors, does not number attempts,
 * and loses the tokens of an interrupted call.
 */
const byHand: Retrying = (operation) => {
  let tokens = 1e12
  const sent = (increment: number) =>
    Effect.map(operation, (value) => {
      tokens = Math.min(tokens + increment, 1e12)
      return value
    })
  const [first, again] = [sent(1), sent(5)]
  const failed = (error: ServiceError, attempt: number): Retried => {
    if (!isTransient(error) || attempt >= 3 || tokens < 5) return Effect.fail(error)
    tokens -= 5
    const delay = Math.min(Math.random() * 1000 * 2 ** (attempt - 1), 20_000)
    return Effect.flatMap(Effect.sleep(delay), () => Effect.catch(again, (next) => failed(next, attempt + 1)))
  }
  return Effect.catch(first, (error) => failed(error, 1))
}

/** The smallest schedule that stops and looks at the error. */
const minimal: Schedule.Schedule<number, ServiceError> = Schedule.fromStep(Effect.sync(() => {
  let retries = 0
  const delay = Duration.seconds(1)
  return (_now: number, error: ServiceError) =>
    retries++ < 2 && isTransient(error) ? Effect.succeed([retries, delay] as const) : Cause.done(retries)
}))

/** The schedule that Effect's own guide shows for production; with a wait, the same with that wait. */
const documented = (millis?: number) =>
  Schedule.min([
    millis === undefined ? Schedule.exponential("250 millis") : Schedule.exponential(millis, 1),
    Schedule.spaced("10 seconds")
  ]).pipe(
    Schedule.jittered,
    Schedule.upTo({ times: 2 }),
    Schedule.setInputType<ServiceError>(),
    Schedule.while(({ input }) => isTransient(input))
  )

export const bare = "bare operation"
export const floorName = "floor: catch(map(op, f), g)"
export const ours = "withRetry(op, awsStandard)"
export const oursWaiting = "withRetry(op, awsStandard with a fixed wait)"
const oursPerCall = "withRetry(op, awsStandard), made per call"
const plainWaiting = "Effect.retry(op, awsStandard with a fixed wait)"
const handWritten = "the whole policy by hand"
const oneStep = "Effect.retry, one step by hand"
export const plain = "Effect.retry(op, awsStandard)"
export const joined = "withRetry(op, RetryPolicy.max([awsStandard, recurs(5)]))"
/** The same call as `ours`, paid from a quota whose tokens come with time too. */
export const refilling = "withRetry(op, awsStandard), a quota that refills"
export const times = "Effect.retry({ times: 2 })"
export const timesWhile = "Effect.retry({ times: 2, while })"
export const documentedName = "Effect.retry, the schedule of Effect's guide"

const options = { times: 2, while: isTransient }
const guide = documented()
const both = RetryPolicy.max([awsStandard, Schedule.recurs(5)])

/** All of them, by name. */
export const retrying: Readonly<Record<string, Retrying>> = {
  [bare]: identity,
  [floorName]: floor,
  [handWritten]: byHand,
  [ours]: (operation) => withRetry(operation, awsStandard),
  [oursPerCall]: (operation) => Effect.suspend(() => withRetry(operation, awsStandard)),
  [joined]: (operation) => withRetry(operation, both),
  [plain]: (operation) => Effect.retry(operation, awsStandard),
  [oneStep]: (operation) => Effect.retry(operation, minimal),
  [times]: (operation) => Effect.retry(operation, { times: 2 }),
  [timesWhile]: (operation) => Effect.retry(operation, options),
  [documentedName]: (operation) => Effect.retry(operation, guide)
}

/** `awsStandard`, except that the wait is always the same. */
const waiting = (millis: number) =>
  Backoff.fixed(millis).pipe(
    RetryPolicy.capped("20 seconds"),
    RetryPolicy.honorRetryAfter({ atMost: "20 seconds" }),
    RetryPolicy.maxAttempts(3),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5, timeoutCost: 10 })
  )

/** A wait between attempts, and nothing else. */
const sleeping = (millis: number): Retrying => {
  const sleep = Effect.sleep(millis)
  return (operation) => {
    const again: Retried = Effect.catch(operation, () => Effect.andThen(sleep, again))
    return again
  }
}

/** The ones that wait, for the given time. */
export const retryingAfter = (millis: number): Readonly<Record<string, Retrying>> => {
  const policy = waiting(millis)
  const schedule = documented(millis)
  const spaced = Schedule.spaced(millis)
  return {
    [bare]: sleeping(millis),
    [oursWaiting]: (operation) => withRetry(operation, policy),
    [plainWaiting]: (operation) => Effect.retry(operation, policy),
    [timesWhile]: (operation) => Effect.retry(operation, { ...options, schedule: spaced }),
    [documentedName]: (operation) => Effect.retry(operation, schedule)
  }
}

/** A clock on which no sleep takes any time. */
export const sleepless: Clock.Clock = {
  currentTimeMillisUnsafe: () => Date.now(),
  currentTimeMillis: Effect.sync(() => Date.now()),
  currentTimeNanosUnsafe: () => process.hrtime.bigint(),
  currentTimeNanos: Effect.sync(() => process.hrtime.bigint()),
  monotonicTimeNanosUnsafe: () => process.hrtime.bigint(),
  monotonicTimeNanos: Effect.sync(() => process.hrtime.bigint()),
  sleep: () => Effect.void
}

/** What the calls share: the quota of the SDKs, or one so large that it never runs dry. */
export const contextOf = (
  quota: RetryQuota.Options,
  clock?: Clock.Clock
): Promise<Context.Context<RetryQuota.RetryQuota>> =>
  Effect.runPromise(
    Effect.map(RetryQuota.make(quota), (service) => {
      const context = Context.make(RetryQuota.RetryQuota, service)
      return clock === undefined ? context : Context.add(context, Clock.Clock, clock)
    })
  )

/** Does it again and again, in one fiber. */
export const repeated = <R>(
  effect: Effect.Effect<unknown, unknown, R>,
  operations: number
): Effect.Effect<void, unknown, R> =>
  Effect.suspend(() => {
    let started = 0
    return Effect.whileLoop({
      while: () => started < operations,
      body: () => {
        started++
        return effect
      },
      step: constVoid
    })
  })

/** The same without its errors. */
export const settled = <R>(effect: Effect.Effect<unknown, unknown, R>): Effect.Effect<unknown, never, R> =>
  Effect.catch(effect, () => Effect.void)
