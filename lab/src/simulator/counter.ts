const slots = 60

/** How many things have happened in the last while, in slots of a sixtieth of it. */
export class WindowCounter {
  private readonly counts = new Float64Array(slots)
  private readonly slotMillis: number
  private slot = 0
  private sum = 0

  constructor(windowMillis: number) {
    this.slotMillis = windowMillis / slots
  }

  add(nowMillis: number, amount = 1): void {
    this.expire(nowMillis)
    const place = this.slot % slots
    this.counts[place] = this.counts[place]! + amount
    this.sum += amount
  }

  total(nowMillis: number): number {
    this.expire(nowMillis)
    return this.sum
  }

  private expire(nowMillis: number): void {
    const slot = Math.floor(nowMillis / this.slotMillis)
    if (slot === this.slot) return
    if (slot - this.slot >= slots) {
      this.counts.fill(0)
      this.sum = 0
      this.slot = slot
      return
    }
    while (this.slot < slot) {
      this.slot++
      const place = this.slot % slots
      this.sum -= this.counts[place]!
      this.counts[place] = 0
    }
  }
}
