import * as Effect from "effect/Effect"
import type { Scenario } from "./scenario.ts"
import { type Look, Running, stalledOrDefect } from "./simulation.ts"
import { millis } from "./units.ts"

/**
 * What becomes of the calls after an outage.
 *
 * - `"recovers"`: within the run they return to nine tenths of the share of successes before it.
 * - `"limps"`: they do not, but the backlog shrinks: they will, after the run.
 * - `"collapses"`: they do not, and the backlog does not shrink: the outage is over, but its effect lasts.
 *
 * @category models
 * @since 0.1.0
 */
export type Verdict = "recovers" | "limps" | "collapses"

/** This many consecutive buckets must be healthy. */
const wellBuckets = 5
const well = 0.9
/** How long the backlog is watched for shrinking, and how long before that there is no verdict. */
const watchedMillis = 20_000
const settlingMillis = 2000

const shareOf = (from: Look, to: Look): number => {
  const succeeded = to.succeeded - from.succeeded
  const ended = succeeded + to.failed - from.failed
  return ended === 0 ? 0 : succeeded / ended
}

/** Watches a run, bucket by bucket, until its verdict is clear. */
class Judge {
  private readonly beginsMillis: number
  private readonly endsMillis: number
  private readonly settledMillis: number
  private readonly runsUntilMillis: number
  private last: Look = { atMillis: 0, succeeded: 0, failed: 0, waiting: 0 }
  private readonly first = this.last
  private usual = 1
  private wells = 0
  private settled: Look | undefined = undefined

  constructor({ duration, fleets, services }: Scenario) {
    const outages = services.flatMap(({ outages }) => outages)
    this.beginsMillis = Math.min(...outages.map(({ from }) => millis(from)))
    this.endsMillis = Math.max(0, ...outages.map(({ to }) => millis(to)))
    const timeouts = fleets.map(({ timeout }) => timeout === undefined ? 0 : millis(timeout))
    this.settledMillis = this.endsMillis + settlingMillis + 2 * Math.max(...timeouts)
    this.runsUntilMillis = millis(duration)
  }

  /** The verdict after one more bucket, if it is clear. */
  look(now: Look): Verdict | undefined {
    const share = shareOf(this.last, now)
    this.last = now
    if (now.atMillis <= this.beginsMillis) this.usual = shareOf(this.first, now)
    if (now.atMillis <= this.endsMillis) return undefined
    this.wells = share >= well * this.usual ? this.wells + 1 : 0
    if (this.wells === wellBuckets) return "recovers"
    if (now.atMillis < this.settledMillis) return undefined
    this.settled ??= now
    return now.atMillis - this.settled.atMillis < watchedMillis ? undefined : this.predicted(this.settled, now)
  }

  /** Whether the backlog shrinks, and how long that takes at this pace. */
  private predicted(from: Look, now: Look): Verdict {
    const perMilli = (from.waiting - now.waiting) / (now.atMillis - from.atMillis)
    // NaN where no time has passed: then nothing has shrunk.
    if (!(perMilli > 0)) return "collapses"
    return now.atMillis + now.waiting / perMilli <= this.runsUntilMillis ? "recovers" : "limps"
  }

  /** The run has ended before a verdict. */
  get atEnd(): Verdict {
    return this.wells > 0
      ? "recovers"
      : this.settled === undefined
      ? "collapses"
      : this.predicted(this.settled, this.last)
  }
}

const judged = (running: Running, judge: Judge): Verdict => {
  while (true) {
    const now = running.nextBucket()
    if (now === undefined) return judge.atEnd
    const verdict = judge.look(now)
    if (verdict !== undefined) return verdict
  }
}

/**
 * The majority verdict of several runs, each with its own seed. A run ends as soon as its verdict is clear, and runs that could
 * no longer change the majority are skipped. `onRun` gets the attempts of each run.
 */
export const judgeMost = Effect.fnUntraced(function*(
  scenario: Scenario,
  runs: number,
  onRun?: (attempts: number) => void
) {
  const counts = { recovers: 0, limps: 0, collapses: 0 }
  for (let run = 0; run < runs; run++) {
    const seeded = { ...scenario, seed: scenario.seed + run }
    const running = new Running(seeded)
    const verdict = yield* Effect.try({ try: () => judged(running, new Judge(seeded)), catch: stalledOrDefect })
    onRun?.(running.attempts)
    if (++counts[verdict] * 2 > runs) return verdict
    yield* Effect.yieldNow
  }
  // No majority: the one between the others.
  return counts.recovers > counts.collapses ? "recovers" : counts.collapses > counts.recovers ? "collapses" : "limps"
})
