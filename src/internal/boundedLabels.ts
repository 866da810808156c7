/** What stands for all words beyond the first. */
export const others = "(others)"

/** Words that always have a place, the first others seen, up to a maximum, and one for all the rest. */
export class FirstWords {
  private readonly known: Set<string>
  private readonly most: number

  constructor(most: number, private readonly other: string, always: Iterable<string> = []) {
    this.known = new Set(always)
    this.most = this.known.size + most
  }

  of(word: string): string {
    if (this.known.has(word)) return word
    if (this.known.size >= this.most) return this.other
    this.known.add(word)
    return word
  }
}
