import type { Sink } from "./entry.ts"
import type { FieldNames } from "./fields.ts"
import { choose, type Chosen, type Format, sampleLines } from "./formats.ts"
import { Lines } from "./lines.ts"
import { Meter } from "./meter.ts"

/** How logs are read. */
export interface LogOptions {
  readonly format?: Format | undefined
  readonly names?: FieldNames | undefined
}

/** Logs that are read: bytes in, counts out. */
export class Log {
  readonly meter = new Meter()
  /** Lines that do not match the format, or whose times cannot be right. */
  broken = 0
  /** The first of them, and why, where its fields say. */
  firstBroken: { readonly line: string; readonly why: string } | undefined = undefined
  lines = 0
  chosen: Chosen | undefined = undefined
  /** Files in which no line could be parsed. */
  unknown = 0
  private isWhole = true
  private readonly sink: Sink = (entry) => {
    if (!this.meter.add(entry)) this.isWhole = false
  }
  private current: Chosen | undefined = undefined
  private sample: Array<string> = []
  private isChosen = false
  private splitter = this.splitting()

  constructor(private readonly options: LogOptions) {}

  private splitting(): Lines {
    return new Lines((line) => this.line(line))
  }

  push(bytes: Uint8Array): void {
    this.splitter.push(bytes)
  }

  private line(line: string): void {
    if (line === "") return
    if (this.isChosen) return this.read(line)
    this.sample.push(line)
    if (this.sample.length >= sampleLines) this.choose()
  }

  /** Each file has its own format, and perhaps a header. */
  private choose(): void {
    const { format, names = {} } = this.options
    const { sample } = this
    this.sample = []
    this.isChosen = true
    const chosen = choose(sample, format, names)
    this.current = chosen
    if (chosen === undefined) this.unknown++
    else this.chosen ??= chosen
    for (const line of sample.slice(chosen?.skip ?? 0)) this.read(line)
  }

  private read(line: string): void {
    this.lines++
    this.isWhole = true
    if (this.current?.reader.read(line, this.sink) && this.isWhole) return
    this.broken++
    this.firstBroken ??= { line: line.slice(0, 200), why: this.current?.fields?.problem ?? "" }
  }

  /** Call it at the end of a file; the next may have another format. */
  endOfFile(): void {
    this.splitter.end()
    if (!this.isChosen) this.choose()
    this.broken += this.splitter.tooLong
    this.lines += this.splitter.tooLong
    this.isChosen = false
    this.current = undefined
    this.splitter = this.splitting()
    this.meter.endOfFile()
  }
}
