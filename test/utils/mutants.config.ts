import { defineConfig } from "vitest/config"

const core = [
  "AdaptiveRateLimiter",
  "Attempt",
  "BackoffVectors",
  "CubicVectors",
  "Nesting",
  "ResourceLimiters",
  "RetryInfo",
  "RetryObserver",
  "RetryPolicy",
  "RetryPromise",
  "RetryQuota",
  "RetryQuotaContract",
  "RetryQuotaRedis",
  "RetryQuotaRedisOutbox",
  "RetryStrategy",
  "SmithyRateLimiter",
  "StandardVectors",
  "Waiter",
  "bucket",
  "delay",
  "waiters"
]

const reliability = ["model", "mutants", "nasty/{arithmetic,concurrency,failures,redis,requests,time}"]

// The tests that are fast enough to run once for each mutant: see docs/reliability.md.
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: [...core, ...reliability.map((name) => `reliability/${name}`)].map((name) => `test/${name}.test.ts`),
    testTimeout: 30_000
  }
})
