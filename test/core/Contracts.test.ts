/** The two contracts, whoever drives a call: a quota over any store, and any gate. */
import { assert, describe, it } from "@effect/vitest"
import {
  RetryClassifier,
  RetryPolicy,
  RetryPromise,
  retryPromise,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import { CurrentCriticality } from "effect-retry/Criticality"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { responseOf } from "../reliability/utils/http.ts"
import { thinned } from "../utils/sweep.ts"

type Policy = RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>

/** A send that a test counts, and ends as it chooses. */
type Sending = Effect.Effect<string, unknown>

interface Driver {
  readonly run: (send: Sending, policy: Policy) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>
  /** Whether the first send is made even if a gate refuses it, as in the loop of a strategy. */
  readonly sendsAnyway?: boolean
}

/** A call that returns a promise, with the services of the test. */
const promised = (call: (context: Context.Context<never>, signal: AbortSignal) => Promise<unknown>) =>
  Effect.contextWith((context: Context.Context<RetryQuota.RetryQuota>) =>
    Effect.flatten(
      Effect.promise((signal) =>
        call(context as Context.Context<never>, signal).then(Effect.succeed, (error: unknown) => Effect.fail(error))
      )
    )
  )

/** A function that sends, on the clock of the test. */
const sender =
  (context: Context.Context<never>, send: Sending): RetryPromise.AttemptFunction<unknown> => ({ signal }) =>
    Effect.runPromiseWith(context)(send, { signal })

const drivers: Readonly<Record<string, Driver>> = {
  "withRetry": { run: (send, policy) => withRetry(send, policy) },
  "withRetryOrElse": {
    run: (send, policy) => withRetryOrElse(send, policy, (error) => Effect.fail(error))
  },
  "Effect.retry": { run: (send, policy) => Effect.retry(send, policy) },
  "RetryStrategy.run": {
    run: (send, policy) => Effect.provide(RetryStrategy.run(send), RetryStrategy.layer(policy)),
    sendsAnyway: true
  },
  "retryPromise": {
    run: (send, policy) =>
      promised((context, signal) => retryPromise(sender(context, send), policy, { context, signal }))
  },
  "RetryPromise.make": {
    run: (send, policy) =>
      promised((context, signal) => RetryPromise.make(policy, { context })(sender(context, send), { signal }))
  },
  "RetryHttp.retry": {
    run: (send, policy) =>
      RetryHttp.retry(
        HttpClient.make((request) =>
          Effect.matchEffect(send, {
            onSuccess: () => Effect.succeed(responseOf({}, 200, request)),
            onFailure: (cause) => {
              const reason = new HttpClientError.TransportError({ request, cause })
              return Effect.fail(new HttpClientError.HttpClientError({ reason }))
            }
          })
        ),
        policy
      ).get("http://a/")
  }
}

/** Four attempts, 100 ms apart, of whatever fails. */
const policy: Policy = RetryPolicy.fromDelay(() => 100).pipe(
  RetryPolicy.maxAttempts(4),
  RetryPolicy.quotaGated({ cost: 1 })
)

class Lost extends Data.TaggedError("Lost")<{ readonly code: string }> {}

/** A call whose sends take 10 ms each: some are lost, then one is answered. */
const script = (losses: number) => {
  const call = { sends: 0, send: undefined as unknown as Sending }
  call.send = Effect.suspend(() =>
    Effect.andThen(
      Effect.sleep(10),
      call.sends++ < losses ? Effect.fail(new Lost({ code: "ECONNRESET" })) : Effect.succeed("answer")
    )
  )
  return call
}

const own = RetryClassifier.layer(RetryClassifier.network)

/** Runs an effect to its end. What it waits for may sleep in a fiber of its own. */
const ended = <A, E, R>(self: Effect.Effect<A, E, R>) => Kit.runToEnd(Effect.exit(self), { step: 10 })

const failureOf = (exit: Exit.Exit<unknown, unknown>): unknown => Exit.isFailure(exit) ? Cause.squash(exit.cause) : exit

/** A store that refuses everything. */
const store: RetryQuotaStore.RetryQuotaStore = {
  capacity: 10,
  successIncrement: 0,
  firstAttemptCost: 0,
  onExceeded: "stop",
  reserve: () => undefined,
  deposit: () => undefined,
  balance: () => 10
}

describe.each(Object.entries(drivers))("%s", (_, { run, sendsAnyway }) => {
  describe("a quota over a store", () => {
    const refusing: Readonly<Record<string, Partial<RetryQuotaStore.RetryQuotaStore>>> = {
      "always refuses": {},
      "is asked without success": { reserve: () => () => Effect.void },
      "waits without success": { onExceeded: "wait", reserve: () => () => Effect.sleep("1 second") }
    }
    for (const [name, changes] of Object.entries(refusing)) {
      it.effect(`that ${name} makes no retry`, () =>
        Effect.gen(function*() {
          const call = script(1)
          const quota = RetryQuota.fromStore({ ...store, ...changes })
          const exit = yield* ended(Effect.provideService(run(call.send, policy), RetryQuota.RetryQuota, quota))
          assert.isTrue(Exit.isFailure(exit))
          assert.strictEqual(call.sends, 1)
        }).pipe(Effect.provide(own)))
    }

    it.effect("that grants all settles each reservation once: spent, spent, given back", () =>
      Effect.gen(function*() {
        const settled: Array<string> = []
        const granting: RetryQuotaStore.RetryQuotaStore = {
          ...store,
          reserve: (cost) => {
            const place = settled.push("held") - 1
            const settle = (how: string) => () => {
              settled[place] += ` ${how}`
              return true
            }
            return { cost, sent: settle("sent"), giveBack: settle("back"), spend: settle("spent") }
          }
        }
        const call = script(3)
        const quota = RetryQuota.fromStore(granting)
        const exit = yield* ended(Effect.provideService(run(call.send, policy), RetryQuota.RetryQuota, quota))
        assert.isTrue(Exit.isSuccess(exit))
        assert.deepStrictEqual(settled, ["held sent spent", "held sent spent", "held sent back"])
      }).pipe(Effect.provide(own)))
  })

  it.effect("returns tokens that come when no caller waits for them", () =>
    Effect.gen(function*() {
      const settled: Array<string> = []
      let late = () => {}
      const reservation: RetryQuotaStore.Reservation = {
        cost: 1,
        giveBack: () => settled.push("back") > 0,
        spend: () => settled.push("spent") > 0
      }
      const quota = RetryQuota.fromStore({
        ...store,
        onExceeded: "wait",
        reserve: () => (_, hold) => {
          late = () => hold(reservation)
          return Effect.never
        }
      })
      const call = script(1)
      const waiting = Effect.provideService(run(call.send, policy), RetryQuota.RetryQuota, quota)
      const fiber = yield* Effect.forkChild(Effect.ensuring(waiting, flush), { startImmediately: true })
      yield* flush
      yield* TestClock.adjust("1 minute")
      yield* flush
      yield* Fiber.interrupt(fiber)
      late()
      assert.deepStrictEqual([call.sends, settled], [1, ["back"]])
    }).pipe(Effect.provide(own)))

  describe("a gate", () => {
    it.effect("is asked before every send, and sees every outcome once", () =>
      Effect.gen(function*() {
        const gate = new Gate(0)
        const call = script(2)
        const exit = yield* ended(Effect.provideService(run(call.send, policy), First, gate))
        assert.isTrue(Exit.isSuccess(exit))
        assert.deepStrictEqual(gate.seen, [
          "enter 1",
          "settle 1 Failure transient",
          "enter 2",
          "settle 2 Failure transient",
          "enter 3",
          "settle 3 Success"
        ])
        assert.deepStrictEqual(gate.values.slice(0, 2), [undefined, undefined])
        assert.strictEqual(gate.values[2], Exit.isSuccess(exit) && exit.value)
        assert.isDefined(gate.values[2])
      }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))

    for (const place of [1, 2]) {
      it.effect(`refuses ${place === 1 ? "the first send with an error of its own" : "a retry"}, and it is never sent`, () =>
        Effect.gen(function*() {
          const refusal = new Closed({ attempt: place })
          const gate = new Gate(0)
          gate.enter = (send) => {
            if (send.attempt === place) return Effect.fail(refusal)
            return Gate.prototype.enter.call(gate, send)
          }
          const call = script(place)
          const exit = yield* ended(Effect.provideService(run(call.send, policy), First, gate))
          assert.isTrue(Exit.isFailure(exit))
          const isSent = place === 1 && sendsAnyway === true
          assert.strictEqual(call.sends, isSent ? 1 : place - 1)
          const isOwn = place === 2 || isSent
          if (isOwn) assert.notStrictEqual(failureOf(exit), refusal)
          else assert.strictEqual(failureOf(exit), refusal)
          assert.deepStrictEqual(gate.seen, place === 1 ? [] : ["enter 1", "settle 1 Failure transient"])
          assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 500, capacity: 500, held: 0, waiting: 0 })
        }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))
    }

    it.effect("that refuses cancels the passes of those before it", () =>
      Effect.gen(function*() {
        const [first, second] = [new Gate(0), new Gate(1)]
        second.enter = (send) => Effect.delay(Effect.fail(new Closed({ attempt: send.attempt })), 50)
        const gates = [Layer.succeed(First, first), Layer.succeed(Second, second)] as const
        const call = script(1)
        yield* ended(Effect.provide(run(call.send, policy), Layer.mergeAll(...gates)))
        assert.strictEqual(call.sends, sendsAnyway === true ? 1 : 0)
        assert.deepStrictEqual(first.seen, ["enter 1", "cancel 1"])
      }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))

    it.effect("that makes a send wait delays it", () =>
      Effect.gen(function*() {
        const gate = new Gate(0)
        gate.delayMillis = 1000
        const call = script(1)
        const start = yield* Clock.currentTimeMillis
        const exit = yield* ended(Effect.provideService(run(call.send, policy), First, gate))
        assert.isTrue(Exit.isSuccess(exit))
        const took = (yield* Clock.currentTimeMillis) - start
        assert.isAtLeast(took, 2120)
        assert.isAtMost(took, 2200)
        assert.deepStrictEqual(gate.seen.length, 4)
      }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))

    it.effect("makes a retry wait no longer than until the deadline: it is never sent, and everything goes back", () =>
      Effect.gen(function*() {
        const gate = new Gate(0)
        const waiting = new Gate(1)
        const enter = waiting.enter.bind(waiting)
        waiting.enter = (send) => send.attempt === 1 ? enter(send) : Effect.never
        const gates = Layer.merge(Layer.succeed(Second, waiting), Layer.succeed(First, gate))
        const call = script(1)
        const start = yield* Clock.currentTimeMillis
        const limited = policy.pipe(RetryPolicy.deadline("3 seconds"))
        const exit = yield* ended(Effect.provide(run(call.send, limited), gates))
        const took = (yield* Clock.currentTimeMillis) - start
        assert.isAtLeast(took, 3000)
        assert.isAtMost(took, 3010)
        assert.strictEqual(call.sends, 1)
        assert.include(String(JSON.stringify(failureOf(exit))), "ECONNRESET")
        assert.deepStrictEqual(gate.seen, ["enter 1", "settle 1 Failure transient", "enter 2", "cancel 2"])
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 500, capacity: 500, held: 0, waiting: 0 })
      }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))

    for (const places of permutations([0, 1, 2])) {
      it.effect(`is not lost among others, merged as ${places.join(", ")}`, () =>
        Effect.gen(function*() {
          const log: Array<string> = []
          const layers = places.map((place) => {
            const gate = new Gate(place)
            // The others are asked after it has made the send wait.
            gate.delayMillis = place === 1 ? 5 : 0
            gate.log = (line) => log.push(`${place}: ${line}`)
            return SendGate.layer(services[2 - place]!, gate)
          })
          const [a, b, c] = layers as [Layer.Layer<First>, Layer.Layer<First>, Layer.Layer<First>]
          const merged = places[0]! < places[1]! ? Layer.merge(Layer.merge(a, b), c) : Layer.mergeAll(a, b, c)
          const call = script(1)
          yield* ended(Effect.provide(run(call.send, policy), merged))
          assert.deepStrictEqual(
            log,
            ["enter 1", "settle 1 Failure transient", "enter 2", "settle 2 Success"].flatMap((line) =>
              [0, 1, 2].map((place) => `${place}: ${line}`)
            )
          )
        }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))
    }

    it.effect("cancels a pass that comes when no caller waits for it", () =>
      Effect.gen(function*() {
        const gate = new Gate(0)
        let late = () => {}
        gate.enter = (send) => {
          late = () => Gate.prototype.enter.call(gate, send)
          return Effect.never
        }
        const call = script(0)
        const waiting = Effect.ensuring(Effect.provideService(run(call.send, policy), First, gate), flush)
        const fiber = yield* Effect.forkChild(waiting, { startImmediately: true })
        yield* flush
        yield* Fiber.interrupt(fiber)
        late()
        assert.deepStrictEqual([call.sends, gate.seen], [0, ["enter 1", "cancel 1"]])
      }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))

    it.effect("is asked though another has the same order", () =>
      Effect.gen(function*() {
        const gates = [new Gate(7), new Gate(7)] as const
        const merged = Layer.merge(Layer.succeed(Second, gates[1]), Layer.succeed(First, gates[0]))
        yield* ended(Effect.provide(run(script(0).send, policy), merged))
        for (const { seen } of gates) assert.deepStrictEqual(seen, ["enter 1", "settle 1 Success"])
      }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))

    it.effect("leaves no pass unsettled, at any step a call is interrupted", () =>
      Effect.gen(function*() {
        const gates = [new Gate(0), new Gate(1)] as const
        gates[1].delayMillis = 50
        const program = Effect.suspend(() => run(script(2).send, policy)).pipe(
          Effect.provideService(First, gates[0]),
          Effect.provide(SendGate.layer(Second, gates[1])),
          Effect.ensuring(flush)
        )
        let settled = 0
        let runs = 0
        const interruptions = yield* Kit.sweep(program, () =>
          Effect.gen(function*() {
            runs++
            for (const gate of gates) assert.deepStrictEqual(gate.unsettled, [])
            settled += gates[0].settled
            for (const gate of gates) gate.clear()
            const { balance, held } = yield* Kit.TestQuota.state
            assert.deepStrictEqual([held, balance > 400], [0, true])
            yield* Effect.orDie(Kit.TestQuota.setBalance(500))
          }), { step: 10 }).pipe(thinned(5))
        assert.isAbove(settled, runs)
        assert.isAbove(interruptions, 40)
      }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))
  })
})

it.effect("a gate sees each send under Effect.retry in the context around the retry, not in that of the retried effect", () =>
  Effect.gen(function*() {
    const seen: Array<string> = []
    const gate: SendGate.SendGate = {
      order: 0,
      enter: ({ context }) => void seen.push(Context.get(context, CurrentCriticality))
    }
    const send = Effect.provideService(script(2).send, CurrentCriticality, "critical")
    yield* ended(
      Effect.retry(send, policy).pipe(
        Effect.provideService(First, gate),
        Effect.provideService(CurrentCriticality, "sheddable")
      )
    )
    assert.deepStrictEqual(seen, ["sheddable", "sheddable", "sheddable"])
  }).pipe(Effect.provide([Kit.TestQuota.layer(), own])))

/** Lets the work that a promise started finish. */
const flush = Effect.promise(async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
})

/** Refuses a send. */
class Closed extends Data.TaggedError("Closed")<{ readonly attempt: number }> {
  readonly [SendGate.Refused] = true
}

class First extends SendGate.Service<First, unknown>()("test/First") {}
class Second extends SendGate.Service<Second, unknown>()("test/Second") {}
class Third extends SendGate.Service<Third, unknown>()("test/Third") {}
const services = [First, Second, Third] as ReadonlyArray<typeof First>

/** A gate that records what happens. */
class Gate implements SendGate.SendGate {
  readonly order: number
  readonly seen: Array<string> = []
  /** The values of the outcomes. */
  readonly values: Array<unknown> = []
  /** How many passes were settled or canceled. */
  settled = 0
  delayMillis = 0
  log = (line: string): unknown => this.seen.push(line)
  private readonly open = new Map<SendGate.Pass, string>()
  private wrong: Array<string> = []

  constructor(order: number) {
    this.order = order
  }

  enter(send: SendGate.Send): void | Effect.Effect<void, unknown> {
    if (this.delayMillis === 0) return this.pass(send)
    return Effect.andThen(Effect.sleep(this.delayMillis), Effect.sync(() => this.pass(send)))
  }

  /** Passes that were not settled, and those that were more than once. */
  get unsettled(): ReadonlyArray<string> {
    return [...this.open.values(), ...this.wrong]
  }

  clear(): void {
    this.settled = 0
    this.open.clear()
    this.wrong = []
  }

  private pass(send: SendGate.Send): void {
    const { attempt } = send
    this.log(`enter ${attempt}`)
    const ends = (line: string) => {
      this.settled++
      if (!this.open.delete(pass)) this.wrong.push(`again: ${line}`)
      this.log(line)
    }
    const pass: SendGate.Pass = {
      settle: ({ _tag, info, value }) => {
        this.values.push(value)
        ends(`settle ${attempt} ${_tag}${_tag === "Failure" ? info === undefined ? " unknown" : " transient" : ""}`)
      },
      cancel: () => ends(`cancel ${attempt}`)
    }
    this.open.set(pass, `open: ${attempt}`)
    send.hold(pass)
  }
}

function permutations(places: ReadonlyArray<number>): ReadonlyArray<ReadonlyArray<number>> {
  if (places.length === 0) return [[]]
  return places.flatMap((place) =>
    permutations(places.filter((other) => other !== place)).map((rest) => [place, ...rest])
  )
}
