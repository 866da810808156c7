import { alb } from "./alb.ts"
import { csv } from "./csv.ts"
import type { Reader } from "./entry.ts"
import { envoy } from "./envoy.ts"
import type { FieldNames, Fields } from "./fields.ts"
import { jsonLines } from "./jsonLines.ts"
import { nginx } from "./nginx.ts"
import { otlp } from "./otlp.ts"

/** The formats of logs that are read. */
export const formats = ["nginx", "alb", "envoy", "otlp", "json", "csv"] as const
export type Format = typeof formats[number]

/** The chosen format, and its reader. */
export interface Chosen {
  readonly format: Format
  readonly reader: Reader
  /** Lines at the beginning without a request: the header of a table. */
  readonly skip: number
  /** Where lines have names. */
  readonly fields?: Fields | undefined
}

const chosen = (format: Format, sample: ReadonlyArray<string>, names: FieldNames): Chosen => {
  const plain = (reader: Reader): Chosen => ({ format, reader, skip: 0 })
  switch (format) {
    case "nginx":
      return plain(nginx)
    case "alb":
      return plain(alb)
    case "envoy":
      return plain(envoy)
    case "otlp":
      return plain(otlp(sample))
    case "json": {
      const reader = jsonLines(names)
      return { ...plain(reader), fields: reader.fields }
    }
    case "csv": {
      const reader = csv(sample[0] ?? "", names)
      return { ...plain(reader), skip: 1, fields: reader.fields }
    }
  }
}

const understood = ({ reader, skip }: Chosen, sample: ReadonlyArray<string>): number => {
  let requests = 0
  for (const line of sample.slice(skip)) reader.read(line, () => requests++)
  return requests
}

/** Lines that are read before the format is decided. */
export const sampleLines = 100

/** The format that reads most of the first lines; `undefined` when none reads any. */
export const choose = (
  sample: ReadonlyArray<string>,
  asked: Format | undefined,
  names: FieldNames
): Chosen | undefined => {
  const best = (asked === undefined ? formats : [asked])
    .map((format) => ({ format, count: understood(chosen(format, sample, names), sample) }))
    .reduce((most, one) => one.count > most.count ? one : most)
  return best.count === 0 ? undefined : chosen(best.format, sample, names)
}
