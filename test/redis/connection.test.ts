import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Scope from "effect/Scope"
import { connected, connecting, kept } from "../../src/redis/internal/exchange.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

/** A layer of Redis that fails this often, takes a second, and counts. */
const counted = (failures = 0) => {
  const counts = { built: 0, closed: 0 }
  const { service } = new FakeRedis()
  const layer = Layer.effect(
    Redis.Redis,
    Effect.gen(function*() {
      yield* Effect.addFinalizer(() => Effect.sync(() => counts.closed++))
      if (++counts.built <= failures) return yield* Effect.fail("down")
      return service
    })
  )
  return { counts, layer, service }
}

describe("a connection to Redis", () => {
  it.effect("that exists is there from the beginning, with the same turns for all that use it", () =>
    Effect.gen(function*() {
      const [redis, other] = [new FakeRedis().service, new FakeRedis().service]
      const [one, two] = [
        yield* Effect.provideService(connected, Redis.Redis, redis),
        yield* Effect.provideService(connected, Redis.Redis, redis)
      ]
      const another = yield* Effect.provideService(connected, Redis.Redis, other)
      assert.isTrue(one.isConnected())
      assert.strictEqual(yield* one.within(yield* Scope.make()), redis)
      assert.strictEqual(one.turns, two.turns)
      assert.notStrictEqual(one.turns, another.turns)
    }))

  it.effect("that is made is there after the first use, and is made once", () =>
    Effect.gen(function*() {
      const { counts, layer, service } = counted()
      const connect = yield* connecting(layer)
      const scope = yield* Scope.make()
      assert.deepStrictEqual([connect.isConnected(), counts.built], [false, 0])
      assert.strictEqual(yield* connect.within(scope), service)
      assert.isTrue(connect.isConnected())
      assert.strictEqual(yield* connect.within(yield* Scope.make()), service)
      assert.strictEqual(counts.built, 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(counts.closed, 1)
    }))

  it.effect("that could not be made is closed, and is made again by the next use", () =>
    Effect.gen(function*() {
      const { counts, layer, service } = counted(2)
      const connect = yield* connecting(layer)
      const scope = yield* Scope.make()
      for (const failures of [1, 2]) {
        assert.strictEqual(yield* Effect.flip(connect.within(scope)), "down")
        assert.deepStrictEqual([connect.isConnected(), counts.built, counts.closed], [false, failures, failures])
      }
      assert.strictEqual(yield* connect.within(scope), service)
      assert.deepStrictEqual([connect.isConnected(), counts.built, counts.closed], [true, 3, 2])
    }))

  it.effect("of many is made once however many begin, and closes with its own scope, not with theirs", () =>
    Effect.gen(function*() {
      const { counts, layer, service } = counted()
      const [own, theirs] = [yield* Scope.make(), yield* Scope.make()]
      const connect = yield* Scope.provide(Effect.flatMap(connecting(layer), kept), own)
      const all = yield* Effect.all([1, 2, 3].map(() => connect.within(theirs)), { concurrency: 3 })
      assert.deepStrictEqual(all.map((one) => one === service), [true, true, true])
      assert.deepStrictEqual([connect.isConnected(), counts.built], [true, 1])
      yield* Scope.close(theirs, Exit.void)
      assert.strictEqual(counts.closed, 0)
      yield* Scope.close(own, Exit.void)
      assert.strictEqual(counts.closed, 1)
    }))
})
