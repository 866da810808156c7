import { describe, it } from "@effect/vitest"
import { RetryQuota, type RetryQuotaStore } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import { TestQuota } from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import { bucketLaws } from "../utils/bucketLaws.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"
import { thinned } from "../utils/sweep.ts"

type Make = (options: RetryQuota.Options) => Effect.Effect<RetryQuotaStore.RetryQuotaStore, unknown, Scope.Scope>

const storeOf = ({ store }: RetryQuota.Service) => store

const stores: Readonly<Record<string, Make>> = {
  "in memory": (options) => Effect.map(RetryQuota.make(options), storeOf),
  "the ledger of the testing kit": (options) =>
    Effect.map(Effect.provide(RetryQuota.RetryQuota, Layer.fresh(TestQuota.layer(options))), storeOf),
  "shared, on a Redis that is only played": (options) =>
    RetryQuotaRedis.make({ name: "contract", ...options }).pipe(
      Effect.map(storeOf),
      Effect.provideService(Redis.Redis, new FakeRedis().service)
    )
}

describe.each(Object.entries(stores))("the contract of a store: %s", (_, make) => {
  for (const law of bucketLaws(make)) it.effect(law.name, () => thinned(5)(law.run))
})
