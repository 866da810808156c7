/** What stands for all words beyond the first. */
export const others = "(others)"

/** The first words seen, up to a maximum, and one for all others. */
export class FirstWords {
  private readonly known = new Set<string>()
  private readonly most: number
  private readonly other: string

  constructor(most: number, other: string) {
    this.most = most
    this.other = other
  }

  of(word: string): string {
    if (this.known.has(word)) return word
    if (this.known.size >= this.most) return this.other
    this.known.add(word)
    return word
  }
}
