/**
 * One process of the comparison: runs the part of its first argument, and writes what it saw to its standard output.
 */
import { AdaptiveRetryStrategy, DefaultRateLimiter, StandardRetryStrategy } from "@smithy/core/retry"
import { AdaptiveRateLimiter, awsAdaptive, awsDynamoDB2026, AwsModes, Backoff, RetryPolicy } from "effect-retry"
import * as config from "./config.ts"
import { ghosts } from "./ghosts.ts"
import { herd } from "./herd.ts"
import { hints } from "./hints.ts"
import * as hostile from "./hostile.ts"
import { leak } from "./leak.ts"
import { effectCalls, strategyCalls, strategyOf } from "./ours.ts"
import { callers, type Ports } from "./servers.ts"
import { sdkCalls } from "./sides.ts"
import { steady } from "./steady.ts"

/** What a process is to do. */
export interface Task {
  readonly part: keyof typeof parts
  readonly ports: Ports
  /** The file that moves the wall clock of the process. */
  readonly clockFile?: string | undefined
}

const ours = "ours, as strategy"
const oursSent = "ours, as effect"

/** Adaptive mode with the delays, attempts and costs that the SDK has for DynamoDB. */
const adaptive = RetryPolicy.requires(awsDynamoDB2026, AdaptiveRateLimiter.AdaptiveRateLimiter)

const rate = async ({ clockFile, ports }: Task) =>
  steady(
    [
      sdkCalls("SDK, standard", { retryMode: "standard" }),
      sdkCalls("SDK, adaptive", { retryMode: "adaptive" }),
      await strategyCalls(ours, adaptive),
      effectCalls(oursSent, awsAdaptive)
    ],
    ports.limited,
    { seconds: 20, callers, step: clockFile === undefined ? undefined : { at: 8, by: -25, file: clockFile } }
  )

const monotonic = () => Number(process.hrtime.bigint()) / 1e6

const aborted = ({ ports }: Task) => {
  const once = RetryPolicy.requires(AwsModes.standard2026({ maxAttempts: 1 }), AdaptiveRateLimiter.AdaptiveRateLimiter)
  return Promise.all([
    ghosts(async () => sdkCalls("SDK, adaptive", { retryStrategy: new AdaptiveRetryStrategy(1) }), ports, Date.now),
    ghosts(() => strategyCalls(ours, once), ports, monotonic),
    ghosts(async () => effectCalls(oursSent, once), ports, monotonic)
  ])
}

const halfSecond = RetryPolicy.quotaGated({ cost: 14 })(
  Backoff.fixed("500 millis").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)
)

const leaks = async ({ ports }: Task) => {
  const backoff = { computeNextBackoffDelay: () => 500, setDelayBase: () => undefined }
  const strategy = new StandardRetryStrategy({ maxAttempts: 3, backoff })
  return Promise.all([
    leak(sdkCalls("SDK, standard", { retryStrategy: strategy }, async () => strategy.getCapacity()), ports),
    leak(await strategyCalls(ours, halfSecond), ports),
    leak(effectCalls(oursSent, halfSecond), ports)
  ])
}

const hinted = async () => [
  await hints(sdkCalls("SDK, standard", { retryMode: "standard" })),
  await hints(await strategyCalls(ours, awsDynamoDB2026)),
  await hints(effectCalls(oursSent, awsDynamoDB2026))
]

const survivors = async () => [
  await hostile.survived(sdkCalls("SDK, standard", { retryMode: "standard" })),
  await hostile.survived(await strategyCalls(ours, awsDynamoDB2026)),
  await hostile.survived(effectCalls(oursSent, awsDynamoDB2026))
]

/** All that takes little time of a processor; what waits in a limiter when all processes have started. */
const rest = async (task: Task) => {
  const leaked = await leaks(task)
  const [ghosts, others] = await Promise.all([
    aborted(task),
    (async () => ({
      hints: await hinted(),
      meanings: await config.meanings(),
      limits: await config.limits(),
      classified: hostile.classified(),
      survived: await survivors()
    }))()
  ])
  return { leaks: leaked, ghosts, ...others }
}

/** Limiters as they are at a rate of 200 a second: a bucket holds what flows in within a second. */
const herds = async () => {
  const options = { minFillRate: 200, minCapacity: 200 }
  const rateLimiter = new DefaultRateLimiter(options)
  const limiter = AdaptiveRateLimiter.layer(options)
  const policy = RetryPolicy.requires(
    AwsModes.standard2026({ maxAttempts: 1 }),
    AdaptiveRateLimiter.AdaptiveRateLimiter
  )
  return [
    await herd("SDK, adaptive", new AdaptiveRetryStrategy(1, { rateLimiter, maxAttempts: 1 }), 1000),
    await herd(ours, await strategyOf(policy, limiter), 1000)
  ]
}

const parts = { rate, rest, herds }

/** What each part of the comparison sees. */
export type Seen = { readonly [Part in keyof typeof parts]: Awaited<ReturnType<typeof parts[Part]>> }

const task: Task = JSON.parse(process.argv[2]!)
const seen = await parts[task.part](task)
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0))
