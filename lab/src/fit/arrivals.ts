import type { Bucket } from "./series.ts"

/** Whether a file of arrivals holds comma-separated values; otherwise JSON. */
export const isCsv = (path: string): boolean => /\.csv$/i.test(path)

/** What a line of CSV has, of which a scenario reads the calls, and `backtest` all if a line is a second. */
const columns: ReadonlyArray<readonly [name: string, of: (bucket: Bucket) => number]> = [
  ["calls", ({ calls }) => calls],
  ["attempts", ({ requests }) => requests],
  ["succeeded", ({ failed, requests }) => requests - failed],
  ["failed", ({ calls, failed, requests }) => Math.max(0, calls - (requests - failed))]
]

/** The text of such a file with the calls of each bucket. */
export const arrivalsText = (path: string, buckets: ReadonlyArray<Bucket>, bucket: string): string => {
  if (!isCsv(path)) return `${JSON.stringify({ bucket, calls: buckets.map(({ calls }) => calls) })}\n`
  const written = columns.slice(0, bucket === "1 second" ? undefined : 1)
  return [
    written.map(([name]) => name).join(),
    ...buckets.map((one) => written.map(([, of]) => of(one)).join())
  ].map((line) => `${line}\n`).join("")
}
