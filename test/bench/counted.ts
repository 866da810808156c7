/**
 * What can be counted instead of timed: operations of Effect's run loop and bytes allocated, per call.
 *
 * Prints them as JSON. To be run with the flags in `children.ts`, so that nothing is collected while bytes are counted.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"
import * as effects from "./effects.ts"
import * as gates from "./gates.ts"
import { spread } from "./harness.ts"
import { effectOf, type Script } from "./operations.ts"

/** What one call takes, the loop that makes the calls included. */
export interface Counted {
  readonly operations: number
  readonly bytes: number
}

/** By script, then by way of retrying; a success with gates by what surrounds it. */
export type Counts = Readonly<Record<"success" | "twice" | "invalid" | "gated", Readonly<Record<string, Counted>>>>

type AnyCall = Effect.Effect<unknown, unknown, any>

/** Of one batch: enough to warm up, few enough that its bytes fit into what is never collected. */
const calls = Number(process.argv[2])

/** Every primitive that the run loop evaluates passes by the tracer, if it has this hook. */
const operationsOf = async (call: AnyCall, context: Context.Context<any>): Promise<number> => {
  let evaluated = 0
  const tracer: Tracer.Tracer = {
    span: (options) => new Tracer.NativeSpan(options),
    context: (primitive, fiber) => {
      evaluated++
      return primitive["~effect/Effect/evaluate"](fiber)
    }
  }
  const observed = Effect.provideContext(effects.repeated(call, calls), Context.add(context, Tracer.Tracer, tracer))
  await Effect.runPromise(observed)
  return evaluated / calls
}

const bytesOf = async (call: AnyCall, context: Context.Context<any>): Promise<number> => {
  const batch = Effect.provideContext(effects.repeated(call, calls), context)
  const samples: Array<number> = []
  for (let round = 0; round < 12; round++) {
    gc!({ type: "minor" })
    const before = process.memoryUsage().heapUsed
    await Effect.runPromise(batch)
    samples.push((process.memoryUsage().heapUsed - before) / calls)
  }
  return spread(samples.slice(6)).median
}

const counted = async (script: Script): Promise<Readonly<Record<string, Counted>>> => {
  const context = script === "twice"
    ? await effects.contextOf({ capacity: 1e12 }, effects.sleepless)
    : await effects.contextOf({})
  const counts: Record<string, Counted> = {}
  for (const name of [effects.bare, effects.floorName, effects.ours, effects.plain, effects.timesWhile]) {
    if (script === "twice" && name === effects.bare) continue
    const retried = effects.retrying[name]!(effectOf(script))
    const call = script === "invalid" ? effects.settled(retried) : retried
    const bytes = await bytesOf(call, context)
    counts[name] = { operations: await operationsOf(call, context), bytes }
  }
  return counts
}

const gated = async (): Promise<Readonly<Record<string, Counted>>> => {
  const counts: Record<string, Counted> = {}
  const contexts = Object.entries(await gates.surroundings())
  // All before any is counted: code that has met several gates is compiled differently than for one.
  for (const [, context] of contexts) await bytesOf(gates.call(), context)
  for (const [name, context] of contexts) {
    const bytes = await bytesOf(gates.call(), context)
    counts[name] = { operations: await operationsOf(gates.call(), context), bytes }
  }
  return counts
}

const counts: Counts = {
  success: await counted("success"),
  twice: await counted("twice"),
  invalid: await counted("invalid"),
  gated: await gated()
}

console.log(JSON.stringify(counts))
