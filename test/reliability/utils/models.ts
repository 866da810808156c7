/** Below this a shortfall counts as none. */
const epsilon = 1e-9

/** Who waits, first come, first served. */
export interface Waiting {
  readonly id: number
  readonly cost: number
}

/** A token bucket on paper: exact, without fibers, timers and rounding. */
export class QuotaModel {
  tokens: number
  queue: Array<Waiting> = []
  readonly held = new Map<number, number>()
  spent = 0
  readonly capacity: number
  private readonly perMilli: number
  private readonly waits: boolean
  private nowMillis = 0

  constructor(options: { capacity: number; initial: number; perMilli: number; waits: boolean }) {
    this.capacity = options.capacity
    this.tokens = options.initial
    this.perMilli = options.perMilli
    this.waits = options.waits
  }

  /** Takes tokens, waits in line, or is refused. */
  reserve(id: number, cost: number): "granted" | "waiting" | "refused" {
    if (cost > this.capacity) return "refused"
    if (this.queue.length === 0 && this.tokens + epsilon >= cost) {
      this.grant({ id, cost })
      return "granted"
    }
    if (!this.waits) return "refused"
    this.queue.push({ id, cost })
    return "waiting"
  }

  private grant({ cost, id }: Waiting): void {
    this.tokens = Math.max(0, this.tokens - cost)
    this.held.set(id, cost)
  }

  private serve(): void {
    while (this.queue.length > 0 && this.tokens + epsilon >= this.queue[0]!.cost) this.grant(this.queue.shift()!)
  }

  settle(id: number, how: "giveBack" | "spend"): boolean {
    const cost = this.held.get(id)
    if (cost === undefined) return false
    this.held.delete(id)
    if (how === "spend") this.spent += cost
    else this.deposit(cost)
    return true
  }

  deposit(tokens: number): void {
    this.tokens = Math.min(this.capacity, this.tokens + tokens)
    this.serve()
  }

  cancel(id: number): void {
    this.queue = this.queue.filter((waiting) => waiting.id !== id)
    this.serve()
  }

  advance(millis: number): void {
    const end = this.nowMillis + millis
    for (;;) {
      const head = this.queue[0]
      const due = head === undefined || this.perMilli === 0
        ? Infinity
        : this.nowMillis + (head.cost - this.tokens) / this.perMilli
      const next = Math.min(end, due)
      this.tokens = Math.min(this.capacity, this.tokens + (next - this.nowMillis) * this.perMilli)
      this.nowMillis = next
      if (due > end) return
      this.tokens = Math.max(this.tokens, head!.cost)
      this.serve()
    }
  }
}

/**
 * The adaptive limiter on paper: the reference's pseudocode, with a line in which the first to come is the first to be
 * served, at the first whole millisecond at which there is a token.
 */
export class LimiterModel {
  enabled = false
  tokens = 0
  maxTokens = 1
  fillRate = 0.5
  measured = 0
  lastMaxRate = 0
  queue: Array<number> = []
  granted: Array<number> = []
  private lastThrottle = 0
  private bucket = 0
  private count = 0
  private refilledAt: number | undefined
  private nowMillis = 0

  private get now(): number {
    return this.nowMillis / 1000
  }

  acquire(id: number): void {
    if (!this.enabled) {
      this.granted.push(id)
      return
    }
    this.queue.push(id)
    this.serve()
  }

  cancel(id: number): void {
    this.queue = this.queue.filter((waiting) => waiting !== id)
    this.serve()
  }

  private refill(): void {
    if (this.refilledAt !== undefined) {
      this.tokens = Math.min(this.maxTokens, this.tokens + (this.now - this.refilledAt) * this.fillRate)
    }
    this.refilledAt = this.now
  }

  private serve(): void {
    if (this.queue.length === 0) return
    this.refill()
    while (this.queue.length > 0 && this.tokens + epsilon >= 1) {
      this.tokens = Math.max(0, this.tokens - 1)
      this.granted.push(this.queue.shift()!)
    }
  }

  advance(millis: number): void {
    const end = this.nowMillis + millis
    while (this.nowMillis < end) {
      this.nowMillis = this.queue.length > 0 ? this.nowMillis + 1 : end
      this.serve()
    }
  }

  update(throttled: boolean): void {
    this.measure()
    if (throttled) {
      const rate = this.enabled ? Math.min(this.measured, this.fillRate) : this.measured
      this.lastMaxRate = rate
      this.lastThrottle = this.now
      this.setRate(rate * 0.7)
      this.enabled = true
    } else {
      const window = Math.cbrt((this.lastMaxRate * 0.3) / 0.4)
      this.setRate(0.4 * (this.now - this.lastThrottle - window) ** 3 + this.lastMaxRate)
    }
    this.serve()
  }

  private measure(): void {
    const bucket = Math.floor(this.now * 2) / 2
    this.count++
    if (bucket > this.bucket) {
      this.measured = (this.count / (bucket - this.bucket)) * 0.8 + this.measured * 0.2
      this.count = 0
      this.bucket = bucket
    }
  }

  private setRate(wanted: number): void {
    const rate = Math.min(wanted, 2 * this.measured)
    this.refill()
    this.fillRate = Math.max(rate, 0.5)
    this.maxTokens = Math.max(rate, 1)
    this.tokens = Math.min(this.tokens, this.maxTokens)
  }
}
