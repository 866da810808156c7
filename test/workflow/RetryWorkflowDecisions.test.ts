import { assert, describe, it } from "@effect/vitest"
import { Backoff, InvalidOption, RetryInfo, RetryPolicy, RetryQuota, SendGate, withRetryOrElse } from "effect-retry"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import { fixedRandom, sweepQuota } from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import { budget } from "../utils/budget.ts"
import { database, engine, newProcess, start, timeUntil } from "./cluster.ts"
import { Down, down, failsUntil, order, type Run, waits } from "./orders.ts"

const steady = Backoff.fixed("20 millis").pipe(RetryPolicy.whileRetryable)

const failing = (facts?: RetryInfo.RetryInfo) => (attempt: number) => Effect.fail(down(attempt, facts))

describe("what is decided", () => {
  /** The same policy without a workflow: its waits, and why it stopped. */
  const inMemory = (
    policy: RetryPolicy.RetryPolicy<any, any, any>,
    answer: (attempt: number) => Effect.Effect<string, Down>
  ) =>
    Effect.gen(function*() {
      const waits: Array<number> = []
      let attempt = 0
      let ended = 0
      const call = Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        if (attempt++ > 0) waits.push(now - ended)
        yield* Effect.sleep(10)
        ended = yield* Clock.currentTimeMillis
        return yield* answer(attempt)
      })
      const fiber = yield* Effect.forkChild(
        withRetryOrElse(call, policy as RetryPolicy.RetryPolicy, (_error: Down, { attempts, info, reason }) =>
          Effect.succeed(`else ${reason} after ${attempts} (${info?.safety})`))
      )
      yield* timeUntil(() =>
        fiber.pollUnsafe() !== undefined
      )
      return { waits, end: yield* Fiber.join(fiber) }
    }).pipe(Effect.provide(TestClock.layer()))

  const throttled = RetryInfo.throttled("90 millis")
  const facts = [RetryInfo.transient, throttled, RetryInfo.make({ safety: "Maybe" }), RetryInfo.notRetryable, undefined]
  const policies = {
    "attempts end": steady.pipe(RetryPolicy.maxAttempts(3)),
    "several at once, one with a deadline": RetryPolicy.max([
      steady.pipe(RetryPolicy.maxAttempts(3), RetryPolicy.deadline("1 minute")),
      Schedule.recurs(5)
    ]),
    "a policy after the other": steady.pipe(
      RetryPolicy.maxAttempts(2),
      RetryPolicy.concat(RetryPolicy.maxAttempts(steady, 3))
    ),
    "one after the other": steady.pipe(RetryPolicy.maxAttempts(2), RetryPolicy.concat(Schedule.recurs(2))),
    "a growing delay": Backoff.exponential("10 millis", 2, { cap: "30 millis" }).pipe(
      RetryPolicy.maxAttempts(6),
      RetryPolicy.whileMaybeRetryable
    ),
    "a delay that depends on the one before": Backoff.decorrelated("10 millis", { cap: "200 millis" }).pipe(
      RetryPolicy.maxAttempts(5),
      RetryPolicy.whileRetryable
    ),
    "a hint": steady.pipe(RetryPolicy.honorRetryAfter(), RetryPolicy.maxAttempts(3)),
    "a hint that is too long": steady.pipe(
      RetryPolicy.honorRetryAfter({ atMost: "80 millis", beyond: "stop" }),
      RetryPolicy.maxAttempts(3)
    ),
    "a deadline": steady.pipe(RetryPolicy.deadline("100 millis")),
    "delays of a function": RetryPolicy.fromDelay(({ attempt, previous }) =>
      attempt > 3 ? undefined : Duration.sum(previous, Duration.millis(15))
    ),
    "a schedule": RetryPolicy.fromSchedule(Schedule.upTo(Schedule.exponential("10 millis"), { times: 3 })),
    "another policy for throttles": steady.pipe(
      RetryPolicy.whenThrottled(Backoff.linear("5 millis", { increment: "20 millis" })),
      RetryPolicy.maxAttempts(4)
    )
  }

  for (const [name, policy] of Object.entries(policies)) {
    it.effect(`is what withRetry decides: ${name}`, () =>
      Effect.gen(function*() {
        for (const fact of facts) {
          const answer = (attempt: number) => Effect.fail(down(attempt, attempt === 1 ? RetryInfo.transient : fact))
          const expected = yield* inMemory(policy, answer)
          const run = yield* order({ policy, answer })
          assert.deepStrictEqual(waits(run), expected.waits)
          assert.strictEqual(run.notified.at(-1), expected.end)
        }
      }).pipe(Effect.provide(fixedRandom(0.5))))
  }

  it.effect("draws its jitter once: a process that takes over waits for the same retry", () =>
    Effect.gen(function*() {
      const policy = Backoff.exponential("100 millis", 2, { jitter: "full" }).pipe(RetryPolicy.whileRetryable)
      const run = yield* order({
        policy,
        answer: failsUntil(2),
        death: { operation: 6, when: "after" },
        downMillis: 3
      })
      assert.isDefined(run.restarted, "nothing was killed")
      assert.strictEqual(run.sends.length, 2)
      assert.deepStrictEqual(run.notified, [`retry 1 in ${waits(run)[0]} for 0`])
    }).pipe(Effect.provide(fixedRandom(0.77))))
})

describe("a deadline", () => {
  const policy = steady.pipe(RetryPolicy.deadline("1 second"))

  it.effect("counts from the first start, including time without a process", () =>
    Effect.gen(function*() {
      const death = { operation: 8, when: "after" } as const
      const inTime = yield* order({ policy, answer: failsUntil(3), death, downMillis: 900 })
      assert.isDefined(inTime.restarted)
      assert.deepStrictEqual(inTime.exit, Exit.succeed("paid"))
      const late = yield* order({ policy, answer: failsUntil(3), death, downMillis: 1000 })
      assert.isDefined(late.restarted)
      assert.strictEqual(late.sends.length, 1)
      assert.deepStrictEqual(late.notified, ["retry 1 in 20 for 0", "deadline after 1", "else deadline after 1 (Yes)"])
    }))
})

describe("the quota", () => {
  const policy = steady.pipe(RetryPolicy.quotaGated({ cost: 5 }), RetryPolicy.maxAttempts(4))

  it.effect("is asked when the retry is due: a wait holds no tokens", () =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.make({ capacity: 20 })
      const clock = yield* Clock.Clock
      const balances: Array<number> = []
      const looked = (run: Run): boolean => {
        balances.push(quota.store.balance(clock))
        return run.sends.length === 5
      }
      const run = yield* order({
        policy,
        around: Layer.succeed(RetryQuota.RetryQuota, quota),
        until: looked
      })
      assert.deepStrictEqual(run.notified, ["retry 1 in 20 for 5", "retry 2 in 20 for 5", "retry 3 in 20 for 5"])
      assert.strictEqual(yield* quota.balance, 10)
      // Ten looks in each send, twenty in each wait.
      const changes = balances.filter((balance, index) => balance !== balances[index - 1])
      assert.deepStrictEqual(changes, [20, 15, 10, 5])
      assert.isAtLeast(balances.filter((balance) => balance === 20).length, 30)
    }))

  it.effect("ends the call when it refuses, after the wait, and says so once", () =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.make({ capacity: 9 })
      const run = yield* order({ policy, answer: failing(), around: Layer.succeed(RetryQuota.RetryQuota, quota) })
      assert.strictEqual(run.sends.length, 2)
      assert.deepStrictEqual(run.notified, [
        "retry 1 in 20 for 5",
        "retry 2 in 20 for 5",
        "quota-exhausted after 2",
        "else quota-exhausted after 2 (Yes)"
      ])
      assert.strictEqual(yield* quota.balance, 4)
    }))
})

describe("an interruption", () => {
  const Order = Workflow.make("Interrupted", {
    payload: Schema.Struct({ id: Schema.String }),
    idempotencyKey: ({ id }: { readonly id: string }) => id,
    success: Schema.String,
    error: Down
  })

  it.effect("of the process, wherever it comes, leaves no token behind", () => {
    const charge = Activity.make({
      name: "charge",
      success: Schema.String,
      error: Down,
      execute: Effect.flatMap(Activity.CurrentAttempt, (attempt) => Effect.delay(failsUntil(budget(3, 2))(attempt), 10))
    })
    const policy = steady.pipe(RetryPolicy.quotaGated({ cost: 5 }))
    const program = Order.execute({ id: "1" }).pipe(
      Effect.provide(
        Order.toLayer(() => RetryWorkflow.retryOrElse(charge, policy, Effect.fail)).pipe(
          Layer.provideMerge(WorkflowEngine.layerMemory)
        )
      )
    )
    return Effect.map(sweepQuota(program), (runs) => assert.isAbove(runs, 50))
  })
})

const errorOf = (exit: Exit.Exit<unknown, unknown>) => Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

class Closed extends Data.TaggedError("Closed")<{ readonly retryAfter: Duration.Duration }> {
  readonly [SendGate.Refused] = true
  override get message(): string {
    return "shut"
  }
}

describe("a gate", () => {
  class Door extends SendGate.Service<Door, Closed>()("test/RetryWorkflow/Door") {}

  /** Lets this many sends pass. */
  const passing = (sends: number) => {
    let asked = 0
    return SendGate.layer(Door, {
      name: "Door",
      order: 1,
      enter: (send) => {
        if (++asked > sends) return Effect.fail(new Closed({ retryAfter: Duration.minutes(2) }))
        return send.hold({ settle: () => undefined, cancel: () => undefined })
      }
    })
  }

  it.effect("may refuse a retry: the workflow ends with the error of its last attempt, and stores which gate", () =>
    Effect.gen(function*() {
      const run = yield* order({ policy: steady, around: passing(1) })
      assert.strictEqual(run.sends.length, 1)
      assert.deepStrictEqual(run.notified, ["retry 1 in 20 for 0", "vetoed after 1", "else vetoed after 1 (Door)"])
      assert.deepInclude(errorOf(run.exit!), { _tag: "Down", attempt: 1 })
    }))

  it.effect("may refuse a first send, and the workflow stores that", () =>
    Effect.gen(function*() {
      const run = yield* order({ policy: steady, around: passing(0) })
      assert.strictEqual(run.sends.length, 0)
      assert.deepStrictEqual(run.notified, ["vetoed after 1", "else vetoed after 1 (undefined)"])
      const error = errorOf(run.exit!)
      assert.instanceOf(error, RetryWorkflow.NotSent)
      assert.deepInclude(error, {
        _tag: "NotSent",
        refusal: "Closed",
        retryAfter: Duration.minutes(2),
        message: "shut"
      })
    }))

  it.effect("is notified of the outcome of each send", () =>
    Effect.gen(function*() {
      const outcomes: Array<string> = []
      const door = SendGate.layer(Door, {
        order: 1,
        enter: (send) =>
          send.hold({ settle: ({ _tag }) => outcomes.push(_tag), cancel: () => outcomes.push("canceled") })
      })
      yield* order({ policy: steady, around: door })
      assert.deepStrictEqual(outcomes, ["Failure", "Failure", "Failure", "Success"])
    }))
})

describe("a workflow that is suspended by its failures", () => {
  it.effect("makes the last attempt again when it is resumed", () =>
    Effect.gen(function*() {
      const Order = Workflow.make("Suspended", {
        payload: Schema.Struct({ id: Schema.String }),
        idempotencyKey: ({ id }: { readonly id: string }) => id,
        success: Schema.String,
        error: Schema.String
      }).annotate(Workflow.SuspendOnFailure, true)
      const attempts: Array<number> = []
      const charge = Activity.make({
        name: "charge",
        success: Schema.String,
        error: Schema.String,
        execute: Effect.gen(function*() {
          attempts.push(yield* Activity.CurrentAttempt)
          return attempts.length < 4 ? yield* Effect.fail("down") : "paid"
        })
      })
      const layer = Order.toLayer(() => RetryWorkflow.retry(charge, Backoff.fixed(20).pipe(RetryPolicy.maxAttempts(3))))
        .pipe(Layer.provideMerge(engine(newProcess(), yield* database)))
      const context = yield* start(layer)
      const execution = Order.execute({ id: "1" }).pipe(Effect.provideContext(context))
      const fiber = yield* Effect.forkChild(execution)
      yield* timeUntil(() => attempts.length === 3)
      yield* TestClock.adjust(1000)
      assert.isUndefined(fiber.pollUnsafe())
      yield* Effect.flatMap(Order.executionId({ id: "1" }), (id) => Order.resume(id)).pipe(
        Effect.provideContext(context),
        Effect.forkChild
      )
      yield* timeUntil(() => fiber.pollUnsafe() !== undefined)
      assert.deepStrictEqual(yield* Fiber.join(fiber), "paid")
      assert.deepStrictEqual(attempts, [1, 2, 3, 3])
    }))
})

describe("what is impossible", () => {
  const charge = Activity.make({ name: "charge", execute: Effect.void })

  it("is refused when it is given", () => {
    const refused = (make: () => unknown): InvalidOption | undefined => {
      try {
        make()
        return undefined
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        return error as InvalidOption
      }
    }
    assert.strictEqual(
      refused(() => RetryWorkflow.retry(charge, Schedule.forever as never))?.field,
      "policy"
    )
    assert.strictEqual(
      refused(() => RetryWorkflow.retry(charge, steady, { inMemoryThreshold: "soon" as never }))?.field,
      "inMemoryThreshold"
    )
    assert.strictEqual(
      refused(() => RetryWorkflow.retryOrElse(charge, Schedule.forever as never, Effect.fail))?.constructorName,
      "RetryWorkflow.retryOrElse"
    )
  })
})
