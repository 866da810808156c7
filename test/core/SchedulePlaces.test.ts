/** Modules of Effect that take a schedule, with a policy: docs/extending.md, "Where Effect takes a schedule". */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, type RetryQuota } from "effect-retry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Entity from "effect/cluster/Entity"
import type { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as GraphQLClient from "effect/graphql/GraphQLClient"
import * as Layer from "effect/Layer"
import * as LayerRef from "effect/LayerRef"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as PersistedQueue from "effect/persistence/PersistedQueue"
import * as Resource from "effect/Resource"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import type * as DurableQueue from "effect/workflow/DurableQueue"
import * as Workflow from "effect/workflow/Workflow"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import { accountOf, type AnyPolicy, type Call, countingGate, type Drive, lineOf, noting } from "../utils/account.ts"
import type { Transient } from "../utils/call.ts"

type Free = RetryPolicy.RetryPolicy
type Paid = RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>

/** What a policy does there: seconds at which it is done; passes entered and settled; notifications. */
interface Place {
  readonly name: string
  readonly seconds: ReadonlyArray<number>
  readonly passes: string
  /** Not where steps are made by hand. */
  readonly notes?: string
  /** With a policy that retries only what its classifier reads as retryable. */
  readonly whileRetryable?: ReadonlyArray<number>
  readonly run: (act: Effect.Effect<number>, policy: Free) => Effect.Effect<unknown, unknown, Scope.Scope>
}

const refused = new Socket.SocketError({ reason: new Socket.SocketOpenError({ kind: "Unknown", cause: "refused" }) })
const closed = new Socket.SocketError({ reason: new Socket.SocketCloseError({ code: 1008 }) })
const order = Workflow.make("Order", { payload: {}, idempotencyKey: () => "1" })

const connecting = (error: Socket.SocketError): Place["run"] => (act, policy) =>
  RpcClient.makeProtocolSocket({ retryPolicy: policy }).pipe(
    Effect.andThen(Effect.never),
    Effect.provideService(
      Socket.Socket,
      Socket.make({
        reader: Effect.andThen(act, Effect.fail(error)),
        writer: Effect.succeed({ write: () => Effect.void, writeAll: () => Effect.void })
      })
    ),
    Effect.provide(RpcSerialization.layerJson)
  )

const charging = (end: Effect.Effect<never, { readonly status: number }>): Place["run"] => (act, policy) =>
  Activity.make({
    name: "charge",
    error: Schema.Struct({ status: Schema.Number }),
    execute: Effect.andThen(act, end),
    interruptRetryPolicy: policy
  }).execute.pipe(
    Effect.provideService(WorkflowEngine.WorkflowInstance, WorkflowEngine.WorkflowInstance.initial(order, "1")),
    Effect.provide(WorkflowEngine.layerMemory)
  )

const places: ReadonlyArray<Place> = [
  {
    name: "RpcClient retryPolicy",
    seconds: [0, 1, 3, 7],
    whileRetryable: [0, 1, 3, 7],
    passes: "4/4",
    notes: "- r0 - r0 - r0 - max-attempts",
    run: connecting(refused)
  },
  {
    name: "Activity interruptRetryPolicy",
    seconds: [0, 1, 3, 7],
    whileRetryable: [0],
    passes: "4/4",
    notes: "- r0 - r0 - r0 - max-attempts",
    run: charging(Effect.interrupt)
  },
  {
    name: "LayerRef invalidationSchedule",
    seconds: [0, 1, 3, 7],
    passes: "0/0",
    notes: "",
    run: (act, policy) =>
      Effect.andThen(
        LayerRef.make(Layer.effectDiscard(act), { preload: true, invalidationSchedule: policy }),
        Effect.never
      )
  },
  {
    name: "Resource.auto",
    seconds: [0, 1, 3, 7],
    whileRetryable: [0, 1, 3, 7],
    passes: "0/0",
    notes: "",
    run: (act, policy) => Effect.andThen(Resource.auto(act, policy), Effect.never)
  },
  {
    name: "PersistedQueue retrySchedule",
    seconds: [0, 1, 3, 7, 11],
    whileRetryable: [0, 1, 3, 7, 11],
    passes: "0/0",
    run: (act, policy) =>
      Effect.gen(function*() {
        const queue = yield* PersistedQueue.make({
          name: "orders",
          schema: Schema.String,
          maxAttempts: 5,
          retrySchedule: policy
        })
        yield* queue.offer("order")
        return yield* Effect.forever(Effect.exit(queue.take(() => Effect.andThen(act, Effect.fail("down")))))
      }).pipe(Effect.provide(Layer.provide(PersistedQueue.layer, PersistedQueue.layerStoreMemory)))
  },
  {
    name: "CircuitBreaker openDuration",
    seconds: [0, 1, 3, 7, 11],
    whileRetryable: [0, 1, 3, 7, 11],
    passes: "0/0",
    run: (act, policy) =>
      Effect.gen(function*() {
        const breaker = yield* CircuitBreaker.make({
          tripPolicy: CircuitBreaker.consecutive(1),
          openDuration: policy
        })
        const call = breaker.execute(Effect.andThen(act, Effect.fail("down")), { key: "orders" })
        for (let second = 0; second < 12; second++) {
          yield* Effect.delay(Effect.exit(call), second === 0 ? 0 : "1 second")
        }
      }).pipe(Effect.provide(CircuitBreaker.layerStoreMemory()))
  }
]

const policy = Backoff.exponential("1 second").pipe(RetryPolicy.maxAttempts(4))

describe("a policy as the schedule of", () => {
  const acts = ({ run }: Place, policy: Free) =>
    Effect.gen(function*() {
      const at: Array<number> = []
      const startMillis = yield* Clock.currentTimeMillis
      const act = Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => Effect.sync(() => at.push((now - startMillis) / 1000))
      )
      const { layer, passes } = countingGate()
      const { notes, observe } = noting()
      const fiber = yield* Effect.forkChild(Effect.scoped(Effect.provide(observe(run(act, policy)), layer)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.interrupt(fiber)
      return { at, passes: `${passes.entered}/${passes.settled}`, notes: notes.join(" ") }
    })

  for (const place of places) {
    it.effect(place.name, () =>
      Effect.gen(function*() {
        const { at, notes, passes } = yield* acts(place, policy)
        assert.deepStrictEqual([at, passes, notes], [place.seconds, place.passes, place.notes ?? notes])
        if (place.whileRetryable === undefined) return
        assert.deepStrictEqual((yield* acts(place, RetryPolicy.whileRetryable(policy))).at, place.whileRetryable)
      }))
  }
})

describe("what is retried in the place of", () => {
  const retried = (run: Place["run"], given: Free) =>
    Effect.gen(function*() {
      let times = 0
      const fiber = yield* Effect.forkChild(Effect.scoped(run(Effect.sync(() => ++times), given)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.interrupt(fiber)
      return times
    })
  const retryable = RetryPolicy.whileRetryable(policy)
  const interrupted = policy.pipe(RetryPolicy.while(({ error }) => Cause.isCause(error) && Cause.hasInterrupts(error)))

  it.effect("RpcClient: a connection that may come back, not one that was closed for a reason", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        [yield* retried(connecting(refused), retryable), yield* retried(connecting(closed), retryable)],
        [4, 1]
      )
    }))

  it.effect("Activity: any failure; with whileRetryable the first failure of the cause decides", () =>
    Effect.gen(function*() {
      const ends = [Effect.fail({ status: 503 }), Effect.fail({ status: 404 }), Effect.die("bug"), Effect.interrupt]
      const times = (given: Free) => Effect.forEach(ends, (end) => retried(charging(end), given))
      assert.deepStrictEqual(yield* times(policy), [4, 4, 4, 4])
      assert.deepStrictEqual(yield* times(retryable), [4, 1, 1, 1])
      assert.deepStrictEqual(yield* times(interrupted), [1, 1, 1, 4])
    }))

  it.effect("a loop of Effect: a number that is an error is one that no classifier knows", () =>
    Effect.gen(function*() {
      let times = 0
      yield* Effect.exit(Effect.retry(Effect.suspend(() => Effect.fail(++times)), retryable))
      assert.strictEqual(times, 1)
    }))
})

describe("a policy in a loop of one's own", () => {
  const paid = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated)
  type Step = (error: Transient) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>
  const looping = (call: Call, step: Step): Effect.Effect<string, Transient, RetryQuota.RetryQuota> =>
    Effect.catch(call, (error) =>
      Effect.matchEffect(step(error), {
        onFailure: () => Effect.fail(error),
        onSuccess: () => looping(call, step)
      }))
  const sleeping = (policy: AnyPolicy) => (call: Call) =>
    Effect.flatMap(Schedule.toStepWithSleep(policy), (step) => looping(call, step))
  const stepping = (policy: AnyPolicy) => (call: Call) =>
    Effect.flatMap(
      Schedule.toStep(policy),
      (step) => looping(call, (error) => Effect.flatMap(step(0, error), ([, delay]) => Effect.sleep(delay)))
    )

  const rows: ReadonlyArray<readonly [name: string, drive: Drive, account: string]> = [
    ["toStepWithSleep pays nothing", sleeping(paid), "0 100 200; 100; 0/0; "],
    ["toStep pays when it decides", stepping(paid), "0 100 200; 90; 0/0; r5 - r5 - max-attempts"],
    [
      "toStep of a RetryPolicy.max pays once",
      stepping(RetryPolicy.max([paid, paid])),
      "0 100 200; 90; 0/0; r5 - r5 - max-attempts"
    ],
    [
      "toStep of a Schedule.max pays each",
      stepping(Schedule.max([paid, paid])),
      "0 100 200; 85; 0/0; r5 r5 - r5 - r5 - max-attempts - max-attempts"
    ]
  ]

  for (const [name, drive, account] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        assert.strictEqual(lineOf(yield* accountOf(drive, 9)), account)
      }))
  }
})

/** Where no services are allowed, a policy with a quota does not compile: its quota would not be there. */
type Accepts<Options, Key extends keyof Options, Policy> = Policy extends NonNullable<Options[Key]> ? true : false
type Rows<Policy> = {
  readonly RpcClient: Accepts<NonNullable<Parameters<typeof RpcClient.makeProtocolSocket>[0]>, "retryPolicy", Policy>
  readonly GraphQLClient: Accepts<NonNullable<Parameters<typeof GraphQLClient.make>[1]>, "subscriptionRetry", Policy>
  readonly Activity: Accepts<Parameters<typeof Activity.make>[0], "interruptRetryPolicy", Policy>
  readonly Entity: Accepts<
    NonNullable<Parameters<Entity.Entity<string, never>["toLayer"]>[1]>,
    "defectRetryPolicy",
    Policy
  >
  readonly Sharding: Accepts<
    NonNullable<Parameters<Sharding["Service"]["registerEntity"]>[2]>,
    "defectRetryPolicy",
    Policy
  >
  readonly Workflow: Accepts<Workflow.Any, "suspendedRetrySchedule", Policy>
  readonly DurableQueue: Accepts<NonNullable<Parameters<typeof DurableQueue.process>[2]>, "retrySchedule", Policy>
  readonly PersistedQueue: Accepts<Parameters<typeof PersistedQueue.make>[0], "retrySchedule", Policy>
  readonly CircuitBreaker: Accepts<Parameters<typeof CircuitBreaker.make>[0], "openDuration", Policy>
}

it("a policy that pays does not compile where no services are allowed", () => {
  const free: Rows<Free> = {
    RpcClient: true,
    GraphQLClient: true,
    Activity: true,
    Entity: true,
    Sharding: true,
    Workflow: true,
    DurableQueue: true,
    PersistedQueue: true,
    CircuitBreaker: true
  }
  const paid: Rows<Paid> = {
    RpcClient: false,
    GraphQLClient: false,
    Activity: false,
    Entity: false,
    Sharding: false,
    Workflow: false,
    DurableQueue: false,
    PersistedQueue: false,
    CircuitBreaker: false
  }
  assert.deepStrictEqual(Object.keys(free), Object.keys(paid))
})
