/**
 * Random programs: policies of up to three kinds of joins and eight other combinators, under ten forms of a retry, with
 * gates that wait and interruptions at any time. What tokens, passes and notifications come to is compared with an
 * oracle that sees only how the retried effect itself begins and ends, and what each of its retries costs.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  Backoff,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  withRetry
} from "effect-retry"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { Chance } from "../reliability/utils/random.ts"
import type { AnyPolicy } from "../utils/account.ts"
import { budget } from "../utils/budget.ts"
import { Transient } from "../utils/call.ts"

const seed = process.env["SEED"]

class Gate extends SendGate.Service<Gate>()("test/RetryPrograms") {}

type Send = Effect.Effect<number, Transient>
type Form = (send: Send, policy: AnyPolicy, chance: Chance) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>

const named = Effect.fn("send")(
  function*(send: Send, _policy: AnyPolicy) {
    return yield* send
  },
  (self, _send, policy) => Effect.retry(self, policy)
)

const forms: ReadonlyArray<readonly [name: string, form: Form]> = [
  ["withRetry", (send, policy) => withRetry(send, policy)],
  ["Effect.retry", (send, policy) => Effect.retry(send, policy)],
  [
    "{ schedule, times }",
    (send, policy, chance) => Effect.retry(send, { schedule: policy, times: 1 + chance.below(3) })
  ],
  [
    "{ schedule, while }",
    (send, policy, chance) => Effect.retry(send, { schedule: policy, while: () => chance.isLikely(0.9) })
  ],
  [
    "retryOrElse",
    (send, policy, chance) =>
      Effect.retryOrElse(
        send,
        policy,
        () => chance.isLikely(0.5) ? Effect.fail(new Transient()) : Effect.as(Effect.sleep(100), 1)
      )
  ],
  ["uninterruptible", (send, policy) => Effect.uninterruptible(Effect.retry(send, policy))],
  ["timeout", (send, policy) => Effect.timeout(Effect.retry(send, policy), 1500)],
  ["Effect.fn", named],
  [
    "scoped",
    (send, policy) =>
      Effect.scoped(Effect.andThen(Effect.addFinalizer(() => Effect.sleep(10)), Effect.retry(send, policy)))
  ],
  [
    "scoped withRetry",
    (send, policy) =>
      Effect.scoped(Effect.andThen(Effect.addFinalizer(() => Effect.sleep(10)), withRetry(send, policy)))
  ]
]

/** Policies that chance has made. */
class Policies {
  private readonly chance: Chance
  private readonly costs: ReadonlyArray<number>
  /** Whether Effect begins a part of the last one at a failure: then what was sent before it is not seen. */
  isLate = false

  constructor(chance: Chance) {
    this.chance = chance
    this.costs = chance.isLikely(0.2) ? [0] : [3, 5, 7]
  }

  make(): AnyPolicy {
    this.isLate = false
    return this.around(this.leaf(), 2)
  }

  private leaf(): AnyPolicy {
    const { chance, costs } = this
    const base: AnyPolicy = chance.pick([
      () => Backoff.exponential(100),
      () => Backoff.fixed(300),
      () => Backoff.fixed(0)
    ])().pipe(RetryPolicy.maxAttempts(1 + chance.below(4)))
    const gated = chance.isLikely(0.8) ? RetryPolicy.quotaGated(base, { cost: chance.pick(costs) }) : base
    return chance.isLikely(0.2) ? RetryPolicy.deadline(gated, 200 + chance.below(2000)) : gated
  }

  private concat(first: AnyPolicy, then: AnyPolicy): AnyPolicy {
    this.isLate = true
    return Schedule.concat(first, then)
  }

  private around(policy: AnyPolicy, deep: number): AnyPolicy {
    const { chance } = this
    return chance.pick<() => AnyPolicy>([
      () => policy,
      () => policy,
      () => policy,
      () => Schedule.upTo(policy, { times: 1 + chance.below(3) }),
      () => Schedule.jittered(policy),
      () => Schedule.addDelay(policy, () => Effect.as(Effect.sleep(chance.isLikely(0.3) ? 20 : 0), 10)),
      () => Schedule.tap(policy, () => chance.isLikely(0.2) ? Effect.sleep(30) : Effect.void),
      () => Schedule.while(policy, () => Effect.succeed(chance.isLikely(0.8))),
      () => Schedule.map(policy, () => Effect.succeed(1)),
      () => Schedule.max([policy, Schedule.recurs(chance.below(4))]),
      () => Schedule.min([policy, Schedule.recurs(chance.below(2))]),
      () => Schedule.max([policy, this.leaf()]),
      () => Schedule.min([policy, this.leaf()]),
      () => this.concat(policy, this.leaf()),
      () => RetryPolicy.max([policy, this.leaf()]),
      () => RetryPolicy.min([policy, this.leaf()]),
      () => RetryPolicy.concat(policy, this.leaf()),
      () => RetryPolicy.concat(Schedule.recurs(1), policy),
      () => RetryPolicy.capped(policy, 150),
      () => RetryPolicy.while(policy, () => chance.isLikely(0.9)),
      ...deep > 0 ? Array.from({ length: 3 }, () => () => this.around(this.around(policy, deep - 1), deep - 1)) : []
    ])()
  }
}

const faults = [
  "the store loses what goes back",
  "the store adds what goes back twice",
  "the store gives back what is spent",
  "the store takes no deposits",
  "the gate keeps a pass",
  "the observer counts each retry twice",
  "the observer misses a success",
  "the observer misses a failure",
  "the observer counts each stop twice"
] as const
type Fault = (typeof faults)[number]

/** A store with no part that may be left out. */
class Purse implements RetryQuotaStore.RetryQuotaStore {
  readonly capacity = 1000
  readonly successIncrement = 1
  readonly firstAttemptCost = 0
  readonly onExceeded = "stop"
  private tokens = 500
  private readonly fault: Fault | undefined

  constructor(fault: Fault | undefined) {
    this.fault = fault
  }

  reserve(cost: number): RetryQuotaStore.Reservation {
    this.tokens -= cost
    let isSettled = false
    const settle = (back: number) => {
      if (isSettled) return false
      isSettled = true
      this.tokens += back
      return true
    }
    const back = this.fault === "the store loses what goes back"
      ? 0
      : this.fault === "the store adds what goes back twice"
      ? 2 * cost
      : cost
    return {
      cost,
      giveBack: () => settle(back),
      spend: () => settle(this.fault === "the store gives back what is spent" ? cost : 0)
    }
  }

  deposit(tokens: number): void {
    if (this.fault !== "the store takes no deposits") this.tokens += tokens
  }

  balance(): number {
    return this.tokens
  }
}

/** What the oracle sees of a call, and what observers do. */
class Ledger {
  readonly form: string
  readonly isLate: boolean
  sends = 0
  ok = 0
  failed = 0
  spent = 0
  exit: Exit.Exit<unknown, unknown> | undefined
  readonly seen = { retries: 0, stops: 0, successes: 0, failures: 0 }
  private cost = 0

  constructor(form: string, isLate: boolean) {
    this.form = form
    this.isLate = isLate
  }

  readonly observer = (fault: Fault | undefined): RetryObserver.RetryObserver => ({
    onRetry: ({ cost }) => {
      this.seen.retries += fault === "the observer counts each retry twice" ? 2 : 1
      this.cost = cost
    },
    onStop: () => {
      this.seen.stops += fault === "the observer counts each stop twice" ? 2 : 1
    },
    onAttempt: (succeeded) => {
      if (succeeded) this.seen.successes += fault === "the observer misses a success" ? 0 : 1
      else this.seen.failures += fault === "the observer misses a failure" ? 0 : 1
    }
  })

  /** The tokens of the last retry are spent unless its send succeeds. */
  sending(body: Send): Send {
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        this.sends++
        const { cost } = this
        this.cost = 0
        return Effect.onExit(restore(body), (exit) =>
          Effect.sync(() => {
            if (Exit.isSuccess(exit)) return this.ok++
            this.spent += cost
            return Cause.hasFails(exit.cause) && !Cause.hasDies(exit.cause) && this.failed++
          }))
      })
    )
  }

  private get isFailure(): boolean {
    return this.exit !== undefined && Exit.isFailure(this.exit) &&
      this.exit.cause.reasons.every((reason) => Cause.isFailReason(reason) && reason.error instanceof Transient)
  }

  private get isSeen(): boolean {
    const { failed, isLate, ok, seen, sends } = this
    if (isLate) return seen.successes <= ok && seen.failures <= failed && seen.retries <= sends
    // A retry of which observers were notified may be refused or interrupted before it is sent.
    const isRetried = seen.retries === Math.max(0, sends - 1) || (seen.retries === sends && sends > 0)
    return seen.successes === ok && seen.failures === failed && isRetried
  }

  private get isStopped(): boolean {
    const { isFailure, isLate, ok, seen } = this
    return isFailure && !isLate ? seen.stops === 1 : seen.stops <= (ok > 0 ? 0 : 1)
  }

  /** A call that succeeds without a retry deposits a token, if its first send is seen. */
  get deposits(): readonly [least: number, most: number] {
    const most = this.ok > 0 && this.sends === 1 ? 1 : 0
    return [this.isLate ? 0 : most, most]
  }

  get wrong(): ReadonlyArray<string> {
    const { failed, form, ok, seen, sends } = this
    if (this.isSeen && this.isStopped) return []
    return [`${form}: sent ${sends}, ${ok} successes, ${failed} failures; seen: ${JSON.stringify(seen)}`]
  }
}

interface Outcome {
  readonly sends: number
  readonly interrupted: number
  readonly wrong: ReadonlyArray<string>
}

/** Three calls of one quota. */
const run = (chance: Chance, quota: Layer.Layer<RetryQuota.RetryQuota>, fault?: Fault): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const policies = new Policies(chance)
    let held = 0
    const pass: SendGate.Pass = {
      settle: () => {
        if (fault !== "the gate keeps a pass") held--
      },
      cancel: () => {
        held--
      }
    }
    const gate: SendGate.SendGate<never> = {
      order: 50,
      enter: (send) => {
        const hold = () => {
          held++
          send.hold(pass)
        }
        return chance.isLikely(0.7) ? hold() : Effect.andThen(Effect.sleep(chance.below(200)), Effect.sync(hold))
      }
    }
    const gates = chance.isLikely(0.5) ? SendGate.layer(Gate, gate) : Layer.empty
    const body: Send = Effect.gen(function*() {
      if (chance.isLikely(0.5)) yield* Effect.sleep(chance.below(1500))
      const outcome = chance.next()
      if (outcome < 0.55) return yield* new Transient()
      return outcome < 0.58 ? yield* Effect.die("defect") : 1
    })
    const calls = Array.from({ length: 3 }, () => {
      const [name, form] = chance.pick(forms)
      const policy = policies.make()
      const ledger = new Ledger(name, policies.isLate)
      const call = Effect.exit(form(ledger.sending(body), policy, chance)).pipe(
        Effect.tap((exit) => Effect.sync(() => ledger.exit = exit)),
        Effect.provideService(RetryObserver.CurrentObserver, ledger.observer(fault)),
        Effect.provide(gates)
      )
      return { ledger, call }
    })
    const fibers = yield* Effect.forEach(calls, ({ call }) => Effect.forkChild(call))
    let interrupted = 0
    for (let turn = 0; turn < 6; turn++) {
      yield* TestClock.adjust(chance.below(700))
      if (!chance.isLikely(0.4)) continue
      interrupted++
      yield* Effect.forkChild(Fiber.interrupt(chance.pick(fibers)))
    }
    for (let turn = 0; turn < 20; turn++) yield* TestClock.adjust("2 seconds")
    const balance = yield* RetryQuota.balance
    const sum = (of: (ledger: Ledger) => number) => calls.reduce((sum, { ledger }) => sum + of(ledger), 0)
    const spent = sum((ledger) => ledger.spent)
    const least = 500 - spent + sum(({ deposits }) => deposits[0])
    const most = 500 - spent + sum(({ deposits }) => deposits[1])
    const wrong = calls.flatMap(({ ledger }) => ledger.wrong)
    if (fibers.some((fiber) => fiber.pollUnsafe() === undefined)) wrong.push("a call has not ended")
    if (balance < least || balance > most) wrong.push(`${balance} tokens, not ${least} to ${most}`)
    if (held !== 0) wrong.push(`${held} passes are held`)
    return { sends: sum((ledger) => ledger.sends), interrupted, wrong }
  }).pipe(Effect.provide(quota))

const bucket = RetryQuota.layer({ capacity: 1000, initial: 500 })
const purse = (fault?: Fault) => RetryQuota.layerStore(Effect.sync(() => new Purse(fault)))

/** Programs of these seeds: the sum of what they did, and what was wrong with which. */
const all = (programs: number, quota: Layer.Layer<RetryQuota.RetryQuota>, fault?: Fault) =>
  Effect.gen(function*() {
    const sum = { sends: 0, interrupted: 0, wrong: Array<string>() }
    const seeds = seed === undefined ? Array.from({ length: programs }, (_, n) => n) : [Number(seed)]
    for (const seed of seeds) {
      const { interrupted, sends, wrong } = yield* run(new Chance(seed), quota, fault)
      sum.sends += sends
      sum.interrupted += interrupted
      if (wrong.length > 0) sum.wrong.push(`SEED=${seed}: ${wrong.join("; ")}`)
    }
    return sum
  })

describe("random programs", () => {
  it.effect("tokens, passes and notifications are those of the oracle", () =>
    Effect.gen(function*() {
      const programs = budget(6000, 300)
      const { interrupted, sends, wrong } = yield* all(programs, bucket)
      assert.deepStrictEqual(wrong.slice(0, 5), [], `${wrong.length} of ${programs}`)
      // They are what they are meant to be: each of them with some sends, most with an interruption.
      if (seed === undefined) assert.isTrue(sends > 4 * programs && interrupted > 2 * programs)
    }))

  it.effect("also over a store whose reservations have one size", () =>
    Effect.gen(function*() {
      const programs = budget(1000, 100)
      const { wrong } = yield* all(programs, purse())
      assert.deepStrictEqual(wrong.slice(0, 5), [], `${wrong.length} of ${programs}`)
    }))

  for (const fault of faults) {
    it.effect(`the oracle finds that ${fault}`, () =>
      Effect.gen(function*() {
        const { wrong } = yield* all(40, purse(fault), fault)
        assert.isAbove(wrong.length, 0)
      }))
  }
})
