import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import type { RetryQuota } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { bucketLaws } from "../utils/bucketLaws.ts"
import { freePort, redisPrograms, startRedis } from "../utils/peers.ts"

/** Each program of its kind, over both protocols. */
const servers = redisPrograms().flatMap((program) => ([2, 3] as const).map((RESP) => ({ program, RESP })))

for (const { program, RESP } of servers) {
  describe(`the contract of a store: shared through ${program}, over RESP ${RESP}`, () => {
    const scope = Scope.makeUnsafe()
    let url = ""
    let names = 0

    beforeAll(() =>
      Effect.runPromise(Effect.gen(function*() {
        const port = yield* freePort
        yield* Effect.provideService(startRedis(port, [], program), Scope.Scope, scope)
        url = `redis://127.0.0.1:${port}`
      }))
    )
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

    const make = (options: RetryQuota.Options) =>
      Effect.gen(function*() {
        const redis = yield* Layer.build(NodeRedis.layer({ url, RESP }))
        const quota = RetryQuotaRedis.make({
          name: `contract-${names++}`,
          timeout: "20 seconds",
          ...options,
          refillPerSecond: (options.refillPerSecond ?? 0) / 4
        })
        return (yield* Effect.provideContext(quota, redis)).store
      })

    // Four times as slow, so that a busy machine has time to be late.
    const laws = bucketLaws(make, {
      slack: 4,
      time: { elapse: (millis) => Effect.sleep(4 * millis), isVirtual: false }
    })
    for (const law of laws) it.live(law.name, () => law.run)
  })
}
