import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** The state of the service for a period. */
export interface Phase {
  readonly name: string
  readonly seconds: number
  /**
   * The requests per second that are let in; the rest is answered with
   * 429.
   */
  readonly limitPerSecond: number
  /**
   * How long one request keeps the service busy: 12 ms is about 83
   * requests per second.
   */
  readonly workMillis: number
  /**
   * The share of the accepted requests that is answered with 503
   * immediately.
   */
  readonly failing: number
}

const usual: Omit<Phase, "name" | "seconds"> = {
  limitPerSecond: 100,
  workMillis: 12,
  failing: 0.1
}

/**
 * The events that every fleet meets. After the outage, the service has
 * lost its caches and is slow at first.
 */
export const outage: ReadonlyArray<Phase> = [
  { ...usual, name: "service up", seconds: 3 },
  {
    ...usual,
    name: "service throttles",
    seconds: 4,
    limitPerSecond: 30
  },
  { ...usual, name: "service up", seconds: 8 },
  { ...usual, name: "service down", seconds: 4, failing: 1 },
  { ...usual, name: "service slow", seconds: 3, workMillis: 30 },
  { ...usual, name: "service back", seconds: 8 }
]

/** How long the script lasts. */
export const totalSeconds = (script: ReadonlyArray<Phase>): number =>
  script.reduce((total, phase) => total + phase.seconds, 0)

/** The phase at a time; after the end, the last. */
export const phaseAt = (
  script: ReadonlyArray<Phase>,
  elapsedSeconds: number
): Phase => {
  let end = 0
  return script.find((phase) =>
    elapsedSeconds < (end += phase.seconds)
  ) ?? script.at(-1)!
}

/**
 * Seconds of the monotonic clock, unaffected by changes to the wall
 * clock.
 */
export const now: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos) / 1e9
)
