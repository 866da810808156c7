/** Anything longer is not a line of a log. */
const longestLine = 8 * 1024 * 1024

/** Splits bytes into lines, whatever chunks they come in. A line that never ends is dropped, and counted. */
export class Lines {
  private readonly decoder = new TextDecoder()
  private rest = ""
  private isSkipping = false
  /** Lines that were too long. */
  tooLong = 0

  constructor(private readonly onLine: (line: string) => void) {}

  push(bytes: Uint8Array): void {
    const text = this.decoder.decode(bytes, { stream: true })
    let from = 0
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.finish(this.rest + text.slice(from, end))
      this.rest = ""
      from = end + 1
    }
    this.keep(text.slice(from))
  }

  private keep(text: string): void {
    if (this.isSkipping) return
    this.rest += text
    if (this.rest.length <= longestLine) return
    this.isSkipping = true
    this.tooLong++
    this.rest = ""
  }

  private finish(line: string): void {
    if (this.isSkipping) this.isSkipping = false
    else this.onLine(line.endsWith("\r") ? line.slice(0, -1) : line)
  }

  /** Call it after the last bytes. */
  end(): void {
    const last = this.rest + this.decoder.decode()
    this.rest = ""
    if (last !== "") this.finish(last)
  }
}
