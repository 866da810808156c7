import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { clockOf, monotonicMillis } from "../../internal/clock.ts"
import { Refused } from "../../internal/refused.ts"
import { asGate } from "../../internal/shared.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import type { Outcome, Pass, SendGate } from "../../SendGate.ts"

/** The error of a send that a gate refused. */
export interface RefusalOf<out Tag extends string> extends Cause.YieldableError {
  readonly _tag: Tag
  readonly [Refused]: true
  readonly [RetryInfo.TypeId]: RetryInfo.RetryInfo
}

/** The base of the error of a gate: the send was not made, and no policy retries it. */
export const RefusalError = <const Tag extends string>(tag: Tag) => {
  class Refusal extends Data.TaggedError(tag)<{}> {
    readonly [Refused] = true
    get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
      return RetryInfo.notRetryable
    }
  }
  return Refusal as unknown as new<Fields extends object>(fields: Fields) => RefusalOf<Tag> & Readonly<Fields>
}

/** A gate that sees how each send ends. */
interface Lessor {
  complete(lease: Lease, outcome: Outcome): void
  canceled(lease: Lease): void
}

/** What a send that has passed holds of its gate. */
export abstract class Lease implements Pass {
  constructor(readonly gate: Lessor) {}

  settle(outcome: Outcome): void {
    this.gate.complete(this, outcome)
  }

  cancel(): void {
    this.gate.canceled(this)
  }
}

/** Declares a service that has a gate. */
export const GateService =
  <Self, Service extends { readonly gate: SendGate | undefined }>() => <const Key extends string>(key: Key) =>
    asGate(Context.Service<Self, Service>()(key), ({ gate }) => gate)

/** How a gate is made from its options, and its service from the gate. */
export interface GateKind<Options, Valid, Gate, Service> {
  readonly validated: (options: Options) => Valid
  readonly make: (valid: Valid, random: Random.Random, nowMillis: number) => Gate
  readonly serviceOf: (gate: Gate) => Service
}

/** Makes a gate, and its service. Invalid options throw before anything runs. */
export const serviceFrom = <Options, Valid, Gate, Service>(
  { make, serviceOf, validated }: GateKind<Options, Valid, Gate, Service>,
  options: Options
): Effect.Effect<Service> => {
  const valid = validated(options)
  return Effect.withFiber((fiber) =>
    Effect.sync(() => serviceOf(make(valid, fiber.getRef(Random.Random), monotonicMillis(clockOf(fiber)))))
  )
}
