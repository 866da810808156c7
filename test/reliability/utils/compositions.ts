import { Backoff, RetryObserver, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"
import * as TestClock from "effect/testing/TestClock"
import { constantRandom, Terminal, Transient } from "../../utils/call.ts"
import { countedClock } from "./clocks.ts"
import { FirstGate, Ledger, SecondGate } from "./ledger.ts"
import { Chance } from "./random.ts"

type Program = Effect.Effect<unknown, unknown, any>

/** What happened in a program, to check that programs are not idle. */
export interface Played {
  readonly text: string
  readonly faults: ReadonlyArray<string>
  readonly sends: number
  readonly retries: number
  readonly wasInterrupted: boolean
}

/** Builds a random program, and counts what runs in it. */
class Writer {
  sends = 0
  running = 0
  readonly forked: Array<Fiber.Fiber<unknown, unknown>> = []
  private readonly chance: Chance

  constructor(chance: Chance) {
    this.chance = chance
  }

  program(depth: number): readonly [string, Program] {
    if (depth === 0 || this.chance.isLikely(0.05)) return ["send", this.send]
    const [text, inner] = this.program(depth - 1)
    const [otherText, other] = this.program(this.chance.below(depth))
    const millis = this.chance.below(300)
    const policy = this.policy()
    const times = this.chance.below(3)
    const drivers: ReadonlyArray<() => readonly [string, Program]> = [
      () => [`withRetry(${text})`, withRetry(inner, policy as any)],
      () => [`retry(${text})`, Effect.retry(inner, policy as any)],
      () => [`retryTimes${times}(${text})`, Effect.retry(inner, { schedule: policy as any, times })],
      () => [`strategy(${text})`, Effect.provide(RetryStrategy.run(inner), RetryStrategy.layer(policy as any))]
    ]
    const combinators: ReadonlyArray<() => readonly [string, Program]> = [
      () => [`race(${text}, ${otherText})`, Effect.race(inner, other)],
      () => [`raceFirst(${text}, ${otherText})`, Effect.raceFirst(inner, other)],
      () => [`all(${text}, ${otherText})`, Effect.all([inner, other], { concurrency: "unbounded" })],
      () => [`then(${text}, ${otherText})`, Effect.andThen(Effect.exit(inner), other)],
      () => [`timeout${millis}(${text})`, Effect.timeout(inner, millis)],
      () => [`uninterruptible(${text})`, Effect.uninterruptible(inner)],
      () => [`fork(${text}, ${otherText})`, this.fork(inner, other)]
    ]
    return this.chance.pick(this.chance.isLikely(0.6) ? drivers : combinators)()
  }

  private policy(): unknown {
    const delays = this.chance.isLikely(0.5)
      ? Backoff.fixed(this.chance.below(100))
      : Backoff.exponential(20, 2, { cap: 400 })
    const plain = delays.pipe(
      RetryPolicy.maxAttempts(2 + this.chance.below(3)),
      RetryPolicy.whileRetryable,
      RetryPolicy.quotaGated({ cost: 5 })
    )
    const limited = this.chance.isLikely(0.2) ? RetryPolicy.deadline(plain, 200) : plain
    return this.chance.isLikely(0.2) ? RetryPolicy.outermostOnly(limited as any) : limited
  }

  /** A send that succeeds, fails or dies, at once or after a while. */
  private readonly send: Program = Effect.suspend(() => {
    this.sends++
    const { chance } = this
    const kind = chance.next()
    const end: Program = kind < 0.3
      ? Effect.succeed("ok")
      : kind < 0.92
      ? Effect.fail(new Transient())
      : kind < 0.95
      ? Effect.fail(new Terminal())
      : Effect.die("a defect")
    const sent = chance.isLikely(0.4) ? end : Effect.andThen(Effect.sleep(chance.below(120)), end)
    return Effect.acquireUseRelease(
      Effect.sync(() => this.running++),
      () => sent,
      () => Effect.sync(() => this.running--)
    )
  })

  /** A fiber that the program joins, or leaves to end with it. */
  private fork(inner: Program, other: Program): Program {
    const joins = this.chance.isLikely(0.5)
    const isDetached = this.chance.isLikely(0.3)
    return Effect.flatMap(isDetached ? Effect.forkDetach(inner) : Effect.forkChild(inner), (fiber) => {
      this.forked.push(fiber)
      return joins ? Effect.andThen(Effect.exit(other), Fiber.join(fiber)) : other
    })
  }
}

const observers: ReadonlyArray<RetryObserver.RetryObserver> = [
  RetryObserver.none,
  RetryObserver.spanEvents,
  { onRetry: () => Effect.die("the observer"), onStop: () => Effect.die("the observer") },
  {
    onRetry: () => {
      throw new Error("the observer")
    }
  },
  { onRetry: () => Effect.sleep(15) }
]

/** Plays the program of a seed, which may be interrupted at any step. The same seed plays the same. */
export const play = (seed: number): Effect.Effect<Played> =>
  Effect.gen(function*() {
    const chance = new Chance(seed)
    const writer = new Writer(chance)
    const ledger = new Ledger()
    const quota = ledger.quota(chance, chance.isLikely(0.5))
    const [text, written] = writer.program(2 + chance.below(4))
    const clock = yield* countedClock
    const first = chance.isLikely(0.5)
      ? Effect.provideService(written, FirstGate, ledger.gate(chance, 10))
      : written
    const second = chance.isLikely(0.3) ? Effect.provideService(first, SecondGate, ledger.gate(chance, 20)) : first
    const program = second.pipe(
      Effect.provideService(RetryQuota.RetryQuota, quota),
      Effect.provideService(RetryObserver.CurrentObserver, chance.pick(observers)),
      Effect.provideService(Random.Random, constantRandom(chance.next())),
      Effect.provideService(Scheduler.MaxOpsBeforeYield, chance.pick([2048, 7, 3])),
      clock.provide
    ) as Effect.Effect<unknown, unknown>
    const root = yield* Effect.forkChild(program)
    const interrupts = chance.isLikely(0.5)
    for (let time = chance.below(12); time > 0; time--) yield* TestClock.adjust(chance.below(80))
    for (let steps = chance.below(60); steps > 0; steps--) yield* Effect.yieldNow
    const wasInterrupted = interrupts && root.pollUnsafe() === undefined
    if (wasInterrupted) root.interruptUnsafe()
    const living = () => [root, ...writer.forked].filter((fiber) => fiber.pollUnsafe() === undefined).length
    // Some fibers take three steps per turn.
    for (let turn = 0; turn < 10_000 && living() > 0; turn++) {
      yield* turn % 10 === 0 ? TestClock.adjust(20) : Effect.yieldNow
    }
    const alive = living()
    yield* TestClock.adjust("10 seconds")
    yield* quota.balance
    const left = { "fibers alive": alive, "sends running": writer.running, "timers": clock.asleep }
    const faults = [
      ...Object.entries(left).flatMap(([what, many]) => many === 0 ? [] : [`${what}: ${many}`]),
      ...ledger.faults
    ]
    return { text, faults, sends: writer.sends, retries: ledger.reservations.length, wasInterrupted }
  })
