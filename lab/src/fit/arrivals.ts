/** Whether a file of arrivals holds comma-separated values; otherwise JSON. */
export const isCsv = (path: string): boolean => /\.csv$/i.test(path)

/** The text of such a file with the calls of each bucket. */
export const arrivalsText = (path: string, calls: ReadonlyArray<number>, bucket: string): string =>
  isCsv(path) ? `calls\n${calls.join("\n")}\n` : `${JSON.stringify({ bucket, calls })}\n`
