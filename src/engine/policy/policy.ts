import * as Equal from "effect/Equal"
import { dual } from "effect/Function"
import * as Hash from "effect/Hash"
import { NodeInspectSymbol } from "effect/Inspectable"
import * as Schedule from "effect/Schedule"
import { type Checks, checks, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { Opaque } from "../../internal/format.ts"
import { isObject } from "../../internal/invalidField.ts"
import { get } from "../../internal/tryGet.ts"
import { changed, type Compiled, free, type Node, type RetryDecision } from "../compiled.ts"
import type { Adjust, Jitter } from "../delay.ts"
import { lifting, toSchedule } from "../schedule.ts"

/** The key under which a policy carries what it compiles to. */
export const TypeId = "~effect-retry/RetryPolicy" as const

/** A schedule of any output. */
export type Takes<E, Err, R> = Schedule.Schedule<unknown, E, Err, R>

/** Any schedule. */
export type AnySchedule = Takes<never, unknown, unknown>

/** A policy: `RetryPolicy` of the API. */
export interface Policy<in E, out Err, out R> extends Schedule.Schedule<RetryDecision, E, Err, R>, Equal.Equal {
  readonly [TypeId]: unknown
  readonly toJSON: () => { readonly steps: ReadonlyArray<string | { readonly [step: string]: unknown }> }
}

/** Any policy, whatever errors it decides about. */
export type AnyPolicy = Policy<never, unknown, unknown>

/** What a policy is made of. */
export const compiledOf = (policy: { readonly [TypeId]: unknown }): Compiled => policy[TypeId] as Compiled

export const isPolicy = (u: unknown): u is AnyPolicy => get(u, TypeId) !== undefined

/** Any schedule as a policy; a policy as it is. */
export const lifted = <E, Err, R>(
  schedule: Takes<E, Err, R>,
  tag = "RetryPolicy.fromSchedule",
  field = "schedule"
): Policy<E, Err, R> => {
  if (isPolicy(schedule)) return schedule as Policy<E, Err, R>
  if (!Schedule.isSchedule(schedule)) {
    return checks(tag).reject(field, schedule, `a schedule, such as Schedule.spaced("1 second") or awsStandard`)
  }
  return fromSource("RetryPolicy.fromSchedule", new Opaque(schedule, "<schedule>"), lifting(schedule))
}

/** What a policy compiles to, or any schedule as one. */
export const compiledIn = (schedule: AnySchedule, tag?: string, field?: string): Compiled =>
  compiledOf(lifted(schedule, tag, field))

/** What a policy is made of, for a function that takes no other schedule. */
export const compiledFrom = (tag: string, policy: unknown): Compiled =>
  isPolicy(policy) ? compiledOf(policy) : checks(tag).reject("policy", policy, "a policy, such as awsStandard")

/** What policies can do besides being schedules: print and compare. */
const Proto: object = /* @__PURE__ */ Object.assign(
  /* @__PURE__ */ Object.create(/* @__PURE__ */ Object.getPrototypeOf(Schedule.forever)),
  {
    toString(this: AnyPolicy): string {
      return toText(compiledOf(this).nodes)
    },
    toJSON(this: AnyPolicy) {
      return JSON.parse(JSON.stringify({ steps: toSteps(compiledOf(this).nodes) }))
    },
    [NodeInspectSymbol](): string {
      return String(this)
    },
    [Equal.symbol](this: AnyPolicy, that: unknown): boolean {
      return isPolicy(that) && Equal.equals(compiledOf(this).nodes, compiledOf(that).nodes)
    },
    [Hash.symbol](): number {
      return Hash.string(String(this))
    }
  }
)

/** The policy that compiles to this. Its type is claimed here, and nowhere else. */
export const fromCompiled = <E, Err, R>(compiled: Compiled): Policy<E, Err, R> => {
  const schedule = toSchedule(compiled)
  return Object.assign(Object.create(Proto), compiled.services?.stepped(schedule) ?? schedule, { [TypeId]: compiled })
}

/** The policy that retries forever after the delays of `source`. */
export const fromSource = <E, Err, R>(
  tag: string,
  options: unknown,
  source: Compiled["source"],
  limits: Partial<Compiled> = {}
): Policy<E, Err, R> => fromCompiled({ ...free, ...limits, nodes: [[tag, options]], source })

/** The changes that a combinator makes. */
export type Change = (compiled: Compiled) => Partial<Compiled>

/** What a combinator adds to a policy: how it shows, and its changes. */
interface Step {
  readonly tag: string
  readonly options?: unknown
  readonly change: Change
}

/** The policy with one more step. */
export const extended = <E, Err, R>(self: Takes<E, Err, R>, { change, options, tag }: Step): Policy<E, Err, R> =>
  fromCompiled(
    changed(
      compiledIn(self, tag, "self"),
      (compiled) => ({ ...change(compiled), nodes: [...compiled.nodes, [tag, options]] })
    )
  )

/** Applies a change to every delay. */
export const adjusting = (next: Adjust): Change => ({ adjusts }) => ({ adjusts: [...adjusts, next] })

/** The changes of a combinator with one argument. */
type Compile<A> = (check: Checks, argument: A) => Change

/** A step with one argument, which shows as the checks normalize it. */
const value = <A>(tag: string, field: string, compile: Compile<A>) => (argument: A): Step => {
  const check = checks(tag)
  const change = compile(check, argument)
  return { tag, options: check.input[field], change }
}

/** A step with several options, which show as the checks normalize them. */
const stepOf = <O extends object>(tag: string, compile: Compile<O>) => (options: O): Step => {
  const check = checksOf(tag, options)
  const change = compile(check, options)
  rejectUnknown(check, options)
  return { tag, options: check.input, change }
}

/** A combinator that takes its schedule last: its argument is checked immediately. */
const applying = (step: Step) => (self: AnySchedule) => extended(self, step)

/** A combinator that takes its schedule first or last. Its type is claimed where it is declared. */
export const combinator = <Combinator, A>(tag: string, field: string, compile: Compile<A>): Combinator => {
  const step = value(tag, field, compile)
  return ((...args: [argument: A] | [self: AnySchedule, argument: A]) =>
    args.length === 2 ? extended(args[0], step(args[1])) : applying(step(args[0]))) as Combinator
}

/** The same, of what is checked only with its schedule, once for each. */
export const joint = <Combinator, A>(tag: string, field: string, compile: Compile<A>): Combinator => {
  const step = value(tag, field, compile)
  return dual(2, (self: AnySchedule, argument: A) => extended(self, step(argument))) as Combinator
}

const optional =
  <O>(step: (option: O) => Step, preset: O) => (first: AnySchedule | O = preset, option = preset): unknown =>
    Schedule.isSchedule(first) ? extended(first as AnySchedule, step(option)) : applying(step(first as O))

/** A combinator whose option may be left out: it takes its schedule first or last, or is passed to `pipe` as it is. */
export const preset = <Combinator, A>(tag: string, field: string, compile: Compile<A>, preset: A): Combinator =>
  optional(value(tag, field, compile), preset) as Combinator

/** The same, with an object of options. */
export const options = <Combinator, O extends object>(tag: string, compile: Compile<O>): Combinator =>
  optional(stepOf(tag, compile), {} as O) as Combinator

/** The checked jitter option. */
export const jitterOf = (check: Checks, jitter: Jitter | undefined, otherwise?: "none"): Jitter => {
  check.names.add("jitter")
  if (!isObject(jitter)) {
    return check.oneOf("jitter", jitter, ["none", "full", "equal"], otherwise)
  }
  const nested = checks(check.tag)
  const proportional = nested.between("proportional", jitter.proportional, 0, 1)
  rejectUnknown(nested, jitter)
  check.input.jitter = nested.input
  return { proportional }
}

/** The argument of a step, as source code. */
const print = (value: unknown): string => {
  if (typeof value === "string" && value !== "Infinity") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(print).join(", ")}]`
  if (typeof value !== "object" || "toJSON" in value!) return String(value)
  const options = Object.entries(value!).map(([key, value]) => `${key}: ${print(value)}`)
  return options.length === 0 ? "" : `{ ${options.join(", ")} }`
}

/** The arguments of a step: a backoff takes its delay first, its growth next, and its options last. */
const printArguments = (tag: string, value: unknown): string => {
  if (!tag.startsWith("Backoff.")) return print(value)
  const { base, delay = base, factor, ...others } = value as { readonly [option: string]: unknown }
  const options = print(others)
  const growth = factor ?? (options && tag === "Backoff.exponential" && 2)
  return [print(delay), growth, options].filter(Boolean).join(", ")
}

/** The composition, as source code. */
const toText = (nodes: ReadonlyArray<Node>): string => {
  const [first, ...others] = nodes.map(([tag, value]) =>
    value === undefined ? tag : `${tag}(${printArguments(tag, value)})`
  )
  return others.length === 0 ? first! : `${first}.pipe(${others.join(", ")})`
}

/** The composition as JSON: a step is the name of a combinator, or its name and argument. */
const toSteps = (nodes: ReadonlyArray<Node>) =>
  nodes.map(([tag, value]) => {
    const name = tag.replace(/^(Backoff|RetryPolicy)\./, "")
    return value === undefined ? name : { [name]: value }
  })
