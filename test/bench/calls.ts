/** Calls, one after the other: what retrying adds to a call that succeeds, to one that fails twice, to one that must not be retried. */
import * as Effect from "effect/Effect"
import * as effects from "./effects.ts"
import type { Subject } from "./harness.ts"
import { answered, attemptsMade, effectOf, functionOf, type Script } from "./operations.ts"
import * as peers from "./peers.ts"

export const bareFunction = "bare async function"
export const smithy = "@smithy/core StandardRetryStrategy"
export const cockatiel = "cockatiel"
export const pRetry = "p-retry"
export const asyncRetry = "async-retry"

type Context = Awaited<ReturnType<typeof effects.contextOf>>

/** Enough tokens for twice the cost of a retry in every call. */
const ample = { capacity: 1e12 }

const nothing = () => undefined

/** Makes the calls one after the other. */
const serially = (call: () => Promise<unknown>) => async (operations: number) => {
  for (let started = 0; started < operations; started++) await call()
}

const serialCatching = (call: () => Promise<unknown>) => async (operations: number) => {
  for (let started = 0; started < operations; started++) {
    try {
      await call()
    } catch {
      nothing()
    }
  }
}

const callers: Readonly<Record<string, peers.Caller>> = {
  [bareFunction]: (send) => send,
  [smithy]: peers.smithy(),
  [cockatiel]: peers.cockatiel(),
  [pRetry]: peers.pRetryOf(),
  [asyncRetry]: peers.asyncRetryOf()
}

/** Sends until it is answered: what a call is without a library. */
const insistent: peers.Caller = (send) => async () => {
  for (;;) {
    try {
      return await send()
    } catch {
      nothing()
    }
  }
}

/** The least that a call needs. */
const bareOf = (script: Script): effects.Retrying => {
  if (script !== "twice") return effects.retrying[effects.bare]!
  return (operation) => {
    const again: Effect.Effect<unknown> = Effect.catch(operation, () => again)
    return again
  }
}

/** `{ times: 2 }` retries any failure, so it is left out where nothing may be retried. */
const ofScript = (script: Script): ReadonlyArray<[string, effects.Retrying]> =>
  Object.entries({ ...effects.retrying, [effects.bare]: bareOf(script) })
    .filter(([name]) => script !== "invalid" || name !== effects.times)

const effectSubjects = (script: Script, context: Context, ways = ofScript(script)): Array<Subject> =>
  ways.map(([name, retrying]) => {
    const call = retrying(effectOf(script))
    const subject = script === "invalid" ? effects.settled(call) : call
    return {
      name,
      run: (operations) => Effect.runPromise(Effect.provideContext(effects.repeated(subject, operations), context))
    }
  })

const promiseSubjects = (script: Script): Array<Subject> =>
  Object.entries(callers).map(([name, caller]) => {
    const call = (name === bareFunction && script === "twice" ? insistent : caller)(functionOf(script))
    const run = script === "invalid" ? serialCatching(call) : serially(call)
    return { name, run: script === "twice" ? (operations) => peers.withoutTimers(() => run(operations)) : run }
  })

/** Fails unless every subject makes as many attempts as it should. */
export const checked = async (subjects: ReadonlyArray<Subject>, attempts: number): Promise<ReadonlyArray<Subject>> => {
  for (const { name, run } of subjects) {
    attemptsMade()
    await run(10)
    const made = attemptsMade()
    if (made !== 10 * attempts) throw new Error(`${name} made ${made} attempts of ${10 * attempts}`)
  }
  return subjects
}

/** All libraries on one script. No delay takes any time. */
export const synchronous = async (script: Script): Promise<ReadonlyArray<Subject>> => {
  const [quota, clock] = script === "twice" ? [ample, effects.sleepless] : [{}, undefined]
  const refilled = await effects.contextOf({ ...quota, refillPerSecond: 1 }, clock)
  const subjects = [
    ...effectSubjects(script, await effects.contextOf(quota, clock)),
    ...effectSubjects(script, refilled, [[effects.refilling, effects.retrying[effects.ours]!]]),
    ...promiseSubjects(script)
  ]
  return checked(subjects, script === "twice" ? 3 : 1)
}

/** An operation that is a promise, in one fiber for all calls. */
export const asynchronous = async (): Promise<ReadonlyArray<Subject>> => {
  const context = await effects.contextOf({})
  const operation: effects.Operation = Effect.promise(answered)
  const ofEffect = Object.entries(effects.retrying).map(([name, retrying]): Subject => {
    const call = retrying(operation)
    return {
      name,
      run: (operations) => Effect.runPromise(Effect.provideContext(effects.repeated(call, operations), context))
    }
  })
  const ofPromise = Object.entries(callers).map(([name, caller]) => ({ name, run: serially(caller(answered)) }))
  return checked([...ofEffect, ...ofPromise], 1)
}

/** A caller of promises: a fiber for each call. */
export const fromPromises = async (): Promise<ReadonlyArray<Subject>> => {
  const run = Effect.runPromiseWith(await effects.contextOf({}))
  const operation: effects.Operation = Effect.promise(answered)
  const ofEffect = Object.entries(effects.retrying).map(([name, retrying]): Subject => {
    const call = retrying(operation)
    return { name, run: serially(() => run(call)) }
  })
  const ofPromise = Object.entries(callers).map(([name, caller]) => ({ name, run: serially(caller(answered)) }))
  return checked([...ofEffect, ...ofPromise], 1)
}
