import type { Actor } from "./agenda.ts"
import { Arrivals, type RatePoint, RecordedCounts, recordedTimes, type Times } from "./arrivals.ts"
import type { Chance, Sampler } from "./chance.ts"
import type { Client } from "./client.ts"
import type { Caller } from "./request.ts"
import type { Fleet } from "./scenario.ts"
import { millis, sampler } from "./units.ts"

/** Starts the calls of a fleet. */
export interface Generator {
  /** Plans the first calls. */
  readonly start: () => void
}

/** The progress of a fleet's calls. */
class Ledger {
  private left: number

  constructor(private readonly client: Client, fleet: Fleet, private readonly endMillis: number) {
    this.left = fleet.calls ?? Infinity
  }

  /** Whether one more call may begin at the time; it counts as begun. */
  takes(atMillis: number): boolean {
    if (atMillis >= this.endMillis || this.left <= 0) return false
    this.left--
    return true
  }

  call(process: number, caller: Caller<number>, of: number): void {
    const { client } = this
    client.environment.inFlight++
    client.call(client.processes[process]!, caller, of)
  }

  /** A call has ended. */
  ended(): void {
    const { environment } = this.client
    environment.inFlight--
    if (this.left !== Infinity) environment.time.progresses()
  }

  /** One source of calls has ended. */
  dry(): void {
    this.client.environment.generating--
    this.client.environment.look()
  }
}

const pointsOf = (rate: NonNullable<Fleet["rate"]>): ReadonlyArray<RatePoint> =>
  typeof rate === "number"
    ? [{ atMillis: 0, perSecond: rate, ramp: false }]
    : rate.map((point) => ({ atMillis: millis(point.at), perSecond: point.rate, ramp: point.ramp }))

const hasTimes = ({ arrivals }: Fleet): boolean => typeof arrivals === "object" && arrivals.at !== undefined

/** Calls start as recorded or at a rate, whatever becomes of earlier ones. */
class OpenLoop implements Generator, Actor, Caller<number> {
  private readonly processes: number
  private readonly chance: Chance
  private readonly arrivals: Times
  private readonly inTurns: boolean
  private count = 0
  /** The first of even arrivals comes after half a gap, so that none falls on the beginning of a second. */
  private first = 0.5

  constructor(private readonly client: Client, private readonly ledger: Ledger, fleet: Fleet) {
    this.processes = fleet.processes
    this.chance = client.environment.chance(`${fleet.name}/arrivals`)
    this.inTurns = fleet.arrivals === "even" || hasTimes(fleet) || fleet.processes === 1
    this.arrivals = this.timesOf(fleet)
  }

  private timesOf({ arrivals, rate }: Fleet): Times {
    if (typeof arrivals === "object") {
      const { at, bucket, calls = [] } = arrivals
      return at === undefined
        ? new RecordedCounts(calls, millis(bucket ?? "1 second"), () => this.chance.nextDoubleUnsafe())
        : recordedTimes(at)
    }
    const gap = arrivals === "even" ? () => this.step() : () => this.chance.exponential()
    return new Arrivals(pointsOf(rate!), gap, 0)
  }

  private step(): number {
    const next = this.first
    this.first = 1
    return next
  }

  start(): void {
    this.client.environment.generating++
    this.plan()
  }

  private plan(): void {
    const next = this.arrivals.next()
    if (!this.ledger.takes(next)) return this.ledger.dry()
    this.client.environment.time.plan(next, this, 0)
  }

  act(): void {
    const process = this.inTurns ? this.count++ % this.processes : this.chance.below(this.processes)
    this.ledger.call(process, this, 0)
    this.plan()
  }

  ended(): void {
    this.ledger.ended()
    this.client.environment.look()
  }
}

/** One of a closed loop. */
class Looping implements Actor {
  atMillis = 0
  earliestMillis = 0

  constructor(private readonly loop: ClosedLoop, private readonly index: number) {}

  act(): void {
    this.loop.call(this, this.index)
  }
}

/** Each client makes one call after the other. */
class ClosedLoop implements Generator, Caller<number> {
  private readonly processes: number
  private readonly chance: Chance
  private readonly think: Sampler | undefined
  private readonly pace: Sampler | undefined
  private readonly clients: ReadonlyArray<Looping>

  constructor(private readonly client: Client, private readonly ledger: Ledger, fleet: Fleet) {
    this.processes = fleet.processes
    this.chance = client.environment.chance(`${fleet.name}/think`)
    this.think = sampler(fleet.think ?? 0)
    this.pace = sampler(fleet.pace ?? 0)
    this.clients = Array.from({ length: fleet.clients! }, (_, index) => new Looping(this, index))
  }

  start(): void {
    this.client.environment.generating += this.clients.length
    for (const one of this.clients) this.begin(one, 0)
  }

  private begin(one: Looping, atMillis: number): void {
    if (!this.ledger.takes(atMillis)) return this.ledger.dry()
    one.atMillis = atMillis
    this.client.environment.time.plan(atMillis, one, 0)
  }

  private drawn(from: Sampler | undefined): number {
    return from === undefined ? 0 : from(this.chance)
  }

  call(one: Looping, index: number): void {
    one.earliestMillis = one.atMillis + this.drawn(this.pace)
    this.ledger.call(index % this.processes, this, index)
  }

  ended(index: number): void {
    this.ledger.ended()
    const { environment } = this.client
    const one = this.clients[index]!
    this.begin(one, Math.max(one.earliestMillis, environment.time.nowMillis + this.drawn(this.think)))
    environment.look()
  }
}

/** Starts the calls of a fleet, until the time given. */
export const generator = (client: Client, fleet: Fleet, endMillis: number): Generator => {
  const ledger = new Ledger(client, fleet, endMillis)
  return fleet.clients === undefined ? new OpenLoop(client, ledger, fleet) : new ClosedLoop(client, ledger, fleet)
}
