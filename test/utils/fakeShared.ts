import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Redis from "effect/persistence/Redis"
import { coolDownScript } from "../../src/redis/internal/coolDown.ts"
import { limiterScript } from "../../src/redis/internal/limiter.ts"
import { FakeCoolDown } from "./fakeCoolDown.ts"
import { FakeLimiter } from "./fakeLimiter.ts"
import { FakeRedis } from "./fakeRedis.ts"

/** How the next exchanges go, whatever they are about. */
type Mood = "fine" | "silent" | "refusing" | "garbage"

/**
 * A Redis in memory that knows the scripts of all that is shared: quotas by key, and of each resource a cool-down and a
 * limiter. Counts the commands, and the steps in which they are sent: those of one step are one message.
 */
export class FakeShared {
  readonly quotas = new FakeRedis()
  readonly coolDowns = new Map<string, FakeCoolDown>()
  readonly limiters = new Map<string, FakeLimiter>()
  commands = 0
  messages = 0
  readonly atMillis: Array<number> = []
  private isOpen = false
  private mood: Mood = "fine"

  readonly service: Redis.Redis["Service"] = {
    send: () => Effect.die("no commands"),
    subscribe: () => Effect.die("no channels"),
    reserve: Effect.die("no connections"),
    eval: (script) => (...params) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        this.count(now)
        return this.of(script, String(script.params(...params)[0])).eval(script)(...params)
      })
  }

  coolDown(key: string): FakeCoolDown {
    return this.known(this.coolDowns, key, () => new FakeCoolDown())
  }

  limiter(key: string): FakeLimiter {
    return this.known(this.limiters, key, () => new FakeLimiter())
  }

  be(mood: Mood): void {
    this.mood = this.quotas.mood = mood
    for (const fake of [...this.coolDowns.values(), ...this.limiters.values()]) fake.mood = mood
  }

  private of(script: unknown, key: string): Redis.Redis["Service"] {
    if (script === coolDownScript) return this.coolDown(key).service
    return script === limiterScript ? this.limiter(key).service : this.quotas.service
  }

  private known<A extends { mood: Mood }>(all: Map<string, A>, key: string, make: () => A): A {
    const fake = all.get(key) ?? Object.assign(make(), { mood: this.mood })
    all.set(key, fake)
    return fake
  }

  private count(now: number): void {
    this.commands++
    if (this.isOpen) return
    this.isOpen = true
    this.messages++
    this.atMillis.push(now)
    queueMicrotask(() => this.isOpen = false)
  }
}
