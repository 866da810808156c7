import { it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { FakeRedis } from "../utils/fakeRedis.ts"
import { quotaContract, type Subject } from "../utils/quotaContract.ts"

const virtual: Pick<Subject<never>, "elapse" | "slack" | "test"> = {
  elapse: (millis) => TestClock.adjust(millis),
  slack: 1e-9,
  test: (name, body) => it.effect(name, () => Effect.scoped(body()))
}

quotaContract("in memory", { ...virtual, make: RetryQuota.make })

quotaContract("shared, on a Redis that is only played", {
  ...virtual,
  make: (options) =>
    RetryQuotaRedis.make({ name: "contract", ...options }).pipe(
      Effect.provideService(Redis.Redis, new FakeRedis().service)
    )
})
