import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { afterAll, beforeAll, it } from "@effect/vitest"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { describePeers, freePort, startRedis } from "../utils/peers.ts"
import { quotaContract } from "../utils/quotaContract.ts"

describePeers("a quota that is shared through a real Redis", () => {
  const scope = Scope.makeUnsafe()
  let url = ""
  let names = 0

  beforeAll(() =>
    Effect.runPromise(Effect.gen(function*() {
      const port = yield* freePort
      yield* Effect.provideService(startRedis(port), Scope.Scope, scope)
      url = `redis://127.0.0.1:${port}`
    }))
  )
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  quotaContract<never>("on redis-server", {
    // Four times as slow, so that a busy machine has time to be late.
    elapse: (millis) => Effect.sleep(4 * millis),
    slack: 4,
    test: (name, body) => it.live(name, () => Effect.scoped(body())),
    make: (options) =>
      Effect.suspend(() =>
        Effect.flatMap(
          Layer.build(NodeRedis.layer({ url })),
          (redis) =>
            Effect.provideContext(
              RetryQuotaRedis.make({
                name: `contract-${names++}`,
                timeout: "20 seconds",
                ...options,
                refillPerSecond: (options?.refillPerSecond ?? 0) / 4
              }),
              redis
            )
        )
      )
  })
})
