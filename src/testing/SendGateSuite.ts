/**
 * The contract of `SendGate` as a suite of tests, for your own gate. It needs no test framework: each law is an effect
 * with a name.
 *
 * **Example** (In a test file)
 *
 * ```ts
 * const pass: SendGate.Pass = { settle: () => undefined, cancel: () => undefined }
 * const makeGate = Effect.succeed<SendGate.SendGate>({ order: 50, enter: (send) => send.hold(pass) })
 * const laws = SendGateSuite.laws(makeGate, { onExceeded: "never" })
 * // for (const law of laws) it.effect(law.name, () => law.run)
 * ```
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { checksOf, flag, rejectUnknown } from "../internal/checks.ts"
import type { SendGate } from "../SendGate.ts"
import { gateLawsOf } from "./internal/gateLaws.ts"
import { GateSubject } from "./internal/gateSubject.ts"
import type { Law } from "./internal/law.ts"

/**
 * Options for testing a gate.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * What the gate does with sends once enough have passed: it makes them wait, refuses them, or never holds one back.
   * Default `"waits"`.
   */
  readonly onExceeded?: "waits" | "refuses" | "never" | undefined
  /** How many sends are tried until the gate holds one back: a whole number of at least 1. Default 100. */
  readonly most?: number | undefined
  /**
   * Whether the gate lets sends pass again within an hour after all earlier sends have ended. Default `true`.
   */
  readonly reopens?: boolean | undefined
}

/**
 * The laws of every gate: it gives each send one pass or a marked refusal, a canceled or interrupted send leaves no
 * trace, waiters pass in order of arrival, each pass is settled once, and whatever a send ended with. `make` makes a new gate each time, in the
 * same state. A broken law fails with `ContractBroken`. Time is that of a `TestClock`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const laws = <E, E2, R>(
  make: Effect.Effect<SendGate<E>, E2, R>,
  options: Options = {}
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const check = checksOf("SendGateSuite.laws", options)
  const { most = 100, reopens = true, onExceeded = "waits" } = options
  check.count("most", most, 1)
  check.oneOf("onExceeded", onExceeded, ["waits", "refuses", "never"])
  flag(check, "reopens", reopens)
  rejectUnknown(check, options)
  return gateLawsOf(Effect.map(Effect.orDie(make), (gate) => new GateSubject(gate, most)), onExceeded, reopens)
}
