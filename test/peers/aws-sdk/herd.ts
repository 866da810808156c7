import type { RetryStrategyV2 } from "@smithy/types"

/** What it took to serve a crowd that waits for send tokens. */
export interface Herd {
  readonly name: string
  readonly waiters: number
  readonly seconds: number
  readonly timers: number
  readonly cpuSeconds: number
  /** How long a call still waited, at most, after one that had come later was served. */
  readonly overtakenMillis: number
}

/** Counts the timers that fire from now on. */
const countTimers = (): { fired: number } => {
  const seen = { fired: 0 }
  const original = globalThis.setTimeout
  const counting = (done: (...args: Array<unknown>) => void, millis?: number, ...args: Array<unknown>) =>
    original(() => {
      seen.fired++
      done(...args)
    }, millis)
  globalThis.setTimeout = Object.assign(counting, original)
  return seen
}

/** `servedAt` is in the order in which they came. */
const overtakenMillis = (servedAt: ReadonlyArray<number>): number => {
  let longest = 0
  let firstAfter = Infinity
  for (let place = servedAt.length - 1; place >= 0; place--) {
    longest = Math.max(longest, servedAt[place]! - firstAfter)
    firstAfter = Math.min(firstAfter, servedAt[place]!)
  }
  return longest
}

/** `waiters` calls that all ask at the same time, at a strategy whose limiter gives 200 tokens a second. */
export const herd = async (name: string, strategy: RetryStrategyV2, waiters: number): Promise<Herd> => {
  const error = { name: "ThrottlingException", message: "Slow down", $fault: "client", $metadata: {} } as const
  const token = await strategy.acquireInitialRetryToken("")
  await strategy.refreshRetryTokenForRetry(token, { errorType: "THROTTLING", error }).catch(() => undefined)
  const timers = countTimers()
  const cpu = process.cpuUsage()
  const start = performance.now()
  const served = await Promise.all(Array.from({ length: waiters }, async () => {
    await strategy.acquireInitialRetryToken("")
    return performance.now()
  }))
  const { system, user } = process.cpuUsage(cpu)
  return {
    name,
    waiters,
    seconds: (performance.now() - start) / 1000,
    timers: timers.fired,
    cpuSeconds: (system + user) / 1e6,
    overtakenMillis: overtakenMillis(served)
  }
}
