/** The gate of a cool-down, driven by hand: what the public tests cannot see to the step. */
import { assert, describe, it } from "@effect/vitest"
import { RetryInfo } from "effect-retry"
import type * as CoolDown from "effect-retry/CoolDown"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { CoolDownGate, type Peers, validated } from "../../src/gates/internal/coolDownGate.ts"
import { countedClock } from "../reliability/utils/clocks.ts"
import { constantRandom } from "../utils/call.ts"
import { gated } from "../utils/gated.ts"

const subject = (options: CoolDown.Options = {}, random = 0.5) =>
  Effect.suspend(() => gated(new CoolDownGate(validated({ spread: 0, ...options }), constantRandom(random))))

type Subject = Effect.Success<ReturnType<typeof subject>>

const hint = (millis: number) => ({ info: RetryInfo.make({ throttling: true, retryAfter: Duration.millis(millis) }) })
const throttled = { info: RetryInfo.make({ throttling: true }) }

/** Processes of a fleet that answer as instructed. */
class FakePeers implements Peers {
  readonly told: Array<string> = []
  asked = 0
  may = false
  isAsked = false
  sent(): void {
    this.told.push("sent")
  }
  closed(untilMillis: number): void {
    this.told.push(`closed until ${untilMillis}`)
  }
  mayOpen(): boolean {
    this.asked++
    if (!this.may) this.isAsked = true
    return this.may
  }
  opened(): void {
    this.told.push("opened")
  }
}

describe("the gate of a cool-down", () => {
  it.effect("is strained from the hint until it is free again", () =>
    Effect.gen(function*() {
      const { end, gate, send } = yield* subject()
      const seen = [gate.isStrained()]
      gate.close(0, 100)
      seen.push(gate.isStrained())
      yield* TestClock.adjust(100)
      yield* send("a")
      seen.push(gate.isStrained())
      end("a")
      seen.push(gate.isStrained())
      assert.deepStrictEqual(seen, [false, true, true, false])
      assert.strictEqual(gate.name, "CoolDown")
    }))

  it.effect("opens somewhere in the spread after the hint, whatever the clock shows", () =>
    Effect.gen(function*() {
      const { gate, log, send } = yield* subject({ spread: 0.5 })
      yield* TestClock.adjust(1000)
      gate.close(1000, 400)
      yield* send("a")
      yield* TestClock.adjust(499)
      assert.deepStrictEqual(log, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log, ["a at 1500"])
    }))

  it.effect("lets one pass, then one more with each success; a throttle sets it back to one, another failure does not", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject({ maxWait: "1 minute" })
      gate.close(0, 100)
      for (const name of "abcdefghijk") yield* send(name)
      const after = (step: () => void) =>
        Effect.gen(function*() {
          log.length = 0
          step()
          yield* TestClock.adjust(20)
          return log.map((line) => line[0]).join("")
        })
      assert.strictEqual(yield* after(() => {}), "")
      yield* TestClock.adjust(80)
      assert.deepStrictEqual(log, ["a at 100"])
      assert.strictEqual(yield* after(() => end("a")), "bc")
      assert.strictEqual(yield* after(() => end("b", "Failure")), "d")
      assert.strictEqual(yield* after(() => end("c", "Failure", throttled)), "")
      assert.strictEqual(yield* after(() => end("d")), "ef")
      assert.strictEqual(yield* after(() => end("e", "Unknown")), "g")
      assert.strictEqual(yield* after(() => end("f", "Failure", { info: undefined })), "h")
    }))

  it.effect("a waiter passes in the step in which the one before ends, if its gap is over", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject()
      gate.close(0, 100)
      for (const name of "abc") yield* send(name)
      yield* TestClock.adjust(110)
      end("a")
      assert.deepStrictEqual(log, ["a at 100", "b at 110"])
    }))

  it.effect("a probe that was never made makes way for the next immediately", () =>
    Effect.gen(function*() {
      const { cancel, gate, log, send } = yield* subject({ spread: 1 })
      gate.close(0, 100)
      for (const name of "ab") yield* send(name)
      yield* TestClock.adjust(150)
      assert.deepStrictEqual(log, ["a at 150"])
      cancel("a")
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(log, ["a at 150", "b at 150"])
    }))

  for (const how of ["end", "cancel"] as const) {
    it.effect(`a send from before the hint frees no place: ${how}`, () =>
      Effect.gen(function*() {
        const { gate, log, send, ...subjected } = yield* subject()
        for (const name of ["early", "earlier"]) yield* send(name)
        gate.close(0, 100)
        subjected[how]("early")
        for (const name of "abcd") yield* send(name)
        yield* TestClock.adjust(110)
        subjected[how]("earlier")
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(log.slice(2), ["a at 100"])
        subjected.end("a")
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(log.slice(3), ["b at 210", "c at 211"])
      }))
  }

  it.effect("none overtakes a waiter, whatever time it is given", () =>
    Effect.gen(function*() {
      const { gate, log, send } = yield* subject()
      gate.close(0, 100)
      yield* send("a")
      yield* send("b", { nowMillis: 100 })
      assert.deepStrictEqual(log, [])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(log, ["a at 100"])
    }))

  it.effect("those refused while it is closed will come back: it opens step by step for them too", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject({ maxWait: 50 })
      gate.close(0, 100)
      for (const name of "abc") yield* send(name)
      assert.deepStrictEqual(log.splice(0), ["a closed at 0", "b closed at 0", "c closed at 0"])
      yield* TestClock.adjust(100)
      for (const name of "de") {
        yield* send(name)
        assert.strictEqual(gate.phase, "opening")
        end(name)
        yield* TestClock.adjust(1)
      }
      assert.deepStrictEqual(log, ["d at 100", "e at 101"])
      assert.strictEqual(gate.phase, "free")
    }))

  describe("the number of sends that were wanted", () => {
    /** Of five sends while it is closed, the last three leave; then one probe succeeds. */
    const afterProbe = (options: CoolDown.Options, leave: (of: Subject) => Effect.Effect<void>) =>
      Effect.gen(function*() {
        const of = yield* subject({ maxWait: "1 minute", ...options })
        const { end, gate, send } = of
        gate.close(0, 100)
        for (const name of "ab") yield* send(name)
        yield* leave(of)
        yield* TestClock.adjust(102)
        end("a")
        yield* TestClock.adjust(1)
        end("b")
        return gate.phase
      })

    it.effect("an interrupted send no longer counts: the gate opens as if it had not come", () =>
      Effect.gen(function*() {
        const phase = yield* afterProbe(
          {},
          ({ fork, enter }) =>
            Effect.forEach("cde", (name) => Effect.flatMap(fork(enter(name)), Fiber.interrupt), { discard: true })
        )
        assert.strictEqual(phase, "free")
      }))

    it.effect("a send that never begins to wait does not count", () =>
      Effect.gen(function*() {
        assert.strictEqual(
          yield* afterProbe({}, ({ enter }) => Effect.sync(() => void [..."cde"].map((name) => enter(name)))),
          "free"
        )
      }))

    const refusals: Record<string, readonly [CoolDown.Options, (of: Subject) => Effect.Effect<unknown>]> = {
      "finds the gate closed for longer than it may wait": [{}, ({ gate, send }) =>
        Effect.suspend(() => {
          gate.change(validated({ maxWait: 50, spread: 0 }))
          return Effect.forEach("cde", (name) => send(name))
        })],
      "finds the queue full": [{ maxWaiters: 2 }, ({ send }) => Effect.forEach("cde", (name) => send(name))],
      "is displaced by a more critical one": [{ maxWaiters: 5 }, ({ send }) =>
        Effect.andThen(
          Effect.forEach("cde", (name) => send(name, { criticality: "sheddable" })),
          Effect.forEach("xyz", (name) => Effect.flatMap(send(name, { criticality: "critical" }), Fiber.interrupt))
        )]
    }
    for (const [why, [options, leave]] of Object.entries(refusals)) {
      it.effect(`a send that ${why} may come back, so it counts`, () =>
        Effect.gen(function*() {
          assert.strictEqual(yield* afterProbe(options, (of) => Effect.asVoid(leave(of))), "opening")
        }))
    }

    it.effect("a send whose turn did not come in time may come back, so it counts", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* subject({ maxWait: 200 })
        gate.close(0, 100)
        for (const name of "abc") yield* send(name)
        yield* TestClock.adjust(400)
        assert.deepStrictEqual(log, ["a at 100", "b closed at 400", "c closed at 400"])
        end("a")
        assert.strictEqual(gate.phase, "opening")
        yield* send("d")
        end("d")
        assert.strictEqual(gate.phase, "free")
      }))

    it.effect("interrupted sends leave no gaps to the others", () =>
      Effect.gen(function*() {
        const { end, gate, fork, enter, log, send } = yield* subject({ spread: 1, maxWait: "1 minute" }, 0)
        gate.close(0, 1000)
        yield* send("a")
        const held = yield* Effect.forEach("bcd", (name) => fork(enter(name)))
        yield* TestClock.adjust(1000)
        for (const name of "efg") yield* send(name)
        yield* TestClock.adjust(10)
        end("a")
        yield* Effect.forEach(held, Fiber.interrupt)
        yield* TestClock.adjust(10)
        // One of the four that were held back is left, and has been sent.
        assert.deepStrictEqual(log, ["a at 1000", "e at 1011", "f at 1012"])
      }))

    it.effect("when sends behind it are interrupted, the send with the timer no longer waits for their gaps", () =>
      Effect.gen(function*() {
        const { end, gate, fork, enter, log, send } = yield* subject({ spread: 1, maxWait: "1 minute" }, 0)
        gate.close(0, 1000)
        for (const name of "ab") yield* send(name)
        const held = yield* Effect.forEach("cd", (name) => fork(enter(name)))
        yield* TestClock.adjust(1000)
        for (const name of "xy") yield* send(name, { criticality: "critical" })
        end("a")
        yield* TestClock.adjust(200)
        assert.deepStrictEqual(log.splice(0), ["a at 1000", "x at 1167"])
        end("x")
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(log, [])
        yield* Effect.forEach(held, Fiber.interrupt)
        yield* TestClock.adjust(2)
        assert.deepStrictEqual(log, ["y at 1210", "b at 1211"])
      }))

    it.effect("an interrupted send that came while the gate opened takes no gap from those held back", () =>
      Effect.gen(function*() {
        const { end, gate, fork, enter, log, send } = yield* subject({ spread: 1, maxWait: "1 minute" }, 0)
        gate.close(0, 1000)
        for (const name of "ab") yield* send(name)
        yield* TestClock.adjust(1000)
        yield* Effect.flatMap(fork(enter("c")), Fiber.interrupt)
        yield* Effect.flatMap(fork(enter("d")), Fiber.interrupt)
        end("a")
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(log, ["a at 1000", "b at 1500"])
      }))
  })

  it.effect("gaps end one spread after the first success, however few sends have passed", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject({ spread: 1, maxWait: "1 minute" }, 0)
      gate.close(0, 1000)
      for (const name of "abcdefghij") yield* send(name)
      yield* TestClock.adjust(1000)
      end("a")
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(log.splice(0), ["a at 1000", "b at 1100", "c at 1200"])
      end("b")
      end("c")
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(log, ["d at 2000", "e at 2001", "f at 2002", "g at 2003"])
    }))

  it.effect("with up to a thousand allowed at a time, no two sends pass in the same millisecond", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject({ maxWait: 0 })
      gate.close(0, 1)
      for (let index = 0; index < 2000; index++) yield* send(`refused${index}`)
      for (let index = 1; index < 1000; index++) {
        yield* TestClock.adjust(1)
        yield* send(`a${index}`)
        end(`a${index}`)
      }
      log.length = 0
      yield* TestClock.adjust(1)
      for (const name of "bc") yield* send(name)
      assert.deepStrictEqual(log.splice(0), ["b at 1000", "c closed at 1000"])
      yield* TestClock.adjust(1)
      end("b")
      log.length = 0
      for (const name of "de") yield* send(name)
      assert.deepStrictEqual(log, ["d at 1001", "e at 1001"])
    }))

  it.effect("a hint that throws says nothing", () =>
    Effect.gen(function*() {
      const hint = (): never => {
        throw new Error("no hint")
      }
      const { end, gate, send } = yield* subject({ hint })
      yield* send("a")
      end("a", "Failure", throttled)
      assert.strictEqual(gate.phase, "free")
    }))

  describe("a send that does not end", () => {
    const hung = (options: CoolDown.Options = {}) => subject({ maxWait: "1 minute", probeTime: 1000, ...options })

    it.effect("holds its place for the probe time, then the next passes", () =>
      Effect.gen(function*() {
        const { gate, log, send } = yield* hung()
        gate.close(0, 100)
        for (const name of "abc") yield* send(name)
        yield* TestClock.adjust(1099)
        assert.deepStrictEqual(log, ["a at 100"])
        yield* TestClock.adjust(1001)
        assert.deepStrictEqual(log, ["a at 100", "b at 1100", "c at 2100"])
        yield* TestClock.adjust(999)
        yield* send("d")
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(log.slice(3), ["d at 3100"])
        yield* TestClock.adjust(5000)
        yield* send("e")
        assert.deepStrictEqual(log.slice(4), ["e at 8100"])
      }))

    it.effect("holds its place for ten seconds by default", () =>
      Effect.gen(function*() {
        const { gate, log, send } = yield* subject({ maxWait: "1 minute" })
        gate.close(0, 100)
        for (const name of "ab") yield* send(name)
        yield* TestClock.adjust(10_100)
        assert.deepStrictEqual(log, ["a at 100", "b at 10100"])
      }))

    it.effect("holds one of several places: the others open the resource", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* hung()
        gate.close(0, 100)
        for (const name of "abcd") yield* send(name)
        yield* TestClock.adjust(100)
        end("a")
        yield* TestClock.adjust(2)
        end("c")
        yield* TestClock.adjust(1)
        end("d")
        assert.deepStrictEqual(log, ["a at 100", "b at 101", "c at 102", "d at 103"])
        assert.strictEqual(gate.phase, "free")
      }))

    it.effect("counts when it ends after all, but frees no place twice", () =>
      Effect.gen(function*() {
        const { cancel, end, gate, log, send } = yield* hung()
        gate.close(0, 100)
        for (const name of "abcdefghi") yield* send(name)
        yield* TestClock.adjust(1100)
        assert.deepStrictEqual(log.splice(0), ["a at 100", "b at 1100"])
        end("a")
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(log.splice(0), ["c at 1101"])
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(log.splice(0), ["d at 2100", "e at 2101"])
        end("b", "Failure", throttled)
        cancel("c")
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(log.splice(0), [])
        end("d")
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(log.splice(0), ["f at 2120"])
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(log.splice(0), ["g at 3101", "h at 3120"])
        end("f", "Failure", hint(5000))
        assert.deepStrictEqual([gate.phase, gate.untilMillis], ["closed", 8130])
      }))

    it.effect("does not keep a service shut whose responses take three times the probe time", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* hung()
        gate.close(0, 100)
        for (let index = 0; index < 20; index++) yield* send(`a${index}`)
        const answered = (line: string) => Effect.delay(Effect.sync(() => end(line.split(" ")[0]!)), 3000)
        for (let seen = 0, millis = 0; millis < 30_000 && gate.phase !== "free"; millis++) {
          for (; seen < log.length; seen++) yield* Effect.forkChild(answered(log[seen]!), { startImmediately: true })
          yield* TestClock.adjust(1)
        }
        assert.strictEqual(gate.phase, "free", log.join(", "))
      }))

    it.effect("is forgotten at the next hint", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* hung()
        gate.close(0, 100)
        yield* send("a")
        yield* TestClock.adjust(100)
        gate.close(100, 500)
        for (const name of "bcd") yield* send(name)
        yield* TestClock.adjust(500)
        end("a")
        yield* TestClock.adjust(500)
        assert.deepStrictEqual(log, ["a at 100", "b at 600"])
      }))
  })

  it.effect("waits for its turn as long again as for the hint, then is refused; so is one too many", () =>
    Effect.gen(function*() {
      const { gate, log, send } = yield* subject({ maxWait: 1000, maxWaiters: 2 })
      gate.close(0, 500)
      for (const name of "abc") yield* send(name)
      assert.deepStrictEqual(log, ["c queue-full at 0"])
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(log, ["c queue-full at 0", "a at 500"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log, ["c queue-full at 0", "a at 500", "b closed at 2000"])
    }))

  it.effect("the spread is shared by all that want to send, also when the hint grows while it is closed", () =>
    Effect.gen(function*() {
      const timesOf = (untilMillis: number) =>
        Effect.gen(function*() {
          const began = yield* Clock.currentTimeMillis
          const { end, gate, log, send } = yield* subject({ spread: 0.5, maxWait: "1 minute", maxWaiters: 3 }, 0)
          gate.close(began, 400)
          for (const name of "abcd") yield* send(name)
          gate.close(began, untilMillis)
          yield* TestClock.adjust(1000)
          end("a")
          yield* TestClock.adjust(1000)
          assert.match(log.shift()!, /^d queue-full/)
          return log.map((line) => Number(line.slice(5)) - began)
        })
      assert.deepStrictEqual(yield* timesOf(400), [400, 1000, 1050])
      assert.deepStrictEqual(yield* timesOf(800), [800, 1000, 1100])
    }))

  const loads = [[0, 60_000, 100, 150], [2, 60_000, 100, 150], [2, 1000, 2, 5]] as const
  for (const [heldBack, hintMillis, everyMillis, rttMillis] of loads) {
    it.effect(`is free soon under a load that begins when it opens: ${heldBack} held back, a send every ${everyMillis} ms`, () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* subject({ spread: 0.2 }, 0)
        gate.close(0, hintMillis)
        for (let index = 0; index < heldBack; index++) yield* send(`held${index}`)
        yield* TestClock.adjust(hintMillis)
        const answered = (line: string) =>
          Effect.delay(
            Effect.sync(() => line.includes(" at ") && !line.includes("closed") && end(line.split(" ")[0]!)),
            rttMillis
          )
        let seen = 0
        let millis = 0
        for (; millis <= 40 * everyMillis && (millis === 0 || gate.phase !== "free"); millis++) {
          if (millis % everyMillis === 0) yield* send(`late${millis}`)
          for (; seen < log.length; seen++) yield* Effect.forkChild(answered(log[seen]!), { startImmediately: true })
          yield* TestClock.adjust(1)
        }
        assert.strictEqual(gate.phase, "free", `${log.join(", ")}; ${gate.waiting} wait`)
        assert.deepStrictEqual(log.filter((line) => /late\d+ closed/.test(line)), [])
      }))
  }

  it.effect("two thousand held back, and two more each millisecond: it is free all the same", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject({ spread: 0.2 }, 0)
      gate.close(0, 1000)
      for (let index = 0; index < 2000; index++) yield* send(`a${index}`)
      yield* TestClock.adjust(1000)
      let seen = 0
      for (let millis = 0; millis < 3000 && gate.phase !== "free"; millis++) {
        for (const which of "bc") yield* send(`${which}${millis}`)
        for (const to = log.length; seen < to; seen++) end(log[seen]!.split(" ")[0]!)
        yield* TestClock.adjust(1)
      }
      assert.strictEqual(gate.phase, "free", `${gate.waiting} wait`)
      assert.deepStrictEqual(log.filter((line) => /closed/.test(line)), [])
    }))

  it.effect("closed again while it opens, it spreads those in line, and no others", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject({ spread: 0.5, maxWait: "1 minute" }, 0)
      gate.close(0, 100)
      for (const name of "abcde") yield* send(name)
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(log.splice(0), ["a at 100"])
      end("a", "Failure", hint(400))
      yield* TestClock.adjust(400)
      assert.deepStrictEqual(log.splice(0), ["b at 500"])
      end("b")
      yield* TestClock.adjust(200)
      // Half of 400 ms for four.
      assert.deepStrictEqual(log.splice(0), ["c at 550", "d at 600"])
    }))

  it.effect("a send that asked while it opened, and waits only when it is free, passes then", () =>
    Effect.gen(function*() {
      const { end, enter, fork, gate, log, send } = yield* subject()
      gate.close(0, 100)
      yield* TestClock.adjust(100)
      yield* send("a")
      const late = [enter("b"), enter("c")]
      for (const name of "de") yield* send(name)
      end("a")
      yield* TestClock.adjust(2)
      end("d")
      end("e")
      assert.strictEqual(gate.phase, "free")
      yield* TestClock.adjust(100)
      log.length = 0
      for (const wait of late) yield* fork(wait)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log, ["b at 203", "c at 203"])
    }))

  it.effect("a send that asked while it was closed, and waits only after that, is the probe", () =>
    Effect.gen(function*() {
      const { enter, fork, gate, log } = yield* subject()
      gate.close(0, 100)
      const late = enter("a")
      yield* TestClock.adjust(200)
      yield* fork(late)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log, ["a at 201"])
    }))

  it.effect("a waiter sleeps: it does not look again and again", () =>
    Effect.gen(function*() {
      const clock = yield* countedClock
      const { end, gate, log, send } = yield* subject({ spread: 1, maxWait: "1 minute" }, 0)
      const peers = gate.peers = new FakePeers()
      gate.close(0, 1000)
      for (const name of "abcd") yield* clock.provide(send(name))
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual([log.length, clock.sleeps], [0, 2])
      peers.may = true
      gate.look(2000)
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual([log.length, clock.sleeps], [1, 3])
      end("a")
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(log, ["a at 2000", "b at 4000", "c at 4250"])
      assert.isAtMost(clock.sleeps, 7)
    }))

  it.effect("changed, what is closed stays closed, and later sends wait by the new options", () =>
    Effect.gen(function*() {
      const { gate, log, send } = yield* subject({ maxWait: 1000 })
      gate.close(0, 500)
      gate.change(validated({ maxWait: 600, maxWaiters: 2, atMost: 2000, spread: 0 }))
      for (const name of "abc") yield* send(name)
      assert.deepStrictEqual(log, ["c queue-full at 0"])
      yield* TestClock.adjust(1199)
      assert.deepStrictEqual(log.slice(1), ["a at 500"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log.slice(2), ["b closed at 1200"])
      gate.close(1200, 60_000)
      assert.strictEqual(gate.untilMillis, 3200)
    }))

  describe("of a fleet", () => {
    it.effect("reports to its peers free sends, each new closing, and the first success since", () =>
      Effect.gen(function*() {
        const { end, gate, send } = yield* subject()
        const peers = gate.peers = new FakePeers()
        peers.may = true
        yield* send("a")
        end("a")
        yield* send("b")
        yield* send("c")
        end("b", "Failure", hint(100))
        end("c", "Failure", hint(100))
        yield* TestClock.adjust(100)
        yield* send("d")
        end("d", "Failure")
        yield* TestClock.adjust(1)
        yield* send("e")
        end("e")
        assert.deepStrictEqual(peers.told, ["sent", "sent", "sent", "closed until 100", "opened"])
      }))

    it.effect("opens when its peers agree, in the step in which they answer", () =>
      Effect.gen(function*() {
        const { gate, log, send } = yield* subject()
        const peers = gate.peers = new FakePeers()
        gate.close(0, 100)
        yield* send("a")
        yield* TestClock.adjust(200)
        assert.deepStrictEqual(log, [])
        peers.may = true
        gate.look(200)
        assert.deepStrictEqual(log, ["a at 200"])
      }))

    it.effect("asks its peers again after an answer that leaves the question open", () =>
      Effect.gen(function*() {
        const { gate, send } = yield* subject()
        const peers = gate.peers = new FakePeers()
        gate.close(0, 100)
        yield* send("a")
        yield* TestClock.adjust(1000)
        assert.strictEqual(peers.asked, 1)
        peers.isAsked = false
        peers.mayOpen = () => {
          peers.asked++
          return false
        }
        gate.look(1000)
        const asked = peers.asked
        yield* TestClock.adjust(1)
        assert.isAbove(peers.asked, asked)
      }))

    it.effect("closed again while its peers are asked, it asks them again when that is over", () =>
      Effect.gen(function*() {
        const { gate, log, send } = yield* subject()
        const peers = gate.peers = new FakePeers()
        gate.close(0, 100)
        yield* send("a")
        yield* TestClock.adjust(150)
        gate.close(150, 200)
        peers.may = true
        yield* TestClock.adjust(200)
        assert.deepStrictEqual(log, ["a at 350"])
      }))

    it.effect("asks its peers again if nothing has succeeded within the probe time", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* subject({ probeTime: 1000, maxWait: "1 minute" })
        const peers = gate.peers = new FakePeers()
        peers.may = true
        gate.close(0, 100)
        for (const name of "abcdefg") yield* send(name)
        yield* TestClock.adjust(100)
        end("a", "Failure")
        yield* TestClock.adjust(1)
        assert.deepStrictEqual([log.splice(0), peers.asked], [["a at 100", "b at 101"], 1])
        peers.may = false
        yield* TestClock.adjust(5000)
        assert.deepStrictEqual([log.splice(0), peers.asked, gate.phase], [[], 2, "closed"])
        peers.may = true
        gate.look(5101)
        assert.deepStrictEqual([log.splice(0), peers.asked], [["c at 5101"], 3])
        end("c")
        yield* TestClock.adjust(1500)
        assert.deepStrictEqual(log, ["d at 5102", "e at 5103", "f at 6102", "g at 6103"])
        assert.deepStrictEqual([peers.asked, gate.phase], [3, "opening"])
      }))

    it.effect("a probe that succeeds while its peers are asked again opens it", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* subject({ probeTime: 1000, maxWait: "1 minute" })
        const peers = gate.peers = new FakePeers()
        peers.may = true
        gate.close(0, 100)
        for (const name of "abc") yield* send(name)
        yield* TestClock.adjust(100)
        peers.may = false
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual([log.splice(0), gate.phase], [["a at 100"], "closed"])
        end("a")
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(log, ["b at 1100", "c at 1101"])
        assert.deepStrictEqual(peers.told, ["closed until 100", "opened"])
      }))

    it.effect("opens by itself once it has left", () =>
      Effect.gen(function*() {
        const { gate, log, send } = yield* subject()
        gate.peers = new FakePeers()
        gate.close(0, 100)
        yield* send("a")
        yield* TestClock.adjust(200)
        gate.leave()
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(log, ["a at 200"])
      }))
  })
})
