import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { monotonicMillis, withMillis } from "../../internal/clock.ts"
import { Refused } from "../../internal/refused.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import type { Outcome, Pass, SendGate } from "../../SendGate.ts"
import { same } from "./law.ts"
import { turns } from "./time.ts"

/**
 * A send that asks a gate.
 *
 * @internal
 */
export class Entry {
  /** How many passes the gate has given it. */
  passes = 0
  /** Set while the gate holds the send back. */
  waiting: Effect.Effect<void, unknown> | undefined = undefined

  /** Waits for the gate. Checks that its answer is allowed. */
  get answered(): Effect.Effect<void> {
    return Effect.map(Effect.exit(this.waiting ?? Effect.void), (exit) => {
      if (Exit.isSuccess(exit)) return same("how often hold was called when a send may go", this.passes, 1)
      same("how often hold was called for a send that was refused", this.passes, 0)
      if (Cause.hasInterruptsOnly(exit.cause)) return
      const reason = exit.cause.reasons[0]
      if (reason?._tag !== "Fail") return same("how a gate ends", reason?._tag, "with a pass or a refusal")
      same("whether the error of a refusal is marked with SendGate.Refused", get(reason.error, Refused), true)
    })
  }
}

type Ending = Omit<Outcome, "nowMillis">

/**
 * How a send has ended.
 *
 * @internal
 */
export const ended = (
  _tag: Ending["_tag"],
  value?: unknown,
  error?: unknown,
  info?: RetryInfo.RetryInfo
): Ending => ({ _tag, value, error, info })

/**
 * The ways in which a send can end.
 *
 * @internal
 */
export const endings: ReadonlyArray<Ending> = [
  ended("Success", "a value"),
  ended("Failure", undefined, new Error("unknown")),
  ended("Failure", undefined, { _tag: "Throttled" }, RetryInfo.throttled()),
  ended("Unknown")
]

/**
 * A gate under test.
 *
 * @internal
 */
export class GateSubject {
  /** The passes of sends that have not ended. */
  readonly open: Array<Pass> = []
  private count = 0

  constructor(
    readonly gate: SendGate,
    /** How many sends are tried until it holds one back. */
    readonly most: number
  ) {}

  /** Asks, in one step. */
  enter(attempt = 1, clock?: Clock.Clock): Effect.Effect<Entry> {
    return Effect.withFiber(({ context: around }) => {
      const context = clock === undefined ? around : Context.add(around, Clock.Clock, clock)
      const entry = new Entry()
      const nowMillis = monotonicMillis(Context.get(context, Clock.Clock))
      const hold = (pass: Pass) => {
        entry.passes++
        this.open.push(pass)
      }
      entry.waiting = this.gate.enter({ attempt, nowMillis, context, hold }) ?? undefined
      same("how often hold was called immediately", entry.passes, entry.waiting === undefined ? 1 : 0)
      return Effect.succeed(entry)
    })
  }

  /** Asks until it holds a send back. */
  get filled(): Effect.Effect<Entry | undefined> {
    return Effect.gen({ self: this }, function*() {
      for (let count = 0; count < this.most; count++) {
        const entry = yield* this.enter()
        if (entry.waiting !== undefined) return entry
      }
      return undefined
    })
  }

  /** Cancels the open sends, by default all. Returns how many there were. */
  cancels(from = 0): number {
    const passes = this.open.splice(from)
    for (const pass of passes) pass.cancel()
    return passes.length
  }

  /** How many sends it lets pass now. None of them is made. */
  get room(): Effect.Effect<number> {
    return Effect.suspend(() => {
      const before = this.open.length
      return Effect.map(this.filled, () => this.cancels(before))
    })
  }

  /** Ends sends, by default all: each in a different way, unless given. */
  ends(ending?: Ending, passes: ReadonlyArray<Pass> = this.open.splice(0)): Effect.Effect<void> {
    return withMillis((nowMillis) => {
      for (const pass of passes) pass.settle({ ...(ending ?? endings[this.count++ % endings.length]!), nowMillis })
    })
  }

  /** A send that the gate holds back, in its own fiber. */
  get waiter(): Effect.Effect<{ readonly entry: Entry; readonly fiber: Fiber.Fiber<void> }> {
    return Effect.gen({ self: this }, function*() {
      const entry = yield* this.enter()
      const fiber = yield* Effect.tap(Effect.forkChild(entry.answered), turns)
      return { entry, fiber }
    })
  }
}
