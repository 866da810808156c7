import { Histogram } from "../simulator/histogram.ts"
import { fewest } from "./estimate.ts"
import type { Second } from "./seconds.ts"

/** A backlog that grows while requests fail for another reason spans more of its number in half of the seconds. */
const steady = 0.5

type Counts = Pick<Second, "arrived" | "inFlight" | "refused" | "served">

/** How many requests were in flight while others were refused: where that is always the most, so many are let in. */
export class Ceiling {
  private readonly during = new Histogram()
  private arrived = 0
  private refused = 0
  private served = 0
  /** The most in flight, on average over a second, while none was refused. */
  private otherwise = 0
  /** Seconds in a row in which at least a fifth of the requests were refused. */
  private row = 0
  private last: Counts | undefined = undefined

  /** Counts seconds between two of their kind: the first and the last of a row are not refusing as a whole. */
  add({ arrived, inFlight, refused, served }: Second): void {
    if (refused === 0) this.otherwise = Math.max(this.otherwise, inFlight)
    const isRefusing = refused > 0 && refused * 5 >= arrived
    if (isRefusing && this.row >= 2) this.count(this.last!)
    this.row = isRefusing ? this.row + 1 : 0
    this.last = { arrived, inFlight, refused, served }
  }

  private count({ arrived, inFlight, refused, served }: Counts): void {
    this.during.add(inFlight)
    this.arrived += arrived
    this.refused += refused
    this.served += served
  }

  /** The requests that are let in at a time; `undefined` where it is not their number that decides. */
  get most(): number | undefined {
    const { arrived, during, otherwise, refused, served } = this
    if (during.count < fewest) return undefined
    const [low, usual, high] = [0.25, 0.5, 0.75].map((share) => during.percentile(share) ?? 0)
    if (high! - low! > steady * usual! || otherwise > 1.1 * high! + 1) return undefined
    // While those in flight become fewer, requests are refused that have waited.
    if (arrived - served < refused / 2) return undefined
    // Places that are empty until the next request comes: the mean of a birth-death process, as many as served over refused.
    return Math.round(usual! + served / refused)
  }
}
