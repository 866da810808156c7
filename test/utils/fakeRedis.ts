import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import type { Section } from "../../src/redis/internal/quotaClient.ts"

/** What the one script of a shared quota knows: leases by name, with their cost and their end. */
interface State {
  tokens: number
  capacity: number
  at: number
  readonly leases: Map<string, { readonly cost: number; readonly expires: number }>
  readonly clients: Map<string, number>
}

/** How the next exchanges go: as they should, never answered, refused, or applied with the answer lost. */
export type Mood = "fine" | "silent" | "deaf" | "refusing" | "garbage"

/**
 * A Redis in memory that knows one script, for tests which interrupt and delay. It does not prove the script itself: the
 * tests against a real server do.
 */
export class FakeRedis {
  readonly states = new Map<string, State>()
  exchanges = 0
  mood: Mood = "fine"
  error = "READONLY You can't write against a read only replica."
  /** How long each exchange takes. */
  latencyMillis = 0
  /** Exchanges that are on their way and may still arrive: they were sent in the mood "deaf". */
  readonly late: Array<() => void> = []

  /** Time does not pass when the scope of a test closes, and what is left to report is sent then. */
  readonly hurryAtTheEnd: Effect.Effect<void, never, Scope.Scope> = Effect.addFinalizer(() =>
    Effect.sync(() => this.latencyMillis = 0)
  )

  /** Sum of what is there and what is leased. */
  total(key: string): number {
    const state = this.states.get(key)
    if (state === undefined) return NaN
    return [...state.leases.values()].reduce((sum, { cost }) => sum + cost, state.tokens)
  }

  leases(key: string): number {
    return this.states.get(key)?.leases.size ?? 0
  }

  readonly service: Redis.Redis["Service"] = {
    send: () => Effect.die("no commands"),
    subscribe: () => Effect.die("no channels"),
    reserve: Effect.die("no connections"),
    eval: (script) => (...params) => this.evaluate(script.params(...params))
  }

  private evaluate(args: ReadonlyArray<unknown>): Effect.Effect<any, Redis.RedisError> {
    return Effect.gen({ self: this }, function*() {
      this.exchanges++
      const mood = this.mood
      if (mood === "refusing") return yield* new Redis.RedisError({ cause: new Error(this.error) })
      if (mood === "garbage") return "what?"
      const now = yield* Clock.currentTimeMillis
      if (mood === "deaf") {
        this.late.push(() => new Exchange(args.map(String), now).run(this.states))
        return yield* Effect.never
      }
      const reply = new Exchange(args.map(String), now).run(this.states)
      if (mood === "silent") return yield* Effect.never
      if (this.latencyMillis > 0) yield* Effect.sleep(this.latencyMillis)
      return reply ?? (yield* new Redis.RedisError({ cause: new Error("STALE exchange") }))
    })
  }
}

/** One exchange with one quota. */
class Exchange {
  private readonly now: number
  private readonly key: string
  private readonly capacity: number
  private readonly initial: number
  private readonly refill: number
  private readonly lease: number
  private readonly client: string
  private readonly sequence: number
  private readonly inOrder: boolean
  private readonly sections: ReadonlyArray<Section>
  private readonly wanted: ReadonlyArray<string>
  private state!: State
  private last = 0

  constructor([key, json]: ReadonlyArray<string>, now: number) {
    const sent = JSON.parse(json!)
    this.now = now
    this.key = key!
    this.capacity = sent.capacity
    this.initial = sent.initial
    this.refill = sent.refillPerSecond / 1000
    this.lease = sent.leaseMillis
    this.client = sent.client
    this.sequence = sent.sequence
    this.inOrder = sent.inOrder
    this.sections = sent.sections
    this.wanted = sent.wanted
  }

  /** The reply, or `undefined` for a copy that comes late. */
  run(states: Map<string, State>): ReadonlyArray<string | number> | undefined {
    this.state = states.get(this.key) ??
      { tokens: this.initial, capacity: this.capacity, at: this.now, leases: new Map(), clients: new Map() }
    this.state.tokens *= this.capacity / this.state.capacity
    this.state.capacity = this.capacity
    this.last = this.state.clients.get(this.client) ?? 0
    if (this.sequence <= this.last) return undefined
    states.set(this.key, this.state)
    this.state.clients.set(this.client, this.sequence)
    this.pass()
    for (const section of this.sections) this.apply(section)
    const answers = this.answers()
    return [String(this.state.tokens), this.last, ...answers]
  }

  private pass(): void {
    this.add(Math.max(0, this.now - this.state.at) * this.refill)
    this.state.at = this.now
    for (const [field, { cost, expires }] of this.state.leases) {
      if (expires <= this.now && this.state.leases.delete(field)) this.add(cost)
    }
  }

  private add(tokens: number): void {
    this.state.tokens = Math.max(0, Math.min(this.capacity, this.state.tokens + tokens))
  }

  private hold(lease: string, cost: number): void {
    this.state.tokens = Math.max(0, this.state.tokens - cost)
    this.state.leases.set(`${this.client}:${lease}`, { cost, expires: this.now + this.lease })
  }

  private release(lease: string): number {
    const field = `${this.client}:${lease}`
    const cost = this.state.leases.get(field)?.cost ?? 0
    this.state.leases.delete(field)
    return cost
  }

  private apply({ deposit, returned, sequence, spent }: Section): void {
    if (sequence <= this.last) return
    this.add(deposit)
    for (const lease of returned) this.add(this.release(lease))
    for (const lease of spent) this.release(lease)
  }

  private answers(): ReadonlyArray<number> {
    let waits = false
    const answers: Array<number> = []
    for (const lease of this.wanted) {
      const cost = Number(lease.slice(lease.indexOf(":") + 1))
      const shortfall = cost - this.state.tokens
      if (shortfall <= 1e-9 && !waits) {
        this.hold(lease, cost)
        answers.push(0)
        continue
      }
      waits = this.inOrder
      answers.push(this.refill === 0 ? -1 : Math.max(1, Math.ceil(shortfall / this.refill)))
    }
    return answers
  }
}
