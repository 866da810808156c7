import { describe, it } from "@effect/vitest"
import { RetryQuota, type RetryQuotaStore } from "effect-retry"
import { RetryQuotaStoreSuite, TestQuota } from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

type Make = (options: RetryQuota.Options) => Effect.Effect<RetryQuotaStore.RetryQuotaStore>

const stores: Readonly<Record<string, Make>> = {
  "in memory": (options) => Effect.map(RetryQuota.make(options), ({ store }) => store),
  "the ledger of the testing kit": (options) =>
    Effect.map(
      Effect.provide(RetryQuota.RetryQuota, Layer.fresh(TestQuota.layer(options))),
      ({ store }) => store
    )
}

describe.each(Object.entries(stores))("the contract of a store: %s", (_, make) => {
  for (const law of RetryQuotaStoreSuite.bucketLaws(make)) it.effect(law.name, () => law.run)
})
