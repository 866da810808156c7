import { meanRate, perSuccess, settled, sum, zeros } from "./bounds.ts"
import type { Comparison } from "./comparison.ts"
import { patienceMillis } from "./ghosts.ts"
import { headers } from "./hints.ts"
import { failures } from "./hostile.ts"
import { callers, limit } from "./servers.ts"

const grid = (rows: ReadonlyArray<ReadonlyArray<string | number>>): string => {
  const cells = rows.map((row) => row.map(String))
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ")}`.trimEnd()).join(
    "\n"
  )
}

const courses = (title: string, { courses }: Comparison["steady"]): string =>
  `${title}
${
    grid([
      [
        "",
        "answers in each second",
        `mean from ${settled} s`,
        `zeros from ${settled} s`,
        `sent per answer from ${settled} s`,
        "from 0 s",
        "failed"
      ],
      ...courses.map((course) => [
        course.name,
        course.ok.join(" "),
        meanRate(course).toFixed(2),
        zeros(course),
        perSuccess(course).toFixed(3),
        perSuccess(course, 0).toFixed(3),
        sum(course.failed)
      ])
    ])
  }`

const waits = (millis: ReadonlyArray<number>): string =>
  millis.map((wait) => wait >= patienceMillis ? `over ${patienceMillis} ms` : `${wait} ms`).join(", ")

const short = (value: string): string => value.length > 30 ? `${value.slice(0, 12)}… (${value.length})` : value

const sections = ({ herds, rest, steady, stepped }: Comparison): ReadonlyArray<string> => [
  courses(
    `1. nginx lets ${limit.perSecond} requests a second through, ${limit.burst} at the same time; ${callers} callers a side`,
    steady
  ),
  courses(
    `2. the same, the wall clock of the process stepped by ${stepped.stepSeconds.toFixed(1)} s after 8 s`,
    stepped
  ),
  `3. the three calls after four throttles and 20 calls aborted in the limiter; the worst clean one of four tries
${
    grid([
      ["", "after the 20", "without them"],
      ...rest.ghosts.map(({ after, control, name }) => [name, waits(after), waits(control)])
    ])
  }`,
  `4. the retry quota after 60 calls aborted in the backoff of 500 ms
${
    grid([
      ["", "at first", "then", "requests", "attempts of the next call", "after it"],
      ...rest.leaks.map(({ capacity, capacityAfter, full, name, nextAttempts, sent }) => [
        name,
        full,
        capacity,
        sent,
        nextAttempts,
        capacityAfter
      ])
    ])
  }`,
  `5. milliseconds until the retry that a header is meant to delay
${
    grid([
      ["", ...rest.hints.map(({ name }) => name)],
      ...headers.map(([name, value], index) => [
        `${name}: ${short(value)}`,
        ...rest.hints.map(({ gaps }) => gaps[index]!)
      ]),
      ["timers for no finite time", ...rest.hints.map(({ oddTimers }) => oddTimers)]
    ])
  }`,
  `6. calls that wait for 200 send tokens a second
${
    grid([
      ["", "calls", "seconds", "timers fired", "CPU seconds", "overtaken for, at most"],
      ...herds.map(({ cpuSeconds, name, overtakenMillis, seconds, timers, waiters }) => [
        name,
        waiters,
        seconds.toFixed(2),
        timers,
        cpuSeconds.toFixed(2),
        `${overtakenMillis.toFixed(1)} ms`
      ])
    ])
  }`,
  `7. settings
${
    grid([
      ["", "SDK", "ours"],
      ...rest.meanings.map(({ ours, sdk, value, variable }) => [`${variable}=${value}`, sdk, ours]),
      ...rest.limits.map(({ option, ours, sdkLetThrough }) => [
        `limiter ${option}`,
        `lets ${sdkLetThrough} of 100 through`,
        ours
      ])
    ])
  }`,
  `8. failures of any shape: whether the classifier retries them, and what the caller gets
${
    grid([
      ["", "SDK's classifier", "ours", ...rest.survived.map(({ name }) => name)],
      ...failures.map(([failure], index) => [
        failure,
        rest.classified[index]!.sdk,
        rest.classified[index]!.ours,
        ...rest.survived.map(({ got }) => got[index]!)
      ])
    ])
  }`
]

/** The comparison, to be read. */
export const table = (comparison: Comparison): string => sections(comparison).join("\n\n")
