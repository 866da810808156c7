import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "../internal/clock.ts"
import { type AnyContext, shared } from "../internal/shared.ts"
import type { Retry, RetryDecision } from "../RetryDecision.ts"
import type { Ask, Reservation } from "../RetryQuotaStore.ts"
import { type AnyEffect, asking, Call, deadlineAt, earn, failed, sentOn, succeeded } from "./call.ts"
import type { Parts } from "./parts.ts"
import { Permit, type Watch, watchOf } from "./permit.ts"
import { failAgain, guarded, send, settling } from "./send.ts"
import { type AnyFiber, current, fresh, InsideCall, isQuiet, Mark, onwardOf, quotaOf, World, worldOf } from "./world.ts"

/** How long after its delay a pending retry is still expected, in milliseconds: a process may be busy. */
const graceMillis = 1000

/** A retry that a schedule has decided on, until the attempt that makes it finds it again. */
class Pending {
  readonly call: Call
  readonly retry: Retry
  readonly error: unknown
  readonly world: World
  /** The watch of the fiber in which it was decided. */
  private readonly watch: Watch
  /** What the retry holds; `undefined` when it costs nothing. */
  permit: Permit | undefined
  /** The observer has been notified. */
  announced: boolean
  /** Unfinished attempts that share what it holds. */
  senders = 0
  /** One of them has failed. */
  hasFailed = false
  /** An attempt is making it, or has made it. */
  isClaimed = false
  /** If it cannot pay: it waited for tokens that do not come before the deadline. */
  isLate = false
  /** The quota is being asked again: racing attempts wait for the one answer. */
  private answered: Deferred.Deferred<void> | undefined = undefined

  constructor(call: Call, world: World, retry: Retry, watch: Watch) {
    this.call = call
    this.watch = watch
    this.retry = retry
    this.error = call.error
    this.world = world
    this.permit = call.permit
    this.announced = this.permit === undefined
    if (!this.permit) return
    this.permit.kind = "lapses"
    world.lapses?.expect(this.permit, monotonicMillis(world.clock) + retry.delayMillis + graceMillis)
  }

  /** The retry is made: what it holds no longer lapses. What has already lapsed is taken again. */
  made(world: World): Effect.Effect<unknown> | undefined {
    const { permit } = this
    if (!permit) return undefined
    if (permit.kind !== "lapses") return this.answered && Deferred.await(this.answered)
    permit.kind = "plain"
    this.world.lapses?.forget(permit)
    return permit.state === "canceled" ? this.takenAnew(world) : undefined
  }

  /** Takes the tokens again, if the quota still has them. */
  private takenAnew(world: World): Effect.Effect<unknown> | undefined {
    const permit = this.permit = new Permit(world, this.retry.retry)
    this.watch.hold(permit)
    const answer = this.world.store!.reserve(this.retry.cost, world.clock)
    if (typeof answer === "function") return this.asked(answer, permit)
    permit.reservation = answer
    return undefined
  }

  /** Asks again for what has lapsed, until the deadline at most. */
  private asked(ask: Ask, again: Permit): Effect.Effect<unknown> {
    const patience = this.call.patienceFor(again.world, 0)
    const answered = this.answered = Deferred.makeUnsafe<void>()
    const waits = patience < Infinity && again.world.store!.whenExhausted === "wait"
    const asked = Effect.map(asking(ask, again, patience), (shortage) => {
      this.isLate = waits && shortage !== "refused"
    })
    return Effect.ensuring(asked, Deferred.succeed(answered, undefined))
  }

  /** Whether only this fiber holds it, so that the attempt needs no share. */
  isOnlyOf(watch: Watch): boolean {
    const { permit } = this
    return permit?.watch === watch && permit.state === "taken" && this.senders === 0
  }

  /** Notifies the observer, once. */
  announce(world: World, permit: Permit | undefined): Effect.Effect<unknown, unknown, unknown> | undefined {
    if (this.announced) return undefined
    this.announced = true
    const told = this.call.announced(world, this.retry, permit)
    return Effect.isEffect(told) ? told : undefined
  }

  /** The retry failed as a whole, whatever an attempt inside it reported: the tokens are spent after all. */
  failed(world: World): Effect.Effect<void> | undefined {
    const { permit } = this
    if (!permit || permit.state === "spent") return undefined
    const taking = permit.state === "returned" ? this.takenAnew(world) : this.made(world)
    const spend = () => {
      this.permit!.leave(false)
      this.permit!.abandon()
    }
    if (taking !== undefined) return Effect.map(taking, spend)
    spend()
    return undefined
  }
}

type Stepped = Pull.Pull<[RetryDecision, Duration.Duration], unknown, RetryDecision, unknown>

/** The failures of one call, as its schedule sees them. */
class Steps {
  readonly call: Call
  private pending: Pending | undefined = undefined

  constructor(parts: Parts, deadlineAtMillis: number) {
    this.call = new Call(parts, deadlineAtMillis, true)
  }

  next(error: unknown, fiber: AnyFiber): Stepped {
    const { pending } = this
    const world = worldOf(fiber.context)
    if (!pending) return this.decided(world, error, fiber)
    this.pending = undefined
    // A retry that could not be sent is not announced.
    const told = this.call.ends === undefined ? pending.announce(world, pending.permit) : undefined
    const spent = pending.failed(world)
    if (!told && !spent) return this.decided(world, error, fiber)
    return Effect.flatMap(
      Effect.andThen(told ?? Effect.void, spent ?? Effect.void),
      () => this.decided(world, error, fiber)
    )
  }

  private decided(world: World, error: unknown, fiber: AnyFiber): Stepped {
    const decision = this.call.failed(world, error, fiber)
    return Effect.isEffect(decision)
      ? Effect.flatMap(decision, (decided) => this.follow(decided, world, fiber))
      : this.follow(decision, world, fiber)
  }

  private follow(decision: RetryDecision, world: World, fiber: AnyFiber): Stepped {
    if (decision._tag === "Stop") {
      const done = Cause.done<RetryDecision>(decision)
      return decision.delayMillis === 0 ? done : Effect.andThen(Effect.sleep(decision.delayMillis), done)
    }
    const delay = Duration.millis(decision.delayMillis)
    const watch = this.call.permit?.watch ?? watchOf(fiber)
    const pending = new Pending(this.call, world, decision, watch)
    this.pending = watch.pending = pending
    shared.pending.set(decision, pending)
    shared.pending.set(delay, pending)
    return Effect.succeed([decision, delay])
  }
}

/** The schedule of a policy: one step that decides, for `Effect.retry` and every combinator of `Schedule`. */
export const toSchedule = (given: Parts): Schedule.Schedule<RetryDecision, unknown, unknown, unknown> => {
  const stepper = (parts: Parts, deadlineAtMillis: number, begun?: Steps) => {
    let steps = begun
    return (_now: number, error: unknown): Stepped =>
      Effect.withFiber((fiber) => (steps ??= new Steps(parts, deadlineAtMillis)).next(error, fiber))
  }
  return Schedule.fromStep(Effect.withFiber((fiber) => {
    const watch: Watch | undefined = shared.watches.get(fiber)
    watch?.lapse()
    const parts = given.live?.(fiber.context) ?? given
    const isOnward = shared.telling && onwardOf(fiber.context) !== undefined
    const isTimed = isOnward || parts.deadlineMillis !== Infinity
    const deadlineAtMillis = isTimed ? deadlineAt(parts, worldOf(fiber.context)) : Infinity
    if (!isOnward && !(isTimed && shared.marking)) return Effect.succeed(stepper(parts, deadlineAtMillis))
    // The first attempt, which no schedule sees, identifies the call too, and its deadline to hedges inside it.
    const steps = new Steps(parts, deadlineAtMillis)
    watchOf(fiber).begun = steps.call
    return Effect.succeed(stepper(parts, deadlineAtMillis, steps))
  }))
}

/** The retry that an attempt in this fiber makes, if a policy has decided on one. */
const pendingOf = (metadata: Schedule.Metadata | undefined, fiber: AnyFiber): Pending | undefined => {
  if (metadata === undefined || metadata.attempt === 0) return undefined
  const own: Pending | undefined = isKey(metadata.output) ? shared.pending.get(metadata.output) : undefined
  if (own !== undefined) return own
  // Combinators around a policy change its output, but rarely its delay.
  const known: Pending | undefined = shared.pending.get(metadata.duration) ?? watchOf(fiber).pending
  return known?.error === metadata.input ? known : undefined
}

const isKey = (u: unknown): u is object => typeof u === "object" && u !== null

/** The retry, if an attempt that pays from this store can be the one to make it, or if it is not made at all. */
const openTo = (own: World["store"], pending: Pending | undefined): Pending | undefined => {
  if (pending === undefined || pending.call.ends !== undefined) return pending
  const { permit } = pending
  if (permit === undefined) return pending.isClaimed ? undefined : pending
  const isOpen = permit.state === "left" || permit.state === "taken" || permit.kind === "lapses"
  return isOpen && pending.world.store === own ? pending : undefined
}

/**
 * A share of what a retry holds, for an attempt in its own fiber. Attempts that race inside one retried effect share
 * it: the first to succeed returns it, and it is spent when all have failed.
 */
class Share implements Reservation {
  readonly cost: number
  private readonly pending: Pending
  private readonly permit: Permit

  constructor(pending: Pending, permit: Permit) {
    pending.senders++
    this.pending = pending
    this.permit = permit
    this.cost = pending.retry.cost
  }

  giveBack(): boolean {
    return this.left(false) && (this.pending.hasFailed ? this.spent() : this.permit.cancel())
  }

  spend(): boolean {
    return this.left(true) && this.spent()
  }

  private spent(): boolean {
    this.permit.failed(undefined)
    return true
  }

  /** Returns whether it was the last one. */
  private left(hasFailed: boolean): boolean {
    if (hasFailed) this.pending.hasFailed = true
    return --this.pending.senders === 0
  }
}

/** One send of an effect, as an attempt under `Effect.retry`. */
class Attempt {
  private readonly self: AnyEffect
  private readonly world: World
  private readonly pending: Pending | undefined
  /** What the send itself holds: a share, a fee, passes. */
  private permit: Permit | undefined = undefined
  /** What it has a share of, if it holds one. */
  private whole: Permit | undefined
  private mark: Mark | undefined = undefined
  private call: Call | undefined

  constructor(self: AnyEffect, world: World, pending: Pending | undefined) {
    this.self = self
    this.world = world
    this.pending = pending
    this.call = pending?.call
  }

  begin(fiber: AnyFiber): AnyEffect {
    const { pending, world } = this
    if (pending === undefined) {
      const watch = watchOf(fiber)
      this.call = watch.begun
      watch.begun = undefined
      watch.hold(this.permit = new Permit(world, 0))
      return this.send()
    }
    pending.isClaimed = true
    const taking = pending.made(world)
    const watch: Watch = shared.watches.get(fiber) ?? watchOf(fiber)
    return taking === undefined ? this.joins(pending, watch) : Effect.flatMap(taking, () => this.joins(pending, watch))
  }

  private joins(pending: Pending, watch: Watch): AnyEffect {
    const { call, permit } = pending
    if (call.ends !== undefined || (permit !== undefined && permit.reservation === undefined)) {
      return this.ended(pending.isLate || this.world.nowMillis >= call.deadlineAtMillis)
    }
    if (this.world.gates.length === 0 && pending.isOnlyOf(watch)) {
      this.permit = permit!
      this.permit.world = this.world
    } else {
      watch.hold(this.permit = new Permit(this.world, pending.retry.retry))
      if (permit !== undefined) this.permit.pay(new Share(pending, this.whole = permit))
    }
    const told = pending.announced ? undefined : pending.announce(this.world, this.permit)
    return told === undefined ? this.send() : Effect.flatMap(told, () => this.send())
  }

  private send(): AnyEffect {
    const { pending, world } = this
    const sent = this.settled(Effect.suspend(() => this.leave()))
    const deadlineAtMillis = pending?.call.deadlineAtMillis ?? Infinity
    if (pending !== undefined && world.gates.length === 0 && deadlineAtMillis === Infinity) return sent
    return send({
      world,
      permit: this.permit!,
      sent,
      deadlineAtMillis,
      refused: failAgain,
      expired: () => this.ended(true)
    })
  }

  private settled(self: AnyEffect): AnyEffect {
    return settling(
      self,
      (value) => this.succeed(value),
      (error, cause) => this.fail(error, cause),
      () => {
        this.mark?.ended()
        this.permit!.abandon()
      }
    )
  }

  /** The retry is late, or cannot pay: it is not sent but fails like the previous attempt, and its policy stops. */
  private ended(isLate: boolean): AnyEffect {
    const pending = this.pending!
    this.permit?.cancel()
    pending.permit?.cancel()
    pending.call.ends = isLate ? "deadline" : "quota-exhausted"
    return Effect.fail(pending.error)
  }

  private leave(): AnyEffect {
    this.permit!.leave()
    this.whole?.leave(false)
    const { call, permit, world } = this
    if (!shared.marking && world.onward === undefined) return this.self
    const deadlineAtMillis = call?.deadlineAtMillis ?? Infinity
    const isAlone = this.pending === undefined && world.metadata === undefined
    this.mark = new Mark(world, current(), { permit, deadlineAtMillis, isAlone })
    return Effect.updateContext(this.self, (context: Context.Context<any>): any => this.inside(context))
  }

  /** The context of the send. */
  private inside(context: AnyContext): AnyContext {
    const { call, mark, world: { context: around, onward } } = this
    const marked = Context.add(context, InsideCall, mark)
    return call === undefined || onward === undefined ? marked : sentOn(call, onward, around, marked)
  }

  private succeed(value: unknown): AnyEffect {
    this.mark?.ended()
    this.whole?.succeeded(value)
    const told = succeeded(this.world, this.permit, this.pending !== undefined, value)
    return told === undefined ? Effect.succeed(value) : Effect.as(told, value)
  }

  private fail(error: unknown, cause: Cause.Cause<unknown>): AnyEffect {
    this.mark?.ended()
    const told = failed(this.world, this.permit, error)
    return told === undefined ? Effect.failCause(cause) : Effect.andThen(told, Effect.failCause(cause))
  }
}

/** A successful first attempt that only the quota needs to know about. */
const bookFirstSuccess = <A>(value: A): A => {
  const { context } = current()
  const store = quotaOf(context)?.store
  if (store?.isFull !== true) earn(store, Context.get(context, Clock.Clock))
  return value
}

/** What an attempt still has to account for inside a send of a call that accounts for itself. */
const besides = ({ world: outer }: Mark, context: AnyContext): World => {
  const world = worldOf(context)
  const quota = world.store === outer.store ? undefined : quotaOf(context)
  return new World(context, quota, world.gates.filter((gate) => !outer.gates.includes(gate)))
}

/** Whether the metadata comes from a send of `withRetry`, and not from a schedule inside it. */
const isOfLoop = (metadata: Schedule.Metadata | undefined): boolean =>
  metadata === undefined || metadata === fresh ||
  (isKey(metadata.output) && "_tag" in metadata.output && metadata.output._tag === "Retry" &&
    !shared.pending.has(metadata.output))

/** Only the quota and gates need to know about a first send. */
const isPlain = (found: Pending | undefined, { isUnseen }: World): boolean =>
  found === undefined && isUnseen && !shared.marking

/** Whether something inside a first send asks for its mark: who retries, or the deadline of its call. */
const isMarked = (fiber: AnyFiber): boolean =>
  shared.marking === true && (shared.nesting || shared.watches.get(fiber)?.begun !== undefined)

/** One send of a call that a schedule retries. */
export const attempting = (self: AnyEffect): AnyEffect => {
  const body = Effect.map(self, bookFirstSuccess)
  return Effect.withFiber((fiber): AnyEffect => {
    const { context } = fiber
    const metadata = Context.getOrUndefined(context, Schedule.CurrentMetadata)
    const mark = Context.get(context, InsideCall)
    if (mark !== undefined && isOfLoop(metadata)) {
      const world = besides(mark, context)
      return world.store === undefined && world.gates.length === 0
        ? self
        : new Attempt(self, world, undefined).begin(fiber)
    }
    const found = pendingOf(metadata, fiber)
    if (found === undefined && !isMarked(fiber) && isQuiet(context)) return body
    const world = worldOf(context)
    if (isPlain(found, world)) return guarded(self, world, context, fiber)
    return new Attempt(self, world, openTo(world.store, found)).begin(fiber)
  })
}
