/** Stores that must all grant a retry, by what is asked of each. */
import { assert, describe, it } from "@effect/vitest"
import { RetryQuota, type RetryQuotaStore } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { JoinedStore } from "../../src/quota/internal/joinedStore.ts"
import { gated } from "../utils/gated.ts"

type Store = RetryQuotaStore.RetryQuotaStore
type Reservation = RetryQuotaStore.Reservation

interface FakeOptions extends Partial<Store> {
  /** What it answers in turn; the last answer again and again. */
  readonly answers?: ReadonlyArray<"granted" | "refused" | RetryQuotaStore.Ask>
}

/** A store that records what is done to it. */
const fake = (name: string, log: Array<string>, { answers = ["granted"], ...options }: FakeOptions = {}) => {
  let asked = 0
  const reservation = (cost: number): Reservation => ({
    cost,
    sent: () => log.push(`${name} sent`),
    giveBack: () => log.push(`${name} back`) > 0,
    spend: () => log.push(`${name} spent`) > 0
  })
  const store: Store = {
    capacity: 100,
    successIncrement: 1,
    firstAttemptCost: 0,
    onExceeded: "stop",
    reserve: (cost) => {
      const answer = answers[Math.min(asked++, answers.length - 1)]!
      log.push(`${name} ${typeof answer === "string" ? answer : "asks"} ${cost}`)
      return answer === "granted" ? reservation(cost) : answer === "refused" ? undefined : answer
    },
    deposit: (tokens) => log.push(`${name} + ${tokens}`),
    balance: () => 50,
    ...options
  }
  return { store, reservation: reservation(5) }
}

const refused = (cost: number, balance: number) => ({ reason: `refused ${cost} of ${balance}` })

const joined = (...stores: ReadonlyArray<{ readonly store: Store }>) =>
  new JoinedStore(stores.map(({ store }) => store), refused)

/** An ask that is answered after this long, and says how long it may take. */
const slow =
  (log: Array<string>, millis: number, held: () => Reservation | undefined): RetryQuotaStore.Ask => (patience, hold) =>
    Effect.suspend(() => {
      log.push(`patience ${Duration.toMillis(patience)}`)
      return Effect.andThen(
        Effect.sleep(millis),
        Effect.sync((): RetryQuotaStore.Shortage => {
          const reservation = held()
          return reservation === undefined ? "refused" : hold(reservation)
        })
      )
    })

describe("stores that must all grant", () => {
  it.effect("each is notified that the retry is sent, and how it ends, once", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      for (const [verb, said] of [["giveBack", "back"], ["spend", "spent"]] as const) {
        const log: Array<string> = []
        const reservation = joined(fake("a", log), fake("b", log)).reserve(5, clock) as Reservation
        reservation.sent!()
        assert.isTrue(reservation[verb]())
        assert.isFalse(reservation.giveBack())
        assert.isFalse(reservation.spend())
        assert.deepStrictEqual(log, ["a granted 5", "b granted 5", "a sent", "b sent", `a ${said}`, `b ${said}`])
      }
    }))

  it.effect("a reservation is resized in all of them or in none, and only if each can", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const bucket = (initial: number) =>
        Effect.map(RetryQuota.make({ capacity: 100, initial }), ({ store }) => ({ store }))
      const [rich, poor] = [yield* bucket(100), yield* bucket(20)]
      const balances = () => [rich.store.balance(clock), poor.store.balance(clock)]
      const reservation = joined(rich, poor).reserve(5, clock) as Reservation
      const sizes = [[12, true], [21, false], [3, true], [20, true]] as const
      for (const [cost, expected] of sizes) {
        const before = reservation.cost
        assert.strictEqual(reservation.resize!(cost), expected)
        const holds = expected ? cost : before
        assert.strictEqual(reservation.cost, holds)
        assert.deepStrictEqual(balances(), [100 - holds, 20 - holds])
      }
      assert.isTrue(reservation.giveBack())
      assert.isFalse(reservation.resize!(1))
      assert.deepStrictEqual(balances(), [100, 20])
      assert.isUndefined((joined(rich, fake("without", [])).reserve(5, clock) as Reservation).resize)
    }))

  it.effect("one that granted, and refuses when it is asked again, refuses for all", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const log: Array<string> = []
      const held: Array<Reservation> = []
      const store = joined(
        fake("a", log),
        fake("b", log, { answers: ["granted", "refused"] }),
        fake("c", log, { answers: [slow(log, 10, () => undefined)] })
      )
      const ask = store.reserve(5, clock) as RetryQuotaStore.Ask
      assert.deepStrictEqual(log.splice(0), ["a granted 5", "b granted 5", "c asks 5", "a back", "b back"])
      assert.strictEqual(yield* ask(Duration.infinity, (reservation) => held.push(reservation)), "refused")
      assert.deepStrictEqual(log, ["a granted 5", "b refused 5", "a back"])
      assert.deepStrictEqual(held, [])
    }))

  it.effect("the one that is asked last has the patience that is left", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      yield* TestClock.adjust(700)
      const patiences = (patience: Duration.Duration, millis: number) =>
        Effect.gen(function*() {
          const log: Array<string> = []
          const held: Array<Reservation> = []
          const { reservation } = fake("x", [])
          const store = joined(
            fake("a", log, { answers: [slow(log, millis, () => reservation)] }),
            fake("b", log, { answers: [slow(log, 10, () => reservation)] })
          )
          const ask = store.reserve(5, clock) as RetryQuotaStore.Ask
          const fiber = yield* Effect.forkChild(ask(patience, (one) => held.push(one)), { startImmediately: true })
          yield* TestClock.adjust(1000)
          assert.isUndefined(yield* Fiber.join(fiber))
          assert.strictEqual(held.length, 1)
          return log.filter((line) => line.startsWith("patience"))
        })
      assert.deepStrictEqual(yield* patiences(Duration.millis(500), 200), ["patience 500", "patience 300"])
      assert.deepStrictEqual(yield* patiences(Duration.millis(500), 600), ["patience 500", "patience 0"])
      assert.deepStrictEqual(yield* patiences(Duration.infinity, 200), ["patience Infinity", "patience Infinity"])
    }))

  it.effect("what is granted after the ask was interrupted goes back", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const log: Array<string> = []
      const held: Array<Reservation> = []
      let late: ((reservation: Reservation) => void) | undefined
      const keeping: RetryQuotaStore.Ask = (_, hold) => {
        late = hold
        return Effect.never
      }
      const asked = fake("b", log, { answers: [keeping] })
      const ask = joined(fake("a", log), asked).reserve(5, clock) as RetryQuotaStore.Ask
      log.length = 0
      const fiber = yield* Effect.forkChild(ask(Duration.infinity, (one) => held.push(one)), {
        startImmediately: true
      })
      assert.deepStrictEqual(log.splice(0), ["a granted 5", "b asks 5"])
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(log.splice(0), ["a back"])
      late!(asked.reservation)
      assert.deepStrictEqual([log, held], [["b back"], []])
    }))

  it.effect("a deposit goes to those that take any, and are not full", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const log: Array<string> = []
      joined(
        fake("a", log, { successIncrement: 2 }),
        fake("b", log, { successIncrement: 1 }),
        fake("c", log, { successIncrement: 0 }),
        fake("d", log, { isFull: true }),
        fake("e", log, { isFull: false })
      ).deposit(10, clock)
      assert.deepStrictEqual(log, ["a + 10", "b + 5", "e + 5"])
    }))

  it.effect("has gates and a refresh only if a part has, and then all of them", () =>
    Effect.gen(function*() {
      const plain = joined(fake("a", []), fake("b", []))
      assert.deepStrictEqual([plain.gates, plain.refresh], [undefined, undefined])
      const log: Array<string> = []
      const gate = { name: "own", order: 7, enter: () => undefined }
      const store = joined(
        fake("a", [], { refresh: Effect.sync(() => log.push("a")) as never, gates: [gate] }),
        fake("b", []),
        fake("c", [], { refresh: Effect.sync(() => log.push("c")) as never, firstAttemptCost: 1 })
      )
      assert.deepStrictEqual(store.gates?.map(({ name, order }) => [name, order]), [["own", 7], ["RetryBudget", -1]])
      assert.isUndefined(yield* store.refresh!)
      assert.deepStrictEqual(log, ["a", "c"])
    }))

  describe("the fee of a first send", () => {
    const feeOf = (options: FakeOptions) => {
      const log: Array<string> = []
      const store = joined(fake("a", log, { firstAttemptCost: 2, ...options }))
      return Effect.map(gated(store.gates![0]!), (driven) => ({ ...driven, did: log }))
    }

    it.effect("is paid by a first send, and by no other", () =>
      Effect.gen(function*() {
        const { did, end, log, send } = yield* feeOf({})
        yield* send("retry", { attempt: 2 })
        end("retry")
        assert.deepStrictEqual(did, [])
        yield* send("first")
        end("first")
        assert.deepStrictEqual(did, ["a granted 2", "a sent", "a spent"])
        assert.deepStrictEqual(log, ["retry at 0", "first at 0"])
      }))

    it.effect("goes back if the send was never made", () =>
      Effect.gen(function*() {
        const { cancel, did, send } = yield* feeOf({})
        yield* send("first")
        cancel("first")
        assert.deepStrictEqual(did, ["a granted 2", "a back"])
      }))

    it.effect("is refused with what it costs and what is left", () =>
      Effect.gen(function*() {
        const { log, send } = yield* feeOf({ answers: ["refused"] })
        yield* send("first")
        assert.deepStrictEqual(log, ["first refused 2 of 50 at 0"])
      }))

    for (const grants of [true, false]) {
      it.effect(`waits for a store that has to be asked, which ${grants ? "grants" : "refuses"} it`, () =>
        Effect.gen(function*() {
          const asked: Array<string> = []
          const { reservation } = fake("a", asked)
          const { log, send } = yield* feeOf({ answers: [slow(asked, 10, () => grants ? reservation : undefined)] })
          const fiber = yield* send("first")
          assert.deepStrictEqual(log, [])
          yield* TestClock.adjust(10)
          assert.deepStrictEqual(log, [grants ? "first at 10" : "first refused 2 of 50 at 10"])
          assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
          assert.deepStrictEqual(asked, ["patience Infinity"])
        }))
    }
  })
})
