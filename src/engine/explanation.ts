import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Random from "effect/Random"
import { nameOf } from "../internal/classification/errorName.ts"
import { CurrentClassifier, type RetryClassifier } from "../RetryClassifier.ts"
import type { StopReason } from "../RetryDecision.ts"
import type { Compiled } from "./compiled.ts"
import { Decider } from "./decider.ts"
import { CallEnvironment } from "./environment.ts"
import { FreeRun } from "./run.ts"

/** Surroundings without a fiber: all random draws are the same, and time moves by the delays alone. */
class DryEnvironment extends CallEnvironment {
  elapsedMillis = 0

  constructor(draw: number, classifier: RetryClassifier | undefined) {
    const context = Context.make(Random.Random, { nextDoubleUnsafe: () => draw, nextIntUnsafe: () => Math.floor(draw) })
    super(classifier === undefined ? context : Context.add(context, CurrentClassifier, classifier), undefined, [])
  }

  override get nowMillis(): number {
    return this.elapsedMillis
  }
}

/** A call whose attempts all fail like this. */
interface FailingCall {
  readonly compiled: Compiled
  readonly error: unknown
  /** How many have failed. */
  readonly attempt: number
  readonly classifier: RetryClassifier | undefined
}

/** A retry, why there is none, or `undefined` if that is certain only when it runs. */
type Outcome = { readonly delayMillis: number; readonly cost: number } | StopReason | undefined

/** What the policy decides about the last of the attempts if all random draws are the same, without running anything. */
const decidedAt = ({ attempt, classifier, compiled, error }: FailingCall, draw: number): Outcome => {
  if (compiled.live !== undefined) return undefined
  const environment = new DryEnvironment(draw, classifier)
  const run = new FreeRun(environment)
  const decider = new Decider(compiled, run)
  for (;;) {
    run.record(error)
    const goes = decider.answers()
    if (typeof goes !== "boolean") return undefined
    if (!goes) return decider.reason
    const { cost, delayMillis } = decider
    if (run.attempt === attempt) return { cost, delayMillis }
    environment.elapsedMillis += delayMillis
  }
}

type Retrying = Exclude<Outcome, StopReason | undefined>

/** The last draw that still retries, between one that does and one that does not. */
const edgeOf = (call: FailingCall, first: Retrying, [from, to]: readonly [number, number]): Retrying => {
  let [found, retries, stops] = [first, from, to]
  for (let step = 0; step < 50; step++) {
    const draw = (retries + stops) / 2
    const outcome = decidedAt(call, draw)
    if (typeof outcome === "object") [found, retries] = [outcome, draw]
    else stops = draw
  }
  return found
}

/** Milliseconds, or seconds from one on. */
const shown = (leastMillis: number, mostMillis: number): string => {
  if (mostMillis === 0) return "immediately"
  const [unit, of] = mostMillis < 1000 ? ["ms", 1] as const : ["s", 1000] as const
  const [least, most] = [leastMillis, mostMillis].map((millis) => Number((millis / of).toPrecision(4)))
  return `after ${least === most ? "" : `${least} to `}${most} ${unit}`
}

/** A value and its line, which a comparison of two values does not see. */
const worded = <A extends object>(value: A, line: () => string): A & { readonly toString: () => string } =>
  Object.defineProperty(value, "toString", { value: line })

const wouldRetry = (low: Retrying, high: Retrying, otherwise?: StopReason) => {
  const [leastMillis, mostMillis] = [low.delayMillis, high.delayMillis].sort((a, b) => a - b) as [number, number]
  const tokens = Math.max(low.cost, high.cost)
  const price = tokens === 0 ? "" : ` at ${tokens} token${tokens === 1 ? "" : "s"}`
  const end = otherwise === undefined ? "" : `, or stop: ${otherwise}`
  const [least, most] = [Duration.millis(leastMillis), Duration.millis(mostMillis)]
  return worded(
    { _tag: "WouldRetry", least, most, tokens, otherwise } as const,
    () => `would retry ${shown(leastMillis, mostMillis)}${price}${end}`
  )
}

/** What a reason means, after the name of the error. */
const meanings: { readonly [reason in StopReason]?: string } = {
  "unknown-error": "the classifier does not know it",
  "not-safe": "it may have been processed, and a second send could do it twice",
  final: "the same call would fail again",
  vetoed: "a rule forbids it",
  condition: "the condition does not hold",
  "max-attempts": "the attempts are used up",
  deadline: "the retry would begin too late",
  "retry-after-too-long": "the server asks for a longer wait than the policy allows",
  schedule: "there is no further delay"
}

const wouldStop = (reason: StopReason, error: unknown) =>
  worded({ _tag: "WouldStop", reason } as const, () => `would stop: ${reason}, ${nameOf(error)}: ${meanings[reason]}`)

const uncertain = () => worded({ _tag: "Uncertain" } as const, () => uncertainty)

const uncertainty = "is certain only when it runs: the policy asks a schedule, a service or a setting"

/** What a policy would do: what it decides at the least random draw and at the greatest. */
export const explained = (call: FailingCall) => {
  const [low, high] = [decidedAt(call, 0), decidedAt(call, 1)]
  if (low === undefined || high === undefined) return uncertain()
  if (typeof low === "object") {
    return typeof high === "object" ? wouldRetry(low, high) : wouldRetry(low, edgeOf(call, low, [0, 1]), high)
  }
  return typeof high === "object" ? wouldRetry(edgeOf(call, high, [1, 0]), high, low) : wouldStop(low, call.error)
}
