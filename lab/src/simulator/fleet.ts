import { Arrivals, type RatePoint } from "./arrivals.ts"
import type { Chance, Sampler } from "./chance.ts"
import type { Client } from "./client.ts"
import type { Fleet } from "./scenario.ts"
import { millis, sampler } from "./units.ts"

/** Who makes the calls of a fleet begin. */
export interface Generator {
  /** Plans the first calls. */
  readonly start: () => void
}

/** How far a fleet is with its calls. */
class Ledger {
  private readonly client: Client
  private readonly endMillis: number
  private left: number

  constructor(client: Client, fleet: Fleet, endMillis: number) {
    this.client = client
    this.endMillis = endMillis
    this.left = fleet.calls ?? Infinity
  }

  /** Whether one more call may begin at the time; it counts as begun. */
  takes(atMillis: number): boolean {
    if (atMillis >= this.endMillis || this.left <= 0) return false
    this.left--
    return true
  }

  call(process: number, done: () => void): void {
    const { client } = this
    const { world } = client
    world.inFlight++
    client.call(client.processes[process]!, () => {
      world.inFlight--
      if (this.left !== Infinity) world.time.progresses()
      done()
      world.look()
    })
  }

  /** One source of calls has dried up. */
  dry(): void {
    this.client.world.generating--
    this.client.world.look()
  }
}

const pointsOf = (rate: NonNullable<Fleet["rate"]>): ReadonlyArray<RatePoint> =>
  typeof rate === "number"
    ? [{ atMillis: 0, perSecond: rate, ramp: false }]
    : rate.map((point) => ({ atMillis: millis(point.at), perSecond: point.rate, ramp: point.ramp }))

/** Calls come at a rate, whatever becomes of those before. */
const openLoop = (client: Client, ledger: Ledger, fleet: Fleet): Generator => {
  const { time } = client.world
  const chance = client.world.chance(`${fleet.name}/arrivals`)
  const even = fleet.arrivals === "even"
  // The first of even arrivals comes after half a gap, so that none falls on the beginning of a second.
  let first = 0.5
  const gap = even
    ? () => {
      const next = first
      first = 1
      return next
    }
    : () => chance.exponential()
  const arrivals = new Arrivals(pointsOf(fleet.rate!), gap, 0)
  let count = 0
  const process = () => even || fleet.processes === 1 ? count++ % fleet.processes : chance.below(fleet.processes)
  const plan = () => {
    const next = arrivals.next()
    if (!ledger.takes(next)) return ledger.dry()
    time.at(next, () => {
      ledger.call(process(), () => {})
      plan()
    })
  }
  return {
    start: () => {
      client.world.generating++
      plan()
    }
  }
}

/** Each client makes one call after the other. */
const closedLoop = (client: Client, ledger: Ledger, fleet: Fleet): Generator => {
  const { time } = client.world
  const chance = client.world.chance(`${fleet.name}/think`)
  const think = sampler(fleet.think ?? 0)
  const pace = sampler(fleet.pace ?? 0)
  const draw = (from: Sampler | undefined, chance: Chance) => from === undefined ? 0 : from(chance)
  const begin = (index: number, atMillis: number) => {
    if (!ledger.takes(atMillis)) return ledger.dry()
    time.at(atMillis, () => {
      const earliest = atMillis + draw(pace, chance)
      ledger.call(index % fleet.processes, () => {
        begin(index, Math.max(earliest, time.nowMillis + draw(think, chance)))
      })
    })
  }
  return {
    start: () => {
      const clients = fleet.clients!
      client.world.generating += clients
      for (let index = 0; index < clients; index++) begin(index, 0)
    }
  }
}

/** What makes the calls of a fleet begin, until the time given. */
export const generator = (client: Client, fleet: Fleet, endMillis: number): Generator => {
  const ledger = new Ledger(client, fleet, endMillis)
  return fleet.clients === undefined ? openLoop(client, ledger, fleet) : closedLoop(client, ledger, fleet)
}
