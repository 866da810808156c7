import type { Chance, Sampler } from "./chance.ts"
import type { Client } from "./client.ts"
import { failed, type Failure, overloaded, unavailable } from "./failure.ts"
import type { Lane } from "./lane.ts"
import { Limit } from "./limit.ts"
import { ServiceMeter } from "./meter.ts"
import { lasting, type Window, windowsOf } from "./outages.ts"
import { Queue } from "./queue.ts"
import { type Caller, firstOfService, type Request, type Target } from "./request.ts"
import type { ServiceResult } from "./result.ts"
import type { ServiceSettings } from "./scenario.ts"
import { received } from "./trace.ts"
import { millis, sampler } from "./units.ts"
import type { World } from "./world.ts"

/** What is planned for a request. */
const itsTurn = firstOfService
const worked = firstOfService + 1
const waitedTooLong = firstOfService + 2
const isDone = firstOfService + 3

/** A service: a limit, a queue, workers, failures and outages; perhaps the client of others. */
export class Service implements Target, Caller<Request> {
  readonly name: string
  readonly meter = new ServiceMeter()
  private readonly world: World
  private readonly id: number
  private readonly chance: Chance
  /** With a capacity only the turn of a request keeps others waiting, not what comes after: what it calls, its latency. */
  private readonly takesTurns: boolean
  private readonly workers: number
  private readonly work: Sampler | undefined
  private readonly after: Sampler | undefined
  private readonly slowdownMillis: number
  private readonly maxQueue: number
  private readonly queueTimeoutMillis: number
  /** When those in the queue have waited too long; `undefined` when they wait for ever. */
  private readonly patience: Lane | undefined
  private readonly settings: ServiceSettings
  private readonly limit: Limit | undefined
  private readonly drops: ReadonlyArray<Window<"drop">>
  private readonly fails: ReadonlyArray<Window<"fail">>
  private readonly holds: ReadonlyArray<Window<"hold">>
  private readonly slows: ReadonlyArray<Window<"slow">>
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
    this.takesTurns = turnMillis !== undefined
    this.workers = this.takesTurns ? 1 : settings.workers ?? Infinity
    this.work = turnMillis === undefined ? latency : () => turnMillis
    this.after = turnMillis === undefined ? undefined : latency
    this.slowdownMillis = millis(settings.slowdown)
    this.maxQueue = settings.queue ?? Infinity
    this.queueTimeoutMillis = settings.queueTimeout === undefined ? Infinity : millis(settings.queueTimeout)
    this.patience = settings.queueTimeout === undefined ? undefined : world.time.lane(waitedTooLong)
    this.limit = settings.limit && new Limit(settings.limit)
    this.drops = windowsOf(settings.outages, "drop")
    this.fails = windowsOf(settings.outages, "fail")
    this.holds = windowsOf(settings.outages, "hold")
    this.slows = windowsOf(settings.outages, "slow")
    this.edges = edges
  }

  private isHitBy(windows: ReadonlyArray<Window<"drop" | "fail">>): boolean {
    const outage = lasting(windows, this.world.time.nowMillis)
    return outage !== undefined && (outage.share === 1 || this.chance.nextDoubleUnsafe() < outage.share)
  }

  /** When what is sent now leaves for the service: at the end of the outages that hold it. */
  deliversAt(nowMillis: number): number {
    const hold = lasting(this.holds, nowMillis)
    return hold === undefined ? nowMillis : this.deliversAt(hold.toMillis)
  }

  /** A request arrives. */
  receive(request: Request): void {
    this.meter.now.received++
    this.world.trace.add(this.world.time.nowMillis, received, this.id)
    if (this.isHitBy(this.drops)) return
    if (this.isHitBy(this.fails)) return this.answer(request, unavailable)
    if (this.limit?.passes(this.world.time.nowMillis) === false) return this.answer(request, this.limit.failure)
    if (this.busy < this.workers) return this.begin(request)
    if (this.queue.size < this.maxQueue) return this.wait(request)
    this.answer(request, overloaded)
  }

  private wait(request: Request): void {
    if (this.patience !== undefined) {
      request.ticket = this.patience.add(this.world.time.nowMillis + this.queueTimeoutMillis, request)
    }
    this.queue.push(request)
  }

  goesOn(request: Request, what: number): void {
    switch (what) {
      case itsTurn:
        this.busy--
        return this.begin(request)
      case worked:
        return this.worked(request)
      case waitedTooLong:
        // All wait equally long at most: the one whose time is up is the first.
        this.queue.shift()
        return this.answer(request, overloaded)
      case isDone:
        return this.answer(request, request.outcome)
    }
  }

  private begin(request: Request): void {
    this.busy++
    const { time } = this.world
    const work = this.workMillis()
    if (work === 0) this.worked(request)
    else time.plan(time.nowMillis + work, request, worked)
  }

  private workMillis(): number {
    const drawn = this.work === undefined ? 0 : this.work(this.chance)
    const factor = lasting(this.slows, this.world.time.nowMillis)?.factor ?? 1
    return (drawn + this.slowdownMillis * this.busy) * factor
  }

  private worked(request: Request): void {
    if (this.takesTurns) this.release()
    this.askNext(request)
  }

  /** The place of a request is free for the next. */
  private release(): void {
    this.busy--
    this.next()
  }

  private askNext(request: Request): void {
    const edge = this.edges[request.asked]
    if (edge === undefined) return this.finish(request, true)
    request.asked++
    edge.call(edge.processes[0]!, this, request)
  }

  /** What it has called for a request has answered. */
  ended(request: Request, succeeded: boolean): void {
    if (succeeded) this.askNext(request)
    else this.finish(request, false)
  }

  private finish(request: Request, succeeded: boolean): void {
    if (!this.takesTurns) this.release()
    if (request.settled) this.meter.now.wasted++
    const { failureRate } = this.settings
    const fails = !succeeded || (failureRate > 0 && this.chance.nextDoubleUnsafe() < failureRate)
    const after = this.after === undefined ? 0 : this.after(this.chance)
    const failure = fails ? failed : undefined
    if (after === 0) return this.answer(request, failure)
    const { time } = this.world
    request.outcome = failure
    time.plan(time.nowMillis + after, request, isDone)
  }

  /** The next of the queue, if there is one, gets its turn. */
  private next(): void {
    let next = this.shift()
    if (this.settings.dropsAbandoned) {
      while (next?.settled) next = this.shift()
    }
    if (next !== undefined) this.giveTurn(next)
  }

  private shift(): Request | undefined {
    const next = this.queue.shift()
    if (next !== undefined) this.patience?.cancel(next.ticket)
    return next
  }

  private giveTurn(request: Request): void {
    // Its turn comes through the clock, so that a long queue makes no deep stack.
    this.busy++
    this.world.time.plan(this.world.time.nowMillis, request, itsTurn)
  }

  private answer(request: Request, failure: Failure | undefined): void {
    if (failure === undefined) this.meter.now.succeeded++
    else this.meter.now.failures.add(failure.kind)
    request.answer(failure)
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.queue.size
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
