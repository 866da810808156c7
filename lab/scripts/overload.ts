/**
 * The comparison of docs/evidence/compared.md: what ends an outage, run by the simulator. `npx tsx lab/scripts/overload.ts` runs all
 * of it, for an hour or so, and writes the figures to docs/overload.json; names of scenarios run those alone,
 * `--seeds=5` uses fewer seeds than 20; `--resume` runs only missing cells, and `--draw` none: it redraws the pictures
 * from the saved figures.
 */
import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { multiples, type Point } from "../src/cli/charts/multiples.ts"
import { spreadOf } from "../src/simulator/spread.ts"

const root = new URL("../../", import.meta.url)
const dataFile = new URL("docs/overload.json", root)
const coursesFile = new URL("docs/overload-courses.json", root)

/** Retry mode standard of the AWS SDKs: three attempts, full jitter from one second, 500 tokens for each process; hints are followed. */
const steps = [
  { exponential: { base: 1000, cap: "20 seconds", jitter: "full" } },
  { maxAttempts: 3 },
  "whileRetryable",
  "honorRetryAfter",
  { quotaGated: { cost: 5, timeoutCost: 10 } }
]

/** What is compared. All but the first have the quota. */
export const mechanisms: Readonly<Record<string, object>> = {
  nothing: { steps: [{ fixed: { delay: 0 } }, { maxAttempts: 1 }] },
  quota: { steps },
  throttle: { steps, throttle: {} },
  AIMD: { steps, concurrency: { published: "aimd" } },
  Gradient2: { steps, concurrency: { published: "gradient2" } },
  Vegas: { steps, concurrency: { published: "vegas" } },
  limit: { steps, concurrency: {} }
}

/** A scenario of the comparison. */
interface Setting {
  /** The share of the calls of the first fleet that the service could have answered. */
  readonly possible: number
  /** When the fault begins and ends, in seconds; without an end there is nothing to recover from. */
  readonly fault: readonly [fromSeconds: number, toSeconds: number] | undefined
}

/** In the order of the page. */
export const settings: Readonly<Record<string, Setting>> = {
  outage: { possible: 190 / 200, fault: [20, 30] },
  brownout: { possible: (90 * 240 + 60 * 150) / (150 * 240), fault: [30, 90] },
  "cool-down-herd": { possible: 90 / 100, fault: [20, 30] },
  "noisy-neighbor": { possible: 1, fault: [20, 50] },
  "two-fleets": { possible: (60 * 280 + 60 * 240) / (120 * 280), fault: [20, 80] },
  "thin-fleet": { possible: 110 / 120, fault: [20, 30] },
  "near-the-timeout": { possible: 1, fault: undefined },
  "broken-instance": { possible: 1, fault: [20, 80] },
  "load-shedding": { possible: (90 * 280 + 60 * 150) / (150 * 280), fault: [30, 90] }
}

/** Processes of each fleet, and how many seeds they are run with: fewer where a run takes long. */
export const sizes = [{ processes: 1, seeds: 20 }, { processes: 10, seeds: 20 }, { processes: 100, seeds: 20 }, {
  processes: 1000,
  seeds: 5
}] as const

/** Runs of one scenario with one mechanism and one number of processes, seed by seed from 1 on. */
export interface Cell {
  /** Calls that succeeded, in percent of those that the service could have answered. */
  readonly served: ReadonlyArray<number>
  /** Seconds after the fault until nine tenths of the share before it succeed, to the end of the run; `null`: not in the run. */
  readonly recovered: ReadonlyArray<number | null>
  /** The 99th percentile of the calls that succeeded, retries included, in milliseconds. */
  readonly p99: ReadonlyArray<number>
}

/** By scenario, mechanism and number of processes. */
export type Figures = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, Cell>>>>>>

/** A scenario with a mechanism in its first fleet, and this many processes in each. */
export const inputOf = (scenario: string, mechanism: string, processes: number, seed: number): object => {
  const input = JSON.parse(fs.readFileSync(new URL(`lab/scenarios/${scenario}.json`, root), "utf8"))
  const fleets = input.fleets.map((fleet: { readonly processesOf?: string }, index: number) => ({
    ...fleet,
    ...fleet.processesOf === undefined && { processes },
    ...index === 0 && { policy: structuredClone(mechanisms[mechanism]) }
  }))
  return { ...input, seed, fleets }
}

type Bucket = Simulator.SimulationResult["clients"][number]["series"][number]

const shareOf = (buckets: ReadonlyArray<Bucket>): number =>
  buckets.reduce((sum, { succeeded }) => sum + succeeded, 0) / buckets.reduce((sum, { calls }) => sum + calls, 0)

/** Seconds after the fault from which on every two seconds have 90 % of the share of successes before it. */
const recoveredAfter = (
  buckets: ReadonlyArray<Bucket>,
  [fromSeconds, toSeconds]: readonly [number, number]
): number | null => {
  const before = shareOf(buckets.slice(0, fromSeconds))
  const after = buckets.slice(toSeconds)
  const seconds = after.map((_, second) => shareOf(after.slice(second, second + 2)) < 0.9 * before).lastIndexOf(true) +
    1
  return seconds >= after.length - 1 ? null : seconds
}

const say = (line: string) => process.stdout.write(`${line}\n`)

const round = (value: number, digits: number): number => Number(value.toFixed(digits))

/** One run: what is kept of it. */
export const outcome = Effect.fnUntraced(
  function*(scenario: string, mechanism: string, processes: number, seed: number) {
    const { fault, possible } = settings[scenario]!
    const result = yield* Effect.flatMap(
      Simulator.decode(inputOf(scenario, mechanism, processes, seed)),
      (decoded) => Simulator.run(decoded)
    )
    const { series, totals } = result.clients[0]!
    const seconds = series.filter(({ fromMillis }) =>
      fromMillis < Number.parseInt(String(result.scenario.duration)) * 1000
    )
    return {
      served: round(100 * totals.succeeded / (totals.calls * possible), 1),
      recovered: fault === undefined ? 0 : recoveredAfter(seconds, fault),
      p99: round(totals.latency.p99Millis ?? 0, 0)
    }
  }
)

/** The figures that are committed. */
export const read = (): Figures => fs.existsSync(dataFile) ? JSON.parse(fs.readFileSync(dataFile, "utf8")) : {}

/** With a line for each cell. */
const textOf = (figures: Figures): string => {
  const object = (entries: ReadonlyArray<readonly [string, string]>, indent: string) =>
    `{\n${entries.map(([key, value]) => `${indent}  ${JSON.stringify(key)}: ${value}`).join(",\n")}\n${indent}}`
  return `${
    object(
      Object.keys(settings).flatMap((scenario) => {
        const rows = figures[scenario]
        return rows === undefined ? [] : [
          [
            scenario,
            object(
              Object.entries(rows).map(([mechanism, cells]) => [
                mechanism,
                object(Object.entries(cells).map(([size, cell]) => [size, JSON.stringify(cell)]), "    ")
              ]),
              "  "
            )
          ] as const
        ]
      }),
      ""
    )
  }\n`
}

/** The arguments of the command line. */
interface Asked {
  readonly scenarios: ReadonlyArray<string>
  /** The most seeds. */
  readonly seeds: number
  /** Whether to skip cells that have results. */
  readonly resumes: boolean
}

type Found = Record<string, Record<string, Record<string, Cell>>>

const cellOf = Effect.fnUntraced(
  function*(scenario: string, mechanism: string, processes: number, seeds: number) {
    const outcomes = yield* Effect.forEach(
      Array.from({ length: seeds }, (_, index) => index + 1),
      (seed) => outcome(scenario, mechanism, processes, seed)
    )
    const cell: Cell = {
      served: outcomes.map(({ served }) => served),
      recovered: outcomes.map(({ recovered }) => recovered),
      p99: outcomes.map(({ p99 }) => p99)
    }
    return cell
  }
)

const measured = Effect.fnUntraced(function*({ resumes, scenarios, seeds: most }: Asked) {
  const cells = sizes.flatMap(({ processes, seeds }) =>
    scenarios.flatMap((scenario) =>
      Object.keys(mechanisms).map((mechanism) => ({ mechanism, processes, scenario, seeds }))
    )
  )
  for (const { mechanism, processes, scenario, seeds } of cells) {
    if (resumes && read()[scenario]?.[mechanism]?.[processes] !== undefined) continue
    const cell = yield* cellOf(scenario, mechanism, processes, Math.min(seeds, most))
    const all = structuredClone(read()) as Found
    const rows = (all[scenario] ??= {})[mechanism] ??= {}
    rows[processes] = cell
    fs.writeFileSync(dataFile, textOf(all))
    const { mean } = spreadOf(cell.served)!
    say(`${scenario}, ${mechanism}, ${processes} processes: ${mean.toFixed(1)} % of the possible`)
  }
})

/** The course of one scenario with each mechanism: the share of the calls that succeed, every two seconds, in percent. */
interface Course {
  readonly processes: number
  readonly mechanisms: Readonly<
    Record<
      string,
      {
        readonly mean: ReadonlyArray<number>
        readonly low: ReadonlyArray<number>
        readonly high: ReadonlyArray<number>
      }
    >
  >
}

export type Courses = Readonly<Record<string, Course>>

const courseSizes = { outage: 100, brownout: 10 } as const
const courseSeconds = 2

const sharesOf = Effect.fnUntraced(
  function*(scenario: string, mechanism: string, processes: number, seed: number) {
    const result = yield* Effect.flatMap(
      Simulator.decode(inputOf(scenario, mechanism, processes, seed)),
      (decoded) => Simulator.run(decoded)
    )
    const { series } = result.clients[0]!
    const count = Math.floor(Number.parseInt(String(result.scenario.duration)) / courseSeconds)
    return Array.from(
      { length: count },
      (_, index) => 100 * shareOf(series.slice(index * courseSeconds, (index + 1) * courseSeconds))
    )
  }
)

const courses = Effect.fnUntraced(function*({ resumes, scenarios, seeds: most }: Asked) {
  for (const [scenario, processes] of Object.entries(courseSizes)) {
    if (!scenarios.includes(scenario) || (resumes && readCourses()[scenario] !== undefined)) continue
    const found: Record<string, Course["mechanisms"][string]> = {}
    for (const mechanism of Object.keys(mechanisms)) {
      const runs = yield* Effect.forEach(
        Array.from({ length: most }, (_, index) => index + 1),
        (seed) => sharesOf(scenario, mechanism, processes, seed)
      )
      const spreads = runs[0]!.map((_, index) => spreadOf(runs.map((run) => run[index]!))!)
      found[mechanism] = {
        mean: spreads.map(({ mean }) => Math.round(mean)),
        low: spreads.map(({ low }) => Math.round(low)),
        high: spreads.map(({ high }) => Math.round(high))
      }
      say(`${scenario} over time, ${mechanism}, ${processes} processes`)
    }
    const all: Courses = { ...readCourses(), [scenario]: { processes, mechanisms: found } }
    fs.writeFileSync(coursesFile, `${JSON.stringify(all)}\n`)
  }
})

const readCourses = (): Courses => fs.existsSync(coursesFile) ? JSON.parse(fs.readFileSync(coursesFile, "utf8")) : {}

const percentAxis = (name: string) => ({
  name,
  min: 0,
  max: 105,
  ticks: [0, 50, 100],
  label: (value: number) => `${value}`
})

const sizeLabels = ["1", "10", "100", "1k"]

/** The share served, for each scenario and mechanism, by the number of processes. */
const servedChart = (figures: Figures): string => {
  const rows = Object.keys(settings).filter((scenario) => figures[scenario] !== undefined)
  const columns = Object.keys(mechanisms)
  const pointsOf = (scenario: string, mechanism: string): ReadonlyArray<Point> =>
    sizes.flatMap(({ processes }, index) => {
      const found = spreadOf(figures[scenario]?.[mechanism]?.[processes]?.served ?? [])
      return found === undefined ? [] : [{ x: index + 1, mean: found.mean, low: found.low, high: found.high }]
    })
  return multiples({
    title: "What ends an outage, by fleet size",
    what:
      "Calls that succeed, in percent of those that the service could have answered, for 1, 10, 100 and 1,000 processes.",
    rows,
    columns,
    strong: "limit",
    x: {
      name: "processes sharing the same load; 1k: 1,000",
      min: 0,
      max: 5,
      ticks: sizes.map((_, index) => index + 1),
      label: (value) => sizeLabels[value - 1]!
    },
    y: percentAxis("served, % of the possible; band: 90 % of runs"),
    panels: rows.map((scenario) => columns.map((mechanism) => ({ points: pointsOf(scenario, mechanism) })))
  })
}

/** The course of the outages. */
const coursesChart = (all: Courses): string => {
  const rows = Object.keys(courseSizes).filter((scenario) => all[scenario] !== undefined)
  const columns = Object.keys(mechanisms)
  return multiples({
    title: "The outage and the brown-out, second by second",
    what: `The share of the calls that succeed over time: ${
      rows.map((scenario) => `${scenario} with ${all[scenario]!.processes} processes`).join(", ")
    }.`,
    rows: rows.map((scenario) => `${scenario}, ${all[scenario]!.processes}`),
    columns,
    strong: "limit",
    panel: { width: 104, height: 90 },
    x: {
      name: "seconds; shaded: the fault",
      min: 0,
      max: 200,
      ticks: [0, 60, 120, 180],
      label: (value) => `${value}`
    },
    y: percentAxis("calls that succeed, %; number of processes at the left; band: 90 % of runs"),
    panels: rows.map((scenario) =>
      columns.map((mechanism) => {
        const { high, low, mean } = all[scenario]!.mechanisms[mechanism]!
        return {
          fault: settings[scenario]!.fault,
          points: mean.map((value, index) => ({
            x: courseSeconds * (index + 0.5),
            mean: value,
            low: low[index]!,
            high: high[index]!
          }))
        }
      })
    )
  })
}

const page = new URL("docs/evidence/compared.md", root)
const [begins, ends] = ["<!-- comparison: lab/scripts/overload.ts -->", "<!-- end of the comparison -->"] as const

/** The table of the page: percent of the possible, for each number of processes. */
const table = (figures: Figures): string => {
  const columns = Object.keys(mechanisms)
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  const rows = Object.keys(settings).filter((scenario) => figures[scenario] !== undefined)
  const cell = (scenario: string, mechanism: string) =>
    sizes.map(({ processes }) =>
      spreadOf(figures[scenario]?.[mechanism]?.[processes]?.served ?? [])?.mean.toFixed(0) ?? "-"
    )
      .join(" ")
  return [
    line(["", ...columns]),
    line(["---", ...columns.map(() => "---")]),
    ...rows.map((scenario) => line([`\`${scenario}\``, ...columns.map((mechanism) => cell(scenario, mechanism))]))
  ].join("\n")
}

/** The page with the table of the saved figures. */
const withTable = (text: string): string => {
  const [from, to] = [text.indexOf(begins), text.indexOf(ends)]
  return from < 0 || to < 0 ? text : `${text.slice(0, from)}${begins}\n${table(read())}\n${text.slice(to)}`
}

/** The page and its pictures, by their file. */
export const drawn = (): Readonly<Record<string, string>> => ({
  "docs/evidence/compared.md": withTable(fs.readFileSync(page, "utf8")),
  "docs/overload-served.svg": servedChart(read()),
  "docs/overload-courses.svg": coursesChart(readCourses())
})

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flags = process.argv.slice(2)
  const names = flags.filter((name) => !name.startsWith("--"))
  const seeds = Number(flags.find((flag) => flag.startsWith("--seeds="))?.slice("--seeds=".length) ?? 20)
  const unknown = names.filter((name) => settings[name] === undefined)
  if (unknown.length > 0) throw new Error(`no scenario of the comparison: ${unknown.join(", ")}`)
  const scenarios = names.length === 0 ? Object.keys(settings) : names
  const asked = { scenarios, seeds, resumes: flags.includes("--resume") }
  if (!flags.includes("--draw")) {
    await Effect.runPromise(Effect.andThen(courses(asked), measured(asked)))
  }
  for (const [file, text] of Object.entries(drawn())) fs.writeFileSync(new URL(file, root), text)
}
