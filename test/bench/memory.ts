/**
 * Bytes that a call keeps while it waits for its retry, or that a resource keeps. Prints them. Arguments: the subject, how
 * many.
 */
import * as Effect from "effect/Effect"
import { setImmediate as turn } from "node:timers/promises"
import { asyncRetry, cockatiel, pRetry, smithy } from "./calls.ts"
import * as effects from "./effects.ts"
import { sleeping } from "./names.ts"
import { effectOf, functionOf } from "./operations.ts"
import * as peers from "./peers.ts"
import * as resources from "./resources.ts"

/** No call wakes up while bytes are counted. */
const waitMillis = 1_000_000

const context = await effects.contextOf({ capacity: 1e12 })

/** None of the calls is finished when the next begins. */
const failing = functionOf("transient")

const forked = (call: Effect.Effect<unknown, unknown, any>) => () => {
  Effect.runForkWith(context)(call)
}

const called = (caller: peers.Caller) => {
  const call = caller(failing)
  return () => {
    void call()
  }
}

const begin: Record<string, () => void> = {
  [sleeping]: forked(Effect.sleep(waitMillis)),
  [smithy]: called(peers.smithy(waitMillis)),
  [cockatiel]: called(peers.cockatiel(waitMillis)),
  [pRetry]: called(peers.pRetryOf(waitMillis)),
  [asyncRetry]: called(peers.asyncRetryOf(waitMillis))
}
for (const [name, retrying] of Object.entries(effects.retryingAfter(waitMillis))) {
  begin[name] = forked(retrying(effectOf("transient")))
}

const kept = async (start: () => void, calls: number): Promise<number> => {
  for (let n = 0; n < 200; n++) start()
  await turn()
  for (let n = 0; n < 3; n++) gc!()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < calls; n++) start()
  await turn()
  await turn()
  for (let n = 0; n < 3; n++) gc!()
  return (process.memoryUsage().heapUsed - before) / calls
}

const [, , name, calls] = process.argv
if (name === undefined) console.log(JSON.stringify(Object.keys(begin)))
else if (name === "resources") console.log(JSON.stringify(await resources.kept(Number(calls))))
else console.log(await kept(begin[name]!, Number(calls)))
process.exit(0)
