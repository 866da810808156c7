import * as Equal from "effect/Equal"
import * as Hash from "effect/Hash"
import { NodeInspectSymbol } from "effect/Inspectable"
import * as Schedule from "effect/Schedule"
import { type Checks, checks, checksOf, known } from "../../internal/checks.ts"
import { get } from "../../internal/safe.ts"
import { Opaque } from "../../internal/words.ts"
import type { Adjust } from "../delay.ts"
import { changed, type Parts } from "../parts.ts"
import { toSchedule } from "../schedule.ts"
import { lifting } from "./lifted.ts"
import { toSteps, toText } from "./text.ts"

/** The key under which a policy carries its parts. */
export const TypeId = "~effect-retry/RetryPolicy" as const

/** Any policy, whatever errors it decides about. */
export interface AnyPolicy extends Schedule.Schedule<unknown, never, unknown, unknown> {
  readonly [TypeId]: unknown
}

/** What a policy is made of. */
export const partsOf = (policy: AnyPolicy): Parts => policy[TypeId] as Parts

/** The parts of a policy, or of any schedule as one. */
export const partsIn = (schedule: any): Parts => partsOf(isPolicy(schedule) ? schedule : lifted(schedule))

/** Any schedule as a policy; a policy as it is. */
export const lifted = (schedule: any): any =>
  isPolicy(schedule)
    ? schedule
    : fromSource("RetryPolicy.fromSchedule", new Opaque(schedule, "<schedule>"), lifting(schedule))

export const isPolicy = (u: unknown): u is AnyPolicy => get(u, TypeId) !== undefined

/** What policies can do besides being schedules: print and compare. */
const Proto: object = /* @__PURE__ */ Object.assign(
  /* @__PURE__ */ Object.create(/* @__PURE__ */ Object.getPrototypeOf(Schedule.forever)),
  {
    toString(this: AnyPolicy): string {
      return toText(partsOf(this).nodes)
    },
    toJSON(this: AnyPolicy) {
      return JSON.parse(JSON.stringify({ steps: toSteps(partsOf(this).nodes) }))
    },
    [NodeInspectSymbol](): string {
      return String(this)
    },
    [Equal.symbol](this: AnyPolicy, that: unknown): boolean {
      return isPolicy(that) && Equal.equals(partsOf(this).nodes, partsOf(that).nodes)
    },
    [Hash.symbol](): number {
      return Hash.string(String(this))
    }
  }
)

/** The policy made of these parts. */
export const fromParts = (parts: Parts): any =>
  Object.assign(Object.create(Proto), toSchedule(parts), { [TypeId]: parts })

/** The policy that retries forever after the delays of `source`. */
export const fromSource = (tag: string, given: unknown, source: Parts["source"], live?: Parts["live"]): any =>
  fromParts({
    nodes: [[tag, given]],
    source,
    adjusts: [],
    maxAttempts: Infinity,
    whileRetryable: "off",
    deadlineMillis: Infinity,
    outermostOnly: false,
    quota: undefined,
    adaptive: false,
    live
  })

/** The policy with one more step, and the changes it makes. */
export const extended = (
  self: Schedule.Schedule<unknown, any, any, any>,
  tag: string,
  given: unknown,
  changes: Partial<Parts> | Change
): any => {
  const change = typeof changes === "function" ? changes : () => changes
  return fromParts(changed(partsIn(self), (parts) => ({ ...change(parts), nodes: [...parts.nodes, [tag, given]] })))
}

type Change = (parts: Parts) => Partial<Parts>

/** Applies a change to every delay. */
export const adjusting = (next: Adjust): Change => ({ adjusts }) => ({ adjusts: [...adjusts, next] })

/**
 * A combinator that takes the policy first or last. Its option is checked immediately, and recorded as the checks
 * normalize it: all fields, or the only one.
 */
export const combinator = (
  tag: string,
  compile: (check: Checks, option: any) => Change,
  field?: string,
  preset?: unknown
): any => {
  const applied = (option: any = field === undefined ? {} : preset) => {
    const check = field === undefined ? checksOf(tag, option) : checks(tag)
    const change = compile(check, option)
    if (field === undefined) known(check, option)
    return (self: any) => extended(self, tag, field === undefined ? check.given : check.given[field], change)
  }
  return (...args: ReadonlyArray<unknown>) =>
    Schedule.isSchedule(args[0]) ? applied(args[1])(args[0] as any) : applied(args[0])
}
