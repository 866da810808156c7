/**
 * Effect's own loops, seen from below. All that is not public is in this file: the stack of a fiber, and the shape of
 * the loop of `Effect.retry`, which a probe learns from its behavior, once. Where it is not as expected, nothing here is
 * used. Nothing here knows what a retry is for.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { firstIn } from "../internal/cause.ts"
import { isDoneCause } from "../internal/requiresEffect4.ts"
import { type AnyFiber, current } from "./environment.ts"

/** The published versions of Effect with which the probe and the tables of `Effect.retry` were tried. */
export const tried = ["4.1.0"] as const

const A = "~effect/Effect/successCont"
const E = "~effect/Effect/failureCont"
const evaluate = "~effect/Effect/evaluate"

/** What a loop asks of the run in it. Each method may return an effect to run first. */
export interface Driven {
  /** A send is in flight. */
  readonly isSent: boolean
  /** Before a send: `undefined` if it may be made now; else an effect that says whether it may. */
  readonly admits: () => Effect.Effect<boolean, unknown> | undefined
  /** Into the context of a send. */
  readonly enters: (fiber: AnyFiber) => void
  /** A send is made. */
  readonly sent: () => void
  /** The send has failed. */
  readonly fails: (error: unknown, fiber: AnyFiber) => Effect.Effect<unknown> | undefined
  /** The delay is over: the retry is made. */
  readonly turns: (delayMillis: number) => Effect.Effect<unknown, unknown, unknown> | undefined
  /** The end of a loop whose retry may not be made. */
  readonly expires: () => Effect.Effect<never, unknown>
  /** The loop has ended. */
  readonly ends: (exit: Exit.Exit<unknown, unknown>, fiber: AnyFiber) => Effect.Effect<unknown> | undefined
}

/** The texts of three continuations: of the step, of the metadata, and inside the step. */
let texts: { readonly step: string; readonly meta: string; readonly sleep: string } | undefined
let isLearned = false
/** How a continuation of `flatMap` is called, unlike one of `map`. */
let flatMapped: unknown

const stackOf = (fiber: any): Array<any> => fiber._stack
const textOf = (frame: any): string | undefined =>
  typeof frame?.payload === "function" && frame.payload.length === 1 ? String(frame.payload) : undefined

/** How deep the stack of a fiber is, or 0. */
export const depthOf = (fiber: any): number => fiber._stack?.length ?? 0

/** Whether Effect's loop is as expected. */
export const isSupported = (): boolean => {
  if (!isLearned) learn()
  return texts !== undefined
}

class Frame {
  /** Tells frames of another copy of this package from those of Effect. */
  readonly isRetry = true
  constructor(
    readonly run: Driven,
    /** The continuation in whose place it is, if it is in place of one. */
    readonly frame?: any
  ) {}
}

type Next = (fiber: any) => any

const after = (first: Effect.Effect<unknown, unknown, unknown> | undefined, next: Next, fiber: any): any =>
  first === undefined ? next(fiber) : Effect.flatMap(first, () => Effect.withFiber(next))

/**
 * Stays above what catches the end of the schedule, and below everything else: it sees how the loop ends. It is one of
 * Effect's own, since those are reached by interruptions too.
 */
const end = (run: Driven): any => {
  const frame: any = Effect.onExitPrimitive(Effect.void, (exit) => run.ends(exit, current()) as any)
  frame.run = run
  frame.isEnd = true
  return frame
}

/** Above the loop's own catch: it sees how a send fails. A success goes straight to the end. */
class Sent extends Frame {
  [E](cause: Cause.Cause<unknown>, fiber: any, exit?: any): any {
    const failure = firstIn(cause)
    if (failure === undefined) return exit ?? Exit.failCause(cause)
    return after(this.run.fails(failure.error, fiber), (fiber) => {
      const loop = fiber.getCont(E)
      if (loop === undefined) return Exit.failCause(cause)
      const next = loop[E](cause, fiber)
      if (typeof next?.[A] !== "function" || typeof next[evaluate] !== "function") return next
      // The loop now evaluates the step, and then continues with the metadata: there the next send begins.
      const inside = next[evaluate](fiber)
      const stack = stackOf(fiber)
      const top = stack[stack.length - 1]
      if (top === next) stack[stack.length - 1] = new Turn(this.run, top)
      return inside
    }, fiber)
  }
}

/** Makes the send in this step: under it, the frame that sees how it ends. */
const sends = (run: Driven, loop: any, fiber: any): any => {
  if (typeof loop?.[evaluate] !== "function") return loop
  let self = loop[evaluate](fiber)
  stackOf(fiber).push(new Sent(run))
  run.enters(fiber)
  // To where the send itself begins: what is interrupted before it was not made.
  for (let deep = 0; deep < 2; deep++) self = self[evaluate](fiber)
  run.sent()
  return self
}

const admitted = (run: Driven, next: Next, fiber: any): any => {
  const asked = run.admits()
  if (asked === undefined) return next(fiber)
  return Effect.flatMap(asked, (isIn) => isIn ? Effect.withFiber(next) : run.expires())
}

/** In place of the continuation that gets the step of the schedule: before the first send. */
class Begin extends Frame {
  [A](value: unknown, fiber: any): any {
    const caught = this.frame[A](value, fiber)
    const loop = caught[evaluate](fiber)
    // Before anything is held.
    stackOf(fiber).push(end(this.run))
    return admitted(this.run, (fiber) => sends(this.run, loop, fiber), fiber)
  }
}

/** In place of the continuation that gets the metadata: a retry, when its delay is over. */
class Turn extends Frame {
  [A](meta: any, fiber: any): any {
    const { frame, run } = this
    return after(run.turns(Duration.toMillis(meta.duration)), (fiber) =>
      admitted(run, (fiber) => {
        if (textOf(frame) === texts!.meta) return sends(run, frame[A](meta, fiber), fiber)
        // A stream.
        run.sent()
        const stack = stackOf(fiber)
        if (!stack.some((frame) => frame.isEnd && frame.run === run)) stack.push(new Sinking(run))
        return frame[A](meta, fiber)
      }, fiber), fiber)
  }
}

/** Sinks until the stream is begun again. */
class Sinking extends Frame {
  [A](value: unknown, fiber: any, exit?: any): any {
    const next = fiber.getCont(A)
    if (next === undefined) return exit ?? Exit.succeed(value)
    const begins = value === undefined && typeof next.payload === "function" && next.payload.length === 0
    stackOf(fiber).push(begins ? end(this.run) : this)
    // The scope of the stream has just restored the context of the step.
    if (begins) this.run.enters(fiber)
    return next[A](value, fiber)
  }
}

/** The last continuation that gets the step of a schedule: an effect that runs again has the same, and texts are slow. */
let lastStep: unknown

const isStep = (frame: any): boolean => {
  if (frame.payload === lastStep) return true
  if (textOf(frame) !== texts!.step) return false
  lastStep = frame.payload
  return true
}

/** The run of the loop that evaluates or steps here, above this depth; else where a run can begin, if it can. */
export const lookUp = (fiber: AnyFiber, depth: number): Driven | number | undefined => {
  if (!isSupported()) return undefined
  const stack = stackOf(fiber)
  for (let at = stack.length - 1; at >= depth; at--) {
    const frame = stack[at]
    // What a send of a stream contains is a loop of its own.
    if (frame.isEnd) return frame.run.isSent ? undefined : frame.run
    if (frame instanceof Frame) return frame instanceof Sent || frame instanceof Sinking ? undefined : frame.run
    if (frame[A] === flatMapped && isStep(frame)) return at
  }
  return undefined
}

/** The loop begins with this run. */
export const begin = (run: Driven, fiber: AnyFiber, at: number): void => {
  const stack = stackOf(fiber)
  stack[at] = new Begin(run, stack[at])
}

/** Where the continuation is that gets the metadata of the step that runs here, above this depth. */
const consumerIn = (fiber: AnyFiber, depth: number): number | undefined => {
  if (!isSupported()) return undefined
  const stack = stackOf(fiber)
  for (let at = stack.length - 1; at > depth; at--) {
    if (stack[at] instanceof Frame || stack[at].isEnd) return undefined
    if (textOf(stack[at]) !== texts!.sleep) continue
    const consumer = stack[at - 1]
    return consumer.isRetry && !(consumer instanceof Frame) ? undefined : at - 1
  }
  return undefined
}

/** A continuation that only keeps the metadata, or its output: those of `Channel.repeat` and `Schedule.toStepWithSleep`. */
const keeping = /^\(?[\w$]+\)?\s*=>\s*(?:\{\s*[\w$]+\s*=\s*[\w$]+;?\s*\}|[\w$]+\.output)$/

/** What drives the step that runs here, above this depth: a loop that repeats what succeeded, one that retries, or none. */
export const drivenBy = (fiber: AnyFiber, depth: number): "repetition" | "retry" | undefined => {
  const at = consumerIn(fiber, depth)
  if (at === undefined) return undefined
  const frame = stackOf(fiber)[at]
  // `Effect.repeat` and `Effect.schedule` handle the end of the schedule themselves.
  return typeof frame?.[E] === "function" || keeping.test(textOf(frame) ?? "") ? "repetition" : "retry"
}

/** The run has begun with this failure: its next send begins when the sleep of this step is over. */
export const joinLate = (run: Driven, fiber: AnyFiber): boolean => {
  const at = consumerIn(fiber, 0)
  if (at === undefined) return false
  const stack = stackOf(fiber)
  const frame = stack[at]
  if (!(frame instanceof Frame)) {
    stack.splice(at, 1, textOf(frame) === texts!.meta ? end(run) : stopped(run), new Turn(run, frame))
  }
  return true
}

/** A stream whose schedule stops, or that is interrupted before it begins again. */
const stopped = (run: Driven): any =>
  Effect.onExitPrimitive(
    Effect.void,
    (exit) => exit._tag === "Failure" ? run.ends(exit, current()) as any : undefined
  )

/**
 * Whether a schedule begins with a constant, as those of Effect do that are not made of several: then no policy begins with
 * it. All others may have one inside.
 */
export const isConstant = (schedule: Schedule.Schedule<any, any, any, any>): boolean => {
  const args = "~effect/Effect/args"
  const mapped = (Effect.map(Effect.void, String) as any)[A]
  let begun = (schedule as any).step
  while (begun && begun._tag !== "Success" && (begun[A] ?? mapped) === mapped) begun = begun[args]
  return begun?._tag === "Success"
}

type Probe = Schedule.Schedule<undefined>

/** Learns the texts from a retry, and checks that one is seen as it should be: begun, two sends, ended, once each. */
const learn = (): void => {
  isLearned = true
  try {
    const found: any = {}
    let tries = 0
    const probe: Probe = Schedule.fromStep(Effect.withFiber((fiber: any) => {
      const stack = stackOf(fiber)
      found.step = textOf(stack[stack.length - 3])
      flatMapped = stack[stack.length - 3]?.[A]
      return Effect.succeed(() =>
        Effect.withFiber((fiber: any) => {
          const stack = stackOf(fiber)
          found.sleep = textOf(stack[stack.length - 1])
          found.meta = textOf(stack[stack.length - 2])
          return ++tries > 1 ? Cause.done(undefined) : Effect.succeed([undefined, Duration.zero])
        })
      )
    }) as any)
    Effect.runSync(Effect.exit(Effect.retry(Effect.fail("probe"), probe)))
    // Without the text of functions, as in Hermes, they all look the same.
    if (!found.step || !found.sleep || !found.meta || new Set(Object.values(found)).size < 3) return
    texts = found
    if (!isRight()) texts = undefined
  } catch {
    texts = undefined
  }
}

/** Whether a loop asks what it should: of two sends, the second of which succeeds, and of two that fail. */
const isRight = (): boolean => {
  let seen = ""
  const sees = (_: unknown, method: string) => (exit?: Exit.Exit<unknown, unknown>): void => {
    seen += method[0]
    if (method === "ends") seen += exit!._tag === "Success" ? "." : isDoneCause(exit!.cause) ? "!" : "?"
  }
  const run: any = new Proxy({}, { get: sees })
  const probe: Probe = Schedule.fromStep(Effect.withFiber((fiber: any) => {
    const at = lookUp(fiber, 0)
    if (typeof at !== "number") return Effect.succeed(() => Cause.done(undefined))
    begin(run, fiber, at)
    let n = 0
    return Effect.succeed(() => ++n > 1 ? Cause.done(undefined) : Effect.succeed([undefined, Duration.zero]))
  }) as any)
  let sends = 0
  const call = Effect.suspend(() => ++sends === 2 ? Effect.succeed("ok") : Effect.fail("probe"))
  const inside = Schedule.while(Schedule.passthrough(probe), () => Effect.succeed(true))
  const first = Effect.runSync(Effect.exit(Effect.retry(call, inside)))
  Effect.runSync(Effect.exit(Effect.retry(Effect.fail("probe"), probe)))
  return seen === "aesftaese." + "aesftaesfe!" && first._tag === "Success"
}

/** For tests: the probe runs again, or it is as if it had failed. Returns how to go back. */
export const forget = (isBroken = false): () => void => {
  const before = texts
  texts = undefined
  isLearned = isBroken
  return () => {
    texts = before
    isLearned = before !== undefined
  }
}
