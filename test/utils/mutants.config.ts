import { defineConfig } from "vitest/config"

const core = [
  "core/AdaptiveRateLimiter",
  "core/ClientThrottle",
  "core/ConcurrencyLimiter",
  "core/Contracts",
  "core/CoolDown",
  "core/NestingBegins",
  "core/RetryPolicyText",
  "core/SendGateContract",
  "core/Sharing",
  "core/Attempt",
  "core/BackoffVectors",
  "internal/CubicVectors",
  "core/Nesting",
  "core/ResourceLimiters",
  "core/RetryBudget",
  "core/RetryInfo",
  "core/RetryObserver",
  "core/RetryPolicy",
  "core/RetryPromise",
  "core/RetryQuota",
  "core/RetryQuotaContract",
  "redis/RetryQuotaRedis",
  "redis/RetryQuotaRedisOutbox",
  "core/RetryStrategy",
  "core/SmithyRateLimiter",
  "core/StandardVectors",
  "core/Waiter",
  "internal/bucket",
  "engine/delay",
  "state/waiters"
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
