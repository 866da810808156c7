import { Chance } from "./chance.ts"
import { VirtualTime } from "./time.ts"
import { Trace } from "./trace.ts"

/** This many steps at one moment count as a loop in which no time passes: all clients may begin at the same time. */
const stepsAtMoment = 250_000
const stepsPerClient = 50

/** State shared by all parts of a simulation. */
export class Environment {
  readonly time: VirtualTime
  readonly trace = new Trace()
  private ids = 0
  /** Attempts of all clients. */
  attempts = 0
  /** Calls of fleets that have not ended. */
  inFlight = 0
  /** Fleets that still start calls. */
  generating = 0
  /** A defect of a call: a mistake of the library or the simulator. */
  defect: { readonly cause: unknown } | undefined = undefined

  constructor(private readonly seed: number, clients: number) {
    this.time = new VirtualTime(stepsAtMoment + stepsPerClient * clients)
  }

  /** Its own stream of random numbers. */
  chance(name: string): Chance {
    return new Chance(this.seed, name)
  }

  /** Every actor in the trace has a number. */
  nextId(): number {
    return this.ids++
  }

  /** All calls have started, and all have ended. */
  get isOver(): boolean {
    return this.generating === 0 && this.inFlight === 0
  }

  /** Ends the run with the defect. */
  fail(cause: unknown): void {
    this.defect ??= { cause }
    this.look()
  }

  /** Ends the run when nothing more will happen. */
  look(): void {
    if (this.isOver || this.defect !== undefined) this.time.halted = true
  }
}
