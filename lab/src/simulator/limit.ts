import { type Failure, throttled } from "./failure.ts"
import type { LimitSettings } from "./scenario.ts"
import { millis } from "./units.ts"

/** Decides whether a request at a time is within a limit. */
interface Gate {
  readonly passes: (nowMillis: number, rule: Rule) => boolean
  /** The limit changes: what has been counted stays, in requests. */
  readonly changes: (nowMillis: number, before: Rule) => void
}

/** What a limit is from a time on. */
interface Rule {
  readonly fromMillis: number
  readonly requests: number
  readonly perMillis: number
  readonly burst: number | undefined
  /** What a request beyond the limit is answered with. */
  readonly failureAt: (nowMillis: number) => Failure
}

/** A number of requests per window; windows follow each other from time 0. */
class Counted implements Gate {
  private stretch = -1
  private passed = 0

  passes(nowMillis: number, { perMillis, requests }: Rule): boolean {
    const now = Math.floor(nowMillis / perMillis)
    if (now !== this.stretch) {
      this.stretch = now
      this.passed = 0
    }
    return ++this.passed <= requests
  }

  changes(): void {
    this.stretch = -1
  }
}

/** A leaky bucket: admitted requests fill it, and it drains evenly. Source: nginx `limit_req` with `nodelay`. */
class Leaky implements Gate {
  private excess = -1
  private atMillis = 0

  private left(nowMillis: number, { perMillis, requests }: Rule): number {
    return Math.max(-1, this.excess - (requests / perMillis) * (nowMillis - this.atMillis))
  }

  passes(nowMillis: number, rule: Rule): boolean {
    const next = this.left(nowMillis, rule) + 1
    if (next > rule.burst!) return false
    this.excess = next
    this.atMillis = nowMillis
    return true
  }

  changes(nowMillis: number, before: Rule): void {
    this.excess = this.left(nowMillis, before)
    this.atMillis = nowMillis
  }
}

const failureOf = ({ per, retryAfter }: LimitSettings): Rule["failureAt"] => {
  if (retryAfter === "rest") {
    const perMillis = millis(per)
    return (nowMillis) => throttled(Math.ceil(perMillis - nowMillis % perMillis))
  }
  const failure = throttled(retryAfter === undefined ? undefined : millis(retryAfter))
  return () => failure
}

const ruleOf = (settings: LimitSettings): Rule => ({
  fromMillis: settings.at === undefined ? 0 : millis(settings.at),
  requests: settings.requests,
  perMillis: millis(settings.per),
  burst: settings.burst,
  failureAt: failureOf(settings)
})

/** What a service throttles, and with which hint. */
export class Limit {
  private readonly rules: ReadonlyArray<Rule>
  private readonly counted = new Counted()
  private readonly leaky = new Leaky()
  private index = 0

  constructor(settings: LimitSettings | ReadonlyArray<LimitSettings>) {
    this.rules = "requests" in settings ? [ruleOf(settings)] : settings.map(ruleOf)
  }

  private get rule(): Rule {
    return this.rules[this.index]!
  }

  private gateOf({ burst }: Rule): Gate {
    return burst === undefined ? this.counted : this.leaky
  }

  /** Why a request at the time does not pass; `undefined` when it does. Before the first rule all pass. */
  refuses(nowMillis: number): Failure | undefined {
    while (this.index + 1 < this.rules.length && this.rules[this.index + 1]!.fromMillis <= nowMillis) {
      const next = this.rules[this.index + 1]!
      this.gateOf(this.rule).changes(next.fromMillis, this.rule)
      this.index++
    }
    const { rule } = this
    if (nowMillis < rule.fromMillis) return undefined
    return this.gateOf(rule).passes(nowMillis, rule) ? undefined : rule.failureAt(nowMillis)
  }
}
