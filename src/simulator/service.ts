import type { Chance, Sampler } from "./chance.ts"
import type { Client } from "./client.ts"
import { failed, type Failure, overloaded, unavailable } from "./failure.ts"
import { Limit } from "./limit.ts"
import { ServiceMeter } from "./meter.ts"
import { Queue } from "./queue.ts"
import type { Request, Target } from "./request.ts"
import type { ServiceResult } from "./result.ts"
import type { Outage, ServiceSettings } from "./scenario.ts"
import { millis, sampler } from "./units.ts"
import type { World } from "./world.ts"

/** An outage in milliseconds. */
type Window = Outage & { readonly fromMillis: number; readonly toMillis: number }

/** A service: a limit, a queue, workers, failures and outages; perhaps the client of others. */
export class Service implements Target {
  readonly name: string
  readonly meter = new ServiceMeter()
  private readonly world: World
  private readonly id: number
  private readonly chance: Chance
  private readonly workers: number
  private readonly work: Sampler | undefined
  private readonly after: Sampler | undefined
  private readonly slowdownMillis: number
  private readonly maxQueue: number
  private readonly settings: ServiceSettings
  private readonly limit: Limit | undefined
  private readonly windows: ReadonlyArray<Window>
  private readonly edges: ReadonlyArray<Client>
  private readonly queue = new Queue<Request>()
  private busy = 0

  constructor(world: World, settings: ServiceSettings, edges: ReadonlyArray<Client>) {
    this.world = world
    this.settings = settings
    this.name = settings.name
    this.id = world.nextId()
    this.chance = world.chance(`${settings.name}/service`)
    const latency = sampler(settings.latency)
    const turnMillis = settings.capacity === undefined ? undefined : 1000 / settings.capacity
    this.workers = turnMillis === undefined ? settings.workers ?? Infinity : 1
    this.work = turnMillis === undefined ? latency : () => turnMillis
    this.after = turnMillis === undefined ? undefined : latency
    this.slowdownMillis = millis(settings.slowdown)
    this.maxQueue = settings.queue ?? Infinity
    this.limit = settings.limit && new Limit(settings.limit)
    this.windows = settings.outages.map((outage) => ({
      ...outage,
      fromMillis: millis(outage.from),
      toMillis: millis(outage.to)
    }))
    this.edges = edges
  }

  private outage<Kind extends Outage["kind"]>(kind: Kind): Extract<Window, { readonly kind: Kind }> | undefined {
    const now = this.world.time.nowMillis
    for (const window of this.windows) {
      if (window.kind === kind && now >= window.fromMillis && now < window.toMillis) return window as any
    }
    return undefined
  }

  private hits(outage: { readonly share: number } | undefined): boolean {
    if (outage === undefined) return false
    return outage.share === 1 || this.chance.nextDoubleUnsafe() < outage.share
  }

  /** When what is sent now leaves for the service: at the end of an outage that holds it. */
  deliversAt(nowMillis: number): number {
    return this.outage("hold")?.toMillis ?? nowMillis
  }

  /** A request arrives. */
  receive(request: Request): void {
    this.meter.now.received++
    this.world.trace.add(this.world.time.nowMillis, "receive", this.id)
    if (this.windows.length > 0) {
      if (this.hits(this.outage("drop"))) return
      if (this.hits(this.outage("fail"))) return this.answer(request, unavailable)
    }
    if (this.limit?.passes(this.world.time.nowMillis) === false) return this.answer(request, this.limit.failure)
    if (this.busy < this.workers) return this.begin(request)
    if (this.queue.size < this.maxQueue) return this.queue.push(request)
    this.answer(request, overloaded)
  }

  private begin(request: Request): void {
    this.busy++
    const { time } = this.world
    const work = this.workMillis()
    if (work === 0) this.worked(request)
    else time.at(time.nowMillis + work, () => this.worked(request))
  }

  private workMillis(): number {
    const drawn = this.work === undefined ? 0 : this.work(this.chance)
    const factor = this.windows.length === 0 ? 1 : this.outage("slow")?.factor ?? 1
    return (drawn + this.slowdownMillis * this.busy) * factor
  }

  private worked(request: Request): void {
    if (this.edges.length === 0) this.finish(request, true)
    else this.askNext(request, 0)
  }

  private askNext(request: Request, index: number): void {
    const edge = this.edges[index]
    if (edge === undefined) return this.finish(request, true)
    edge.call(
      edge.processes[0]!,
      (succeeded) => succeeded ? this.askNext(request, index + 1) : this.finish(request, false)
    )
  }

  private finish(request: Request, succeeded: boolean): void {
    this.busy--
    if (request.settled) this.meter.now.wasted++
    const { failureRate } = this.settings
    const fails = !succeeded || (failureRate > 0 && this.chance.nextDoubleUnsafe() < failureRate)
    this.next()
    const after = this.after === undefined ? 0 : this.after(this.chance)
    const failure = fails ? failed : undefined
    if (after === 0) return this.answer(request, failure)
    const { time } = this.world
    time.at(time.nowMillis + after, () => this.answer(request, failure))
  }

  /** The next of the queue, if there is one, gets its turn. */
  private next(): void {
    let next = this.queue.shift()
    if (this.settings.dropsAbandoned) {
      while (next?.settled) next = this.queue.shift()
    }
    if (next !== undefined) this.giveTurn(next)
  }

  private giveTurn(request: Request): void {
    const { time } = this.world
    // Its turn comes through the clock, so that a long queue makes no deep stack.
    this.busy++
    time.at(time.nowMillis, () => {
      this.busy--
      this.begin(request)
    })
  }

  private answer(request: Request, failure: Failure | undefined): void {
    if (failure === undefined) this.meter.now.succeeded++
    else this.meter.now.failures.add(failure.kind)
    request.answer(failure)
  }

  /** A bucket of the series ends. */
  roll(fromMillis: number): void {
    this.meter.roll(fromMillis, this.queue.size, this.busy)
  }

  /** What has been counted; `fromMillis` is the beginning of a bucket that runs. */
  result(fromMillis: number | undefined): ServiceResult {
    const { meter, name } = this
    return { name, totals: meter.totals, series: meter.series(fromMillis, this.queue.size, this.busy) }
  }
}
