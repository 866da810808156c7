import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import type { CoolDownExchange, CoolDownSettings } from "../../src/redis/internal/coolDown.ts"

interface Closed {
  readonly until: number
  readonly closing: string
  holder: string
  probe: number
}

/** How the next exchanges go: as they should, never answered, refused, or answered with nonsense. */
export type Mood = "fine" | "silent" | "refusing" | "garbage"

/**
 * A Redis in memory that knows the script of a shared cool-down, for tests which interrupt and delay. It does not prove the
 * script itself: the tests against a real server do.
 */
export class FakeCoolDown {
  closed: Closed | undefined = undefined
  exchanges = 0
  mood: Mood = "fine"
  /** How long each exchange takes, after it was read, and before. */
  latencyMillis = 0
  onItsWayMillis = 0

  readonly service: Redis.Redis["Service"] = {
    send: () => Effect.die("no commands"),
    subscribe: () => Effect.die("no channels"),
    reserve: Effect.die("no connections"),
    eval: (script) => (...params) => this.evaluate(script.params(...params))
  }

  private evaluate(args: ReadonlyArray<unknown>): Effect.Effect<any, Redis.RedisError> {
    return Effect.gen({ self: this }, function*() {
      this.exchanges++
      if (this.mood === "refusing") return yield* new Redis.RedisError({ cause: new Error("READONLY a replica") })
      if (this.mood === "garbage") return ["what?"]
      if (this.mood === "silent") return yield* Effect.never
      if (this.onItsWayMillis > 0) yield* Effect.sleep(this.onItsWayMillis)
      const now = yield* Clock.currentTimeMillis
      const reply = this.run(now, JSON.parse(String(args[1])))
      if (this.latencyMillis > 0) yield* Effect.sleep(this.latencyMillis)
      return reply
    })
  }

  private run(now: number, sent: CoolDownExchange & Pick<CoolDownSettings, "probeMillis">) {
    const { client, closedMillis, hasOpened, probeMillis, wantsToOpen } = sent
    this.told(now, client, closedMillis)
    if (hasOpened && closedMillis === 0 && this.closed?.holder === client) this.closed = undefined
    const { closed: state } = this
    if (state === undefined) return [0, 0, ""]
    if (now < state.until) return [1, Math.ceil(state.until - now), state.closing]
    return wantsToOpen ? this.probed(state, now, [client, probeMillis]) : this.seen(state, now, client)
  }

  private told(now: number, client: string, closed: number): void {
    const until = now + closed
    if (closed > 0 && !(this.closed !== undefined && this.closed.until >= until)) {
      this.closed = { until, closing: `${client}:${now}`, holder: "", probe: 0 }
    }
  }

  private probed(state: Closed, now: number, [client, lease]: readonly [string, number]) {
    if (state.holder === "" || state.holder === client || state.probe <= now) {
      state.holder = client
      state.probe = now + lease
    }
    return this.seen(state, now, client)
  }

  private seen({ closing, holder, probe }: Closed, now: number, client: string) {
    return holder === client ? [3, 0, closing] : [2, Math.max(0, probe - now), closing]
  }
}
