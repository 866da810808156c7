import * as Duration from "effect/Duration"
import { nameOf } from "../../internal/classification/errorName.ts"
import { decidedAt, type FailingCall, type Outcome, type StopReason } from "../dryRun.ts"

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

const wouldRetry = (low: Retrying, high: Retrying, otherwise?: StopReason) => {
  const [leastMillis, mostMillis] = [low.delayMillis, high.delayMillis].sort((a, b) => a - b) as [number, number]
  const tokens = Math.max(low.cost, high.cost)
  const price = tokens === 0 ? "" : ` at ${tokens} token${tokens === 1 ? "" : "s"}`
  const end = otherwise === undefined ? "" : `, or stop: ${otherwise}`
  return {
    _tag: "WouldRetry",
    least: Duration.millis(leastMillis),
    most: Duration.millis(mostMillis),
    tokens,
    otherwise,
    toString: () => `would retry ${shown(leastMillis, mostMillis)}${price}${end}`
  } as const
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

const wouldStop = (reason: StopReason, error: unknown) => ({
  _tag: "WouldStop",
  reason,
  toString: () => `would stop: ${reason}, ${nameOf(error)}: ${meanings[reason]}`
} as const)

const uncertain = {
  _tag: "Uncertain",
  toString: () => "is certain only when it runs: the policy asks a schedule, a service or a setting"
} as const

/** What a policy would do: what it decides at the least random draw and at the greatest. */
export const explained = (call: FailingCall) => {
  const [low, high] = [decidedAt(call, 0), decidedAt(call, 1)]
  if (low === undefined || high === undefined) return uncertain
  if (typeof low === "object") {
    return typeof high === "object"
      ? wouldRetry(low, high)
      : wouldRetry(low, edgeOf(call, low, [0, 1]), high)
  }
  return typeof high === "object"
    ? wouldRetry(edgeOf(call, high, [1, 0]), high, low)
    : wouldStop(low, call.error)
}
