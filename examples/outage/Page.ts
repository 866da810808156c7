import { awsStandard } from "effect-retry"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import type * as Fleet from "./Fleet.ts"
import { percentile } from "./Report.ts"

/**
 * The policies of the fleets by their names, as the command line takes
 * them.
 */
export const policies: { readonly [fleet: string]: string | object } = {
  "no retry": "none",
  "naive retry": {
    steps: [{ fixed: { delay: 0 } }, { maxAttempts: 4 }]
  },
  awsStandard: "awsStandard",
  awsAdaptive: "awsAdaptive",
  "quota and gates": {
    ...JSON.parse(JSON.stringify(awsStandard)),
    quota: {},
    concurrency: { maxWait: "1 second" },
    coolDown: {}
  }
}

const root = fileURLToPath(new URL("../..", import.meta.url))

/** `effect-retry` from the source, or why it failed. */
const effectRetry = (args: ReadonlyArray<string>) =>
  Effect.callback<void, string>((resume) => {
    const child = execFile(
      process.execPath,
      ["--import", "tsx", "lab/src/cli/bin.ts", ...args],
      { cwd: root },
      (error, _, stderr) =>
        resume(
          error === null
            ? Effect.void
            : Effect.fail(stderr.trim() || error.message)
        )
    )
    return Effect.sync(() => child.kill())
  })

const millis = (
  latencies: ReadonlyArray<number>,
  share: number
): number =>
  percentile([...latencies].sort((a, b) => a - b), share) * 1000

/**
 * What `effect-retry backtest` reads: the seconds of a fleet, as many
 * as another has.
 */
export const measured = (
  { arrivals, latencies, series }: Fleet.Tally,
  seconds: number
) => ({
  series: Array.from(
    { length: seconds },
    (_, second) =>
      series[second] ??
        { calls: 0, attempts: 0, succeeded: 0, failed: 0 }
  ),
  arrivals,
  ...latencies.length > 0 &&
    { p50: millis(latencies, 0.5), p99: millis(latencies, 0.99) }
})

/**
 * Writes what was measured, and a page that compares it with the
 * prediction of the scenario `demo`. Returns the path of the page, in a
 * new folder among the temporary files of the system.
 */
export const write = Effect.fnUntraced(
  function*(
    fleets: ReadonlyArray<Pick<Fleet.Fleet, "name" | "tally">>
  ) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* Effect.orDie(
      fs.makeTempDirectory({ prefix: "outage-" })
    )
    const page = path.join(folder, "outage.html")
    const seconds = Math.max(
      ...fleets.map(({ tally }) => tally.series.length)
    )
    const args = yield* Effect.forEach(fleets, ({ name, tally }) => {
      const file = path.join(folder, `${name}.json`)
      const policy = policies[name]!
      return Effect.as(
        Effect.orDie(
          fs.writeFileString(
            file,
            JSON.stringify(measured(tally, seconds))
          )
        ),
        [
          "--measured",
          file,
          "--policy",
          typeof policy === "string" ? policy : JSON.stringify(policy)
        ]
      )
    })
    yield* effectRetry([
      "backtest",
      "demo",
      ...args.flat(),
      "--runs",
      "5",
      "--report",
      page
    ]).pipe(
      Effect.onError(() =>
        Effect.orDie(fs.remove(folder, { recursive: true }))
      )
    )
    return page
  }
)
