import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import type { LimiterExchange } from "../../src/redis/internal/limiter.ts"

/** What a process reported, as far as tests look at it. */
export interface Told {
  readonly atMillis: number
  readonly rate: number
  readonly isHungry: boolean
  readonly isThrottled: boolean
  readonly cuts: number
}

/** How the next exchanges go: as they should, never answered, refused, or answered with nonsense. */
export type Mood = "fine" | "silent" | "refusing" | "garbage"

/**
 * A Redis in memory that answers the script of a shared limiter with what a test says, and cuts once for a throttle. It
 * does not prove the script itself: the tests against a real server do.
 */
export class FakeLimiter {
  cuts = 0
  lastMaxRate = 0
  cutAtMillis = 0
  share = 0.1
  mood: Mood = "fine"
  latencyMillis = 0
  readonly told: Array<Told> = []

  readonly service: Redis.Redis["Service"] = {
    send: () => Effect.die("no commands"),
    subscribe: () => Effect.die("no channels"),
    reserve: Effect.die("no connections"),
    eval: (script) => (...params) => this.evaluate(script.params(...params))
  }

  /** Another process of the fleet was throttled. */
  readonly cut = (rate: number) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      this.cuts++
      this.lastMaxRate = rate
      this.cutAtMillis = now
    })

  private evaluate(args: ReadonlyArray<unknown>): Effect.Effect<any, Redis.RedisError> {
    return Effect.gen({ self: this }, function*() {
      const now = yield* Clock.currentTimeMillis
      const { cuts, isHungry, isThrottled, rate } = JSON.parse(String(args[1])) as LimiterExchange
      this.told.push({ atMillis: now, rate, isHungry, isThrottled, cuts })
      if (this.mood === "refusing") return yield* new Redis.RedisError({ cause: new Error("READONLY a replica") })
      if (this.mood === "garbage") return [1, 2, 3]
      if (this.mood === "silent") return yield* Effect.never
      if (isThrottled && cuts === this.cuts) yield* this.cut(100)
      const reply = [this.cuts, String(this.lastMaxRate), String(now - this.cutAtMillis), String(this.share), "100"]
      if (this.latencyMillis > 0) yield* Effect.sleep(this.latencyMillis)
      return reply
    })
  }
}
