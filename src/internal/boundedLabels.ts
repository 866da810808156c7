/** What stands for all words beyond the first. */
export const others = "(others)"

/** Words that always have a place, the first others seen, up to a maximum, and one for all the rest. */
export class BoundedLabels {
  private readonly labels: Set<string>
  private readonly most: number

  constructor(most: number, private readonly other: string, always: Iterable<string> = []) {
    this.labels = new Set(always)
    this.most = this.labels.size + most
  }

  of(word: string): string {
    if (this.labels.has(word)) return word
    if (this.labels.size >= this.most) return this.other
    this.labels.add(word)
    return word
  }
}
