import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import { type CallFiber, clockOf, monotonicMillis } from "../../internal/state/clock.ts"
import {
  type FirstAttempt,
  Held,
  MemoryStore,
  type Request,
  type Store,
  type StoreOptions,
  type Use,
  withPatience
} from "../../internal/state/store.ts"
import { type Answer, Ask, type Client } from "./client.ts"
import type { Outbox } from "./outbox.ts"

/** Tokens that Redis granted: a lease, which ends by itself if nothing is heard of it. */
class Lease extends Held {
  private id: number
  private unwatch: () => void = constVoid
  private readonly outbox: Outbox

  constructor(store: Store, ask: Ask, clock: Clock.Clock, outbox: Outbox) {
    super(store, ask.cost, clock)
    this.id = ask.id
    this.outbox = outbox
  }

  protected override putBack(): void {
    this.unwatch()
    this.outbox.giveBack(this.id)
  }

  /** Redis knows how many it can give; here it counts as if it were all. */
  protected override takeAgain(): void {
    this.id = this.outbox.takeAgain(this.id, this.cost)
  }

  protected override keepTaken(): void {
    this.unwatch()
    this.outbox.spend(this.id)
  }

  /** A lease that nobody settles comes back, so a retry that ends without an outcome is spent. */
  override sentUnsafe(fiber: CallFiber): void {
    this.unwatch = fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) this.spendUnsafe()
    })
  }

  refund(): void {
    this.outbox.deposit(this.cost)
  }
}

/** Tokens of the local fallback. They stay an affair of the bucket from which they came. */
class LocalHeld extends Held {
  private readonly local: MemoryStore

  constructor(store: Store, local: MemoryStore, cost: number, clock: Clock.Clock) {
    super(store, cost, clock)
    this.local = local
  }

  protected override putBack(): void {
    this.local.put(this.cost, this.clock)
  }

  protected override takeAgain(): void {
    this.cost = this.local.takeUpTo(this.cost, this.clock)
  }

  refund(): void {
    this.putBack()
  }
}

/** The bucket that decides in place of the shared one. */
export class FallbackStore extends MemoryStore {
  private readonly shared: Store

  constructor(shared: Store, options: StoreOptions, nowMillis: number) {
    super(options, nowMillis)
    this.shared = shared
  }

  protected override hold(cost: number, clock: Clock.Clock): Held {
    return new LocalHeld(this.shared, this, cost, clock)
  }
}

/** Who decided, for the metrics. */
export type Decider = "redis" | "fallback"

/** The bucket in Redis, and the local one for as long as Redis does not answer. */
export class RemoteStore implements Store {
  readonly isRemote = true
  readonly isFull = false
  readonly successIncrement: number
  readonly firstAttemptCost: number
  readonly whenExhausted: "stop" | "wait"
  private readonly capacity: number
  private readonly client: Client
  private readonly decided: (by: Decider) => void

  constructor(options: StoreOptions, makeClient: (store: Store) => Client, decided: (by: Decider) => void) {
    this.successIncrement = options.successIncrement
    this.firstAttemptCost = options.firstAttemptCost
    this.whenExhausted = options.whenExhausted
    this.capacity = options.capacity
    this.decided = decided
    this.client = makeClient(this)
  }

  take(cost: number, clock: Clock.Clock): Held | undefined {
    if (cost === 0) return new Held(this, 0, clock)
    const held = this.client.local?.take(cost, clock)
    if (held !== undefined) this.decided("fallback")
    return held
  }

  put(tokens: number, clock: Clock.Clock): void {
    const { local, outbox } = this.client
    if (local === undefined) outbox.deposit(tokens)
    else local.put(tokens, clock)
  }

  balance(clock: Clock.Clock): number {
    const { local, tokens } = this.client
    return local === undefined ? tokens : local.balance(clock)
  }

  get look(): Effect.Effect<number> {
    const looked = Effect.callback<void>((resume) => this.client.look(() => resume(Effect.void)))
    return Effect.andThen(looked, Effect.withFiber((fiber) => Effect.succeed(this.balance(clockOf(fiber)))))
  }

  takeUpTo(cost: number, clock: Clock.Clock): number {
    return this.client.local?.takeUpTo(cost, clock) ?? 0
  }

  reserve<A>(request: Request, use: Use<A>): Effect.Effect<A> {
    const hopeless = request.cost > this.capacity || request.patienceMillis <= 0
    return hopeless
      ? Effect.sync(() => use(undefined))
      : withPatience(request, use, (handOver) => this.ask(request, handOver))
  }

  private ask<A>(request: Request, use: Use<A>): Effect.Effect<A> {
    const { client } = this
    return Effect.suspend(() => {
      const { clock, cost, patienceMillis } = request
      if (client.local !== undefined) return this.decideLocally(client.local, request, use)
      const ask = new Ask(client.outbox.nextId(), cost, monotonicMillis(clock) + patienceMillis)
      const answered = Effect.callback<Answer>((resume) => {
        ask.resume = (answer) => resume(Effect.succeed(answer))
        client.ask(ask)
      })
      const handOver = (answer: Answer): Effect.Effect<A> => {
        if (answer === "local") return this.decideLocally(client.local, request, use)
        return Effect.sync(() => {
          this.decided("redis")
          if (answer === "refused") return use(undefined)
          ask.state = "left"
          return use(new Lease(this, ask, clock, client.outbox))
        })
      }
      return Effect.onExit(Effect.flatMap(answered, handOver), () => Effect.sync(() => client.leave(ask)))
    })
  }

  private decideLocally<A>(local: MemoryStore | undefined, request: Request, use: Use<A>): Effect.Effect<A> {
    // Redis may have come back before the one who was sent here has got this far.
    if (local === undefined) return this.ask(request, use)
    this.decided("fallback")
    return local.reserve({ ...request, patienceMillis: Infinity }, use)
  }

  /** What was paid and spent goes back to whom it was paid, whoever decides by then. */
  afterFirstCost<A, E, R, E2>(
    clock: Clock.Clock,
    use: (paid: FirstAttempt) => Effect.Effect<A, E, R>,
    refused: () => E2
  ): Effect.Effect<A, E | E2, R> {
    const cost = this.firstAttemptCost
    return Effect.suspend(() => {
      let paid: Held | undefined = this.take(cost, clock)
      const undo = () => {
        if (paid instanceof Lease || paid instanceof LocalHeld) paid.refund()
      }
      const reserved = paid !== undefined
        ? Effect.void
        : this.reserve({ cost, clock, patienceMillis: Infinity }, (held) => {
          paid = held
        })
      const sent = Effect.flatMap(
        reserved,
        (): Effect.Effect<A, E | E2, R> =>
          paid === undefined ? Effect.fail(refused()) : use({ sends: () => paid!.spendUnsafe(), undo })
      )
      return Effect.onExit(sent, () => Effect.sync(() => paid?.giveBackUnsafe()))
    })
  }
}
