// The kinds of events in a trace.
export const called = 1
export const sent = 2
export const received = 3
export const succeeded = 4
export const failed = 5
export const retried = 6
export const stopped = 7
export const ended = 8

const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, "0")

/**
 * The hash of everything that has happened, in order. Nothing but the hash is stored.
 * Source: the mixing of MurmurHash3, Appleby, public domain, in two lanes.
 */
export class Trace {
  private readonly time = new Float64Array(1)
  private readonly words = new Uint32Array(this.time.buffer)
  private low = 0x2545f491
  private high = 0x9e3779b9
  /** How many events there have been. */
  events = 0

  /** Adds an event: when, what, at which actor, and a whole number with details. */
  add(atMillis: number, event: number, id: number, detail = 0): void {
    this.time[0] = atMillis
    this.events++
    this.mix(this.words[0]! ^ Math.imul(event, 0x01000193))
    this.mix(this.words[1]! ^ Math.imul(id, 0x5bd1e995) ^ detail)
  }

  private mix(word: number): void {
    let mixed = Math.imul(word, 0xcc9e2d51)
    mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
    this.low = Math.imul(((this.low ^ mixed) << 13) | ((this.low ^ mixed) >>> 19), 5) + 0xe6546b64 | 0
    this.high = Math.imul(this.high ^ (this.low >>> 7) ^ mixed, 0x85ebca6b)
    this.high ^= this.high >>> 13
  }

  get hash(): string {
    return hex(this.high) + hex(this.low)
  }
}
