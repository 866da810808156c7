/** What gates cost a call that succeeds: the first, each further one, all of them; in one fiber, and in a fiber per call. */
import { AdaptiveRateLimiter, awsStandard, RetryQuota, SendGate, withRetry } from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryBudget from "effect-retry/RetryBudget"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import * as effects from "./effects.ts"
import type { Subject } from "./harness.ts"
import { effectOf } from "./operations.ts"

class First extends SendGate.Service<First>()("bench/First") {}

const pass: SendGate.Pass = { settle: constVoid, cancel: constVoid }
let latestMillis = 0
const timing: SendGate.Pass = {
  settle: ({ nowMillis }) => {
    latestMillis = nowMillis
  },
  cancel: constVoid
}

/**
 * The first gate, which the others are compared with: one that does nothing, and two that read the clock. It is read at
 * most once before a send and once after it, whatever the number of gates.
 */
const firsts = {
  "a gate that does nothing": (send) => send.hold(pass),
  "a gate that reads the clock before": (send) => {
    latestMillis = Math.max(latestMillis, send.nowMillis)
    send.hold(pass)
  },
  "a gate that reads the clock after": (send) => send.hold(timing)
} as const satisfies Readonly<Record<string, SendGate.SendGate["enter"]>>

const firstLayer = (first: keyof typeof firsts) => SendGate.layer(First, { order: 0, enter: firsts[first] })

const quota = RetryQuota.layer()
const sharing = RetryQuota.layerStore(RetryBudget.all([RetryBudget.bucket(), RetryBudget.share()]))

export const oneGate = "a gate that does nothing"
export const allGates = "quota, cool-down, throttle, concurrency and limiter"

/**
 * The gates of the library, what each is added to (those that need the time to one that has read it), and the bytes that
 * a success may allocate more: the adaptive limiter replaces its record, whose numbers are 16 bytes each.
 */
const further = [
  ["CoolDown", oneGate, Layer.merge(quota, CoolDown.layer()), 64],
  ["ConcurrencyLimiter", oneGate, Layer.merge(quota, ConcurrencyLimiter.layer()), 64],
  ["ClientThrottle", "a gate that reads the clock after", Layer.merge(quota, ClientThrottle.layer()), 64],
  ["AdaptiveRateLimiter", "a gate that reads the clock after", Layer.merge(quota, AdaptiveRateLimiter.layer()), 208],
  ["RetryBudget.share", "a gate that reads the clock before", sharing, 64]
] as const satisfies ReadonlyArray<
  readonly [
    gate: string,
    first: keyof typeof firsts,
    layer: Layer.Layer<RetryQuota.RetryQuota>,
    atMostBytes: number
  ]
>

/** A further gate, by name, and what it is compared with. */
export const furtherGates = further.map(([gate, first, , atMostBytes]) => ({
  name: `${first}, and ${gate}`,
  first,
  gate,
  atMostBytes
}))
/** What reading the clock costs. */
export const clockReads = ["a gate that reads the clock before", "a gate that reads the clock after"] as const

const four = Layer.mergeAll(
  CoolDown.layer(),
  ClientThrottle.layer(),
  ConcurrencyLimiter.layer(),
  AdaptiveRateLimiter.layer()
)

/** What surrounds the calls, by name. */
export const surroundings = (): Promise<Readonly<Record<string, Context.Context<RetryQuota.RetryQuota>>>> => {
  const layers: Record<string, Layer.Layer<RetryQuota.RetryQuota>> = {
    [effects.ours]: quota,
    [allGates]: Layer.merge(quota, four)
  }
  for (const first of Object.keys(firsts) as Array<keyof typeof firsts>) {
    layers[first] = Layer.merge(quota, firstLayer(first))
  }
  further.forEach(([, first, layer], index) => {
    layers[furtherGates[index]!.name] = Layer.merge(layer, firstLayer(first))
  })
  return Effect.runPromise(Effect.scoped(Effect.all(
    Object.fromEntries(Object.entries(layers).map(([name, layer]) => [name, Layer.build(layer)]))
  )))
}

/** A call that succeeds. */
export const call = (): Effect.Effect<unknown, unknown, RetryQuota.RetryQuota> =>
  withRetry(effectOf("success"), awsStandard)

/** All calls in one fiber, or a fiber for each. */
export const gates = async (fibers: "one fiber" | "a fiber per call"): Promise<ReadonlyArray<Subject>> => {
  const contexts = await surroundings()
  const subject = (name: string, subject: ReturnType<typeof call>): Subject => {
    const context = contexts[name] ?? contexts[effects.ours]!
    if (fibers === "one fiber") {
      return {
        name,
        run: (operations) => Effect.runPromise(Effect.provideContext(effects.repeated(subject, operations), context))
      }
    }
    const run = Effect.runForkWith(context)
    return {
      name,
      run: async (operations) => {
        for (let n = 0; n < operations; n++) run(subject)
      }
    }
  }
  const floors = [effects.bare, effects.floorName].map((name) =>
    subject(name, effects.retrying[name]!(effectOf("success")))
  )
  return [...floors, ...Object.keys(contexts).map((name) => subject(name, call()))]
}
