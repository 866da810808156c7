import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Client } from "./client.ts"
import { Environment } from "./environment.ts"
import { generator } from "./fleet.ts"
import type { SimulationResult } from "./result.ts"
import type { Fleet, Scenario } from "./scenario.ts"
import { Service } from "./service.ts"
import type { Stretch } from "./time.ts"
import { millis } from "./units.ts"

/** Steps between two yields to the caller's runtime. */
const stepsPerTurn = 4096

/**
 * Virtual time is stuck, as when calls repeat without end and take no time: more than
 * 250,000 steps at one moment, and 50 for each client.
 *
 * @category errors
 * @since 0.1.0
 */
export class SimulationStalled extends Data.TaggedError("SimulationStalled")<{
  /** The virtual time at which it is stuck. */
  readonly atMillis: number
}> {
  override get message(): string {
    return `virtual time is stuck at ${this.atMillis} ms, where calls repeat and take no time: give them a latency or a backoff`
  }
}

/**
 * The progress of a simulation.
 *
 * @category models
 * @since 0.1.0
 */
export interface Progress {
  /** The virtual time it has reached, in milliseconds. */
  readonly virtualMillis: number
  /** The share of it that is done, from 0 to 1. The end may come earlier, when all calls have ended. */
  readonly fraction: number
  /** Attempts so far. */
  readonly attempts: number
  /** How long the simulation has run, in milliseconds of the caller's clock. */
  readonly elapsedMillis: number
  /** How long it will still run at this pace; `null` while unknown. */
  readonly leftMillis: number | null
}

/** Callbacks of a run. */
export interface RunOptions {
  /** Called after every few thousand steps. */
  readonly onProgress?: ((progress: Progress) => Effect.Effect<void>) | undefined
}

/** A scenario in its virtual time. */
export class Running {
  private readonly environment: Environment
  private readonly clients: Array<Client> = []
  private readonly services: ReadonlyArray<Service>
  private readonly durationMillis: number
  private readonly endMillis: number
  private readonly bucketMillis: number
  private bucketFromMillis = 0
  private over = false

  constructor(private readonly scenario: Scenario) {
    this.environment = new Environment(
      scenario.seed,
      scenario.fleets.reduce((sum, { clients }) => sum + (clients ?? 0), 0)
    )
    this.durationMillis = millis(scenario.duration)
    this.endMillis = this.durationMillis + millis(scenario.drain)
    this.bucketMillis = millis(scenario.bucket)
    const byName = new Map<string, Service>()
    const target = (to: string) => () => byName.get(to)!
    const clientOf = (fleet: Fleet): Client => {
      const host = this.clients.find(({ name }) => name === fleet.processesOf)
      const client = new Client(this.environment, { ...fleet, host }, "fleet", target(fleet.to))
      this.clients.push(client)
      return client
    }
    const fleets = scenario.fleets.map((fleet) => generator(clientOf(fleet), fleet, this.durationMillis))
    this.services = scenario.services.map((settings) => {
      const edges = settings.calls.map((edge) =>
        new Client(
          this.environment,
          { ...edge, name: `${settings.name} > ${edge.to}`, processes: 1 },
          "service",
          target(edge.to)
        )
      )
      this.clients.push(...edges)
      const service = new Service(this.environment, settings, edges)
      byName.set(service.name, service)
      return service
    })
    for (const fleet of fleets) fleet.start()
  }

  /** Runs some steps; returns whether it is over. */
  private turn(): boolean {
    const { time } = this.environment
    const limit = Math.min(this.bucketFromMillis + this.bucketMillis, this.endMillis)
    const stretch: Stretch = time.pass(limit, stepsPerTurn)
    if (this.environment.defect !== undefined) throw this.environment.defect.cause
    if (stretch === "stalled") throw new SimulationStalled({ atMillis: time.nowMillis })
    if (stretch === "paused") return false
    if (this.environment.isOver || stretch === "idle" || time.nowMillis >= this.endMillis) return true
    this.roll()
    return false
  }

  private roll(): void {
    for (const client of this.clients) client.meter.roll(this.bucketFromMillis, client.gauges)
    for (const service of this.services) service.roll(this.bucketFromMillis)
    this.bucketFromMillis += this.bucketMillis
  }

  private progress(elapsedMillis: number): Progress {
    const virtualMillis = this.environment.time.nowMillis
    const fraction = this.over || this.endMillis === 0 ? 1 : Math.min(1, virtualMillis / this.durationMillis)
    const leftMillis = fraction > 0 ? elapsedMillis * (1 - fraction) / fraction : null
    return { virtualMillis, fraction, attempts: this.environment.attempts, elapsedMillis, leftMillis }
  }

  /** Runs to the end; continues where it stopped if it was interrupted. */
  readonly run = Effect.fnUntraced(function*(this: Running, { onProgress }: RunOptions) {
    const clock = yield* Clock.Clock
    const since = clock.monotonicTimeNanosUnsafe()
    while (!this.over) {
      this.over = yield* Effect.try({ try: () => this.turn(), catch: stalledOrDefect })
      if (onProgress !== undefined) {
        yield* onProgress(this.progress(Number(clock.monotonicTimeNanosUnsafe() - since) / 1e6))
      }
      yield* Effect.yieldNow
    }
    return this.result
  })

  /** The result so far. */
  get result(): SimulationResult {
    const now = this.environment.time.nowMillis
    const begun = now > this.bucketFromMillis || this.bucketFromMillis === 0 ? this.bucketFromMillis : undefined
    return {
      scenario: this.scenario,
      partial: !this.over,
      untilMillis: now,
      bucketMillis: this.bucketMillis,
      traceHash: this.environment.trace.hash,
      attempts: this.environment.attempts,
      clients: this.clients.map((client) => client.result(begun)),
      services: this.services.map((service) => service.result(begun))
    }
  }
}

const stalledOrDefect = (error: unknown): SimulationStalled => {
  if (error instanceof SimulationStalled) return error
  throw error
}
