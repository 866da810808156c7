/**
 * A policy as a schedule: it finds the run of the loop that it is in, or begins one; it offers, and the loop decides. And a
 * schedule as a policy.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { firstIn } from "../internal/cause.ts"
import { catchDone, isDoneCause } from "../internal/requiresEffect4.ts"
import { warn } from "../internal/sharing.ts"
import type { RetryDecision } from "../RetryDecision.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import { type Compiled, type DecidingSchedule, isTimed, type Source, type Surrounding } from "./compiled.ts"
import { chain, Decider } from "./decider.ts"
import { type AnyFiber, environmentOf } from "./environment.ts"
import { begin, depthOf, type Driven, drivenBy, isConstant, isSupported, joinLate, lookUp, tried } from "./frames.ts"
import { CurrentOffers, Offers, Repetition, Run } from "./run.ts"
import { after, earn } from "./send.ts"

/** A run that a loop of Effect drives. */
class Driver extends Run implements Driven {
  private offered: Offers | undefined = undefined
  private isOver = false

  /** What its policies offer after a failure. */
  get offers(): Offers {
    return this.offered ??= new Offers(this)
  }

  override record(error: unknown, info?: RetryInfo): void {
    this.offered = undefined
    super.record(error, info)
  }

  enters(fiber: AnyFiber): void {
    fiber.setContext(this.inside(fiber))
  }

  fails(error: unknown, fiber: AnyFiber): Effect.Effect<void> | undefined {
    fiber.setContext(this.environment.context)
    return this.failed(error)
  }

  turns(delayMillis: number): Effect.Effect<unknown, unknown, unknown> | undefined {
    const { offers: { cost, last, maxAttempts }, environment } = this
    const offered = last?.delayMillis === delayMillis && last.cost === cost ? last : undefined
    const untilMillis = this.offers.untilAfter(environment.nowMillis)
    const wait = this.retries({ cost, delayMillis, maxAttempts, untilMillis }, offered)
    // An observer may have interrupted the run: that is seen before the send is made.
    return wait ?? (environment.observer.onRetry && Effect.void)
  }

  expires(): Effect.Effect<never, unknown> {
    const end = Effect.fail(this.error)
    return after(this.stopped(this.stops(this.heldBack)), end) as typeof end
  }

  override complete(): void {
    this.isOver = true
    super.complete()
  }

  ends(exit: Exit.Exit<unknown, unknown>, fiber: AnyFiber): Effect.Effect<void> | undefined {
    fiber.setContext(this.environment.context)
    if (exit._tag === "Success") return this.succeeded(exit.value)
    // A stream without elements ends like this.
    if (this.isSent && isDoneCause(exit.cause)) return this.succeeded(undefined)
    const failure = firstIn(exit.cause)
    if (!this.isSent && !this.isOver && failure !== undefined) {
      const isRefused = this.attempt === 0
      if (isRefused) this.record(failure.error)
      const { holdMillis, reason = isRefused ? "vetoed" : "schedule" } = this.offers
      return this.stopped(this.stops(reason, holdMillis))
    }
    this.complete()
    return undefined
  }
}

/** One policy in one schedule. */
class Steps {
  private readonly compiled: Compiled
  /** What is offered in the step around this. */
  private around: Offers | undefined
  /** The run that began with the loop. */
  private run: Run | undefined = undefined
  /** The run that began with a failure. */
  private late: Driver | undefined = undefined
  private own: Decider | undefined = undefined
  private fallback: Fallback | undefined = undefined

  constructor(policy: Compiled, fiber: AnyFiber) {
    const { context } = fiber
    const compiled = this.compiled = policy.live?.(environmentOf(context).services) ?? policy
    const around = this.around = Context.get(context, CurrentOffers)
    const run = this.run = this.begun(fiber)
    // A limit of time counts from here.
    if (run !== undefined && (isTimed(compiled) || run.environment.propagated !== undefined)) {
      this.own = new Decider(compiled, run, around?.within?.startMillis, around?.within?.deadlineAtMillis).begins()
    }
  }

  /** The run of the loop that evaluates the schedule here. */
  private begun(fiber: AnyFiber): Run | undefined {
    const { around } = this
    const found = lookUp(fiber, around?.depthIn(fiber) ?? 0)
    if (found instanceof Driver) return found
    if (typeof found === "number") {
      const run = new Driver(environmentOf(fiber.context))
      begin(run, fiber, found)
      return run
    }
    if (around === undefined && !isSupported()) this.fallback = Fallback.begun(fiber)
    return around?.run
  }

  readonly step = (_now: number, error: unknown): any => Effect.withFiber((fiber: AnyFiber) => this.next(error, fiber))

  private next(error: unknown, fiber: AnyFiber): any {
    this.around = Context.get(fiber.context, CurrentOffers)
    const own = this.own ??= new Decider(
      this.compiled,
      this.runIn(error, fiber),
      undefined,
      this.around?.within?.deadlineAtMillis
    )
    const { run } = own
    this.fallback?.proves(run)
    const wait = run.isSent || run instanceof Repetition ? run.failed(error) : undefined
    this.joinsLate(fiber)
    const decided = () => chain<any>(own.answers(), (goes) => this.offered(own, goes))
    return wait === undefined ? decided() : Effect.flatMap(wait, decided)
  }

  /** A run that began with a failure is in the loop from its next step on, if there is one. */
  private joinsLate(fiber: AnyFiber): void {
    const { fallback, late } = this
    if (late === undefined || fallback !== undefined || joinLate(late, fiber)) return
    this.fallback = Fallback.begun(fiber, late)
  }

  /**
   * The run, as far as it can be seen when the schedule is first stepped. What steps it by hand through the numbers of
   * attempts, from 1, repeats a value, too.
   */
  private runIn(error: unknown, fiber: AnyFiber): Run {
    const { around, run } = this
    if (run instanceof Driver) return run
    const depth = around?.depthIn(fiber) ?? 0
    const by = drivenBy(fiber, depth)
    if (by === undefined && run !== undefined) return run
    if (by === "repetition" || (by === undefined && error === 1)) {
      return new Repetition(environmentOf(fiber.context))
    }
    const found = lookUp(fiber, depth)
    if (found instanceof Driver) return found
    const late = this.late = new Driver(environmentOf(fiber.context))
    late.record(error)
    return late
  }

  private offered(own: Decider, goes: boolean): any {
    const { run } = own
    const offers = run instanceof Driver ? run.offers : this.around?.run === run ? this.around : new Offers(run)
    if (goes) {
      const step = Effect.succeed([offers.add(own), Duration.millis(own.delayMillis)])
      return after(this.fallback?.charged(run, own), step)
    }
    const done = Cause.done<RetryDecision>(offers.refuse(own.reason, own.holdMillis))
    const result = after(this.fallback && run.stopped(own.stops()), done)
    // Inside a policy, that holds the caller.
    return own.holdMillis === 0 || run === this.around?.run
      ? result
      : Effect.andThen(Effect.sleep(own.holdMillis), result)
  }
}

export const toSchedule = (compiled: Compiled): DecidingSchedule =>
  Schedule.fromStep(Effect.withFiber((fiber: AnyFiber) => Effect.succeed(new Steps(compiled, fiber).step))) as any

/** Retries of Effect's own loops that cannot be seen are charged, but late. */
const unseenRetries =
  `Effect.retry is not as in Effect ${tried}: it asks no gate, and retries are charged early. Use withRetry`

/** The last run of each fiber in which no loop can be seen. */
const unseen = new WeakMap<AnyFiber, Fallback>()

/** Where no loop can be seen: a retry is charged when it is decided, and settled by what its fiber does next, or its end. */
class Fallback {
  private dueMillis = 0
  private isOpen = true

  constructor(private run: Run | undefined) {}

  static begun(fiber: AnyFiber, run?: Run): Fallback {
    if (!isSupported()) warn(environmentOf(fiber.context), unseenRetries)
    const before = unseen.get(fiber)
    if (before !== undefined) before.settles(true, fiber)
    else {
      fiber.addObserver((exit) => {
        unseen.get(fiber)?.settles(exit._tag === "Success", fiber)
        unseen.delete(fiber)
      })
    }
    const fallback = new Fallback(run)
    unseen.set(fiber, fallback)
    return fallback
  }

  /** The same run fails: the retry before it was sent, and failed. */
  proves(run: Run): void {
    if (this.run === run) run.sent()
    this.run = run
    this.isOpen = true
  }

  charged(run: Run, own: Decider): Effect.Effect<unknown, unknown, unknown> | undefined {
    this.dueMillis = run.environment.nowMillis + own.delayMillis
    return run.retries(own)
  }

  private settles(hasSucceeded: boolean, fiber: AnyFiber): void {
    const { isOpen, run } = this
    this.isOpen = false
    if (!isOpen) return
    if (run === undefined) {
      if (hasSucceeded) earn(environmentOf(fiber.context))
      return
    }
    if (run.environment.nowMillis >= this.dueMillis) run.permit?.sent()
    if (hasSucceeded) run.permit?.succeeded(undefined)
    run.complete()
  }
}

/** Any schedule as the source of a policy. Policies in it find the run, and offer instead of paying on their own. */
export const lifting = (schedule: Schedule.Schedule<any, any, any, any>): Source => ({
  isTimed: !isConstant(schedule),
  begin: (around) => {
    const { run } = around
    let step: ((now: number, error: unknown) => any) | undefined
    const next = Effect.suspend(() =>
      Effect.map(
        step!(run.wallMillis, run.error),
        ([, delay]: [unknown, Duration.Duration]) => Duration.toMillis(delay)
      )
    )
    const stepped = Effect.map(
      offered(around, () => catchDone(next, () => Effect.succeed(undefined))),
      ([delayMillis, offers]) => {
        if (delayMillis === undefined) return around.refuses(offers.reason ?? "schedule", offers.holdMillis)
        const untilMillis = offers.untilAfter(run.environment.nowMillis + delayMillis)
        return around.accepts({ cost: offers.cost, delayMillis, maxAttempts: offers.maxAttempts, untilMillis })
      }
    )
    return () =>
      step !== undefined ? stepped : Effect.flatMap(offered(around, () => Schedule.toStep(schedule)), ([begun]) => {
        step = begun
        return stepped
      })
  }
})

/** Runs part of a schedule, and collects what the policies in it offer. */
const offered = <A>(
  { deadlineAtMillis, run, startMillis }: Surrounding,
  part: () => Effect.Effect<A, unknown, unknown>
): Effect.Effect<readonly [A, Offers], unknown, unknown> =>
  Effect.withFiber((fiber: AnyFiber) => {
    const offers = new Offers(run, { fiber, depth: depthOf(fiber), startMillis, deadlineAtMillis })
    return Effect.map(Effect.provideService(part(), CurrentOffers, offers), (made) => [made, offers] as const)
  })
