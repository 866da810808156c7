const slots = 1 << 16

/** 32 bits of a text. Source: FNV-1a, Fowler, Noll and Vo, public domain. */
const hashOf = (text: string, seed: number): number => {
  let hash = seed
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Remembers the last ten thousand calls or so, in constant memory. */
export class Repeats {
  private readonly seen = new Uint32Array(slots)

  /** Whether the call was seen before; remembers it. */
  add(call: string): boolean {
    const hash = hashOf(call, 0x811c9dc5)
    // Another 31 bits tell apart the calls that share a slot; 0 is an empty one.
    const mark = hashOf(call, 0x2c9277b5) | 1
    const slot = (hash ^ (hash >>> 16)) & (slots - 1)
    const isThere = this.seen[slot] === mark >>> 0
    this.seen[slot] = mark
    return isThere
  }
}
