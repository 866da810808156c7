import { Balancer } from "./balancer.ts"
import type { Chance, Sampler } from "./chance.ts"
import type { Client } from "./client.ts"
import { Entrance } from "./entrance.ts"
import type { Environment } from "./environment.ts"
import { failed, type Failure, overloaded, unavailable } from "./failure.ts"
import { Limit } from "./limit.ts"
import { ServiceMeter } from "./meter.ts"
import { Holds, lasting, type Window, windowsOf } from "./outages.ts"
import type { Caller, Request, Target } from "./request.ts"
import type { ServiceResult } from "./result.ts"
import type { ServiceSettings } from "./scenario.ts"
import { afterServer, delivered, type Front, itsTurn, leaves, Server, waitedTooLong, worked } from "./server.ts"
import { received } from "./trace.ts"
import { sampler } from "./units.ts"

const isDone = afterServer

/** A service: a limit, instances with queues and workers, failures and outages; it may be the client of others. */
export class Service implements Target, Caller<Request>, Front {
  readonly name: string
  readonly meter = new ServiceMeter()
  private readonly id: number
  private readonly chance: Chance
  private readonly after: Sampler | undefined
  private readonly limit: Limit | undefined
  private readonly entrance: Entrance | undefined
  private readonly drops: ReadonlyArray<Window<"drop">>
  private readonly fails: ReadonlyArray<Window<"fail">>
  private readonly failsBehindLimit: ReadonlyArray<Window<"fail">>
  private readonly holds: Holds
  private readonly servers: ReadonlyArray<Server>
  private readonly balancer: Balancer
  private refusals = 0

  constructor(
    private readonly environment: Environment,
    private readonly settings: ServiceSettings,
    private readonly edges: ReadonlyArray<Client>
  ) {
    const { capacity, connections, instances, latency, limit, outages, queueTimeout } = settings
    this.name = settings.name
    this.id = environment.nextId()
    this.chance = environment.chance(`${settings.name}/service`)
    this.after = capacity === undefined ? undefined : sampler(latency)
    this.limit = limit && new Limit(limit)
    this.entrance = connections === undefined ? undefined : new Entrance(connections)
    const fails = windowsOf(outages, "fail")
    this.drops = windowsOf(outages, "drop")
    this.fails = fails.filter(({ behindLimit }) => !behindLimit)
    this.failsBehindLimit = fails.filter(({ behindLimit }) => behindLimit)
    this.holds = new Holds(windowsOf(outages, "hold"))
    this.servers = Array.from({ length: instances }, (_, index) => {
      const patience = queueTimeout === undefined ? undefined : environment.time.lane(waitedTooLong)
      return new Server(settings, { index, environment, chance: this.chance, patience, front: this })
    })
    this.balancer = new Balancer(environment, settings, this.servers, environment.chance(`${settings.name}/balancer`))
  }

  private isHitBy(windows: ReadonlyArray<Window<"drop" | "fail">>): boolean {
    const outage = lasting(windows, this.environment.time.nowMillis)
    return outage !== undefined && (outage.share === 1 || this.chance.nextDoubleUnsafe() < outage.share)
  }

  deliversAt(nowMillis: number, fresh: boolean): number {
    return this.holds.deliversAt(nowMillis, fresh)
  }

  /** A request arrives. */
  receive(request: Request): void {
    const { nowMillis } = this.environment.time
    this.meter.now.received++
    this.environment.trace.add(nowMillis, received, this.id)
    if (this.isHitBy(this.drops)) return
    if (this.isHitBy(this.fails)) return this.refuse(request, unavailable)
    const throttled = this.limit?.refuses(nowMillis)
    if (throttled !== undefined) return this.refuse(request, throttled)
    if (this.entrance?.admits(request) === false) return this.refuse(request, overloaded)
    if (this.isHitBy(this.failsBehindLimit)) return this.refuse(request, unavailable)
    const { earlyFailureRate } = this.settings
    if (earlyFailureRate > 0 && this.chance.nextDoubleUnsafe() < earlyFailureRate) {
      return this.refuse(request, unavailable)
    }
    this.balancer.next().receive(request)
  }

  /** Requests refused by the limit cost work of the instances, each in its turn. */
  private refuse(request: Request, failure: Failure): void {
    this.servers[this.refusals++ % this.servers.length]!.charge()
    this.answer(request, failure)
  }

  goesOn(request: Request, what: number): void {
    const server = this.servers[request.server]!
    switch (what) {
      case itsTurn:
        return server.itsTurn(request)
      case worked:
        return this.worked(request)
      case waitedTooLong:
        return server.waitedTooLong(request)
      case delivered:
        return server.delivered(request)
      case leaves:
        return server.release()
      case isDone:
        return this.answer(request, request.outcome)
    }
  }

  worked(request: Request): void {
    const server = this.servers[request.server]!
    if (server.takesTurns) server.release()
    this.askNext(request)
  }

  private askNext(request: Request): void {
    const edge = this.edges[request.asked]
    if (edge === undefined) return this.finish(request, true)
    request.asked++
    edge.call(edge.processes[0]!, this, request)
  }

  /** A service that it called for a request has answered. */
  ended(request: Request, succeeded: boolean): void {
    if (succeeded) this.askNext(request)
    else this.finish(request, false)
  }

  private finish(request: Request, succeeded: boolean): void {
    const server = this.servers[request.server]!
    if (!server.takesTurns) server.release()
    if (request.settled) this.meter.now.wasted++
    const { failureRate } = this.settings
    const fails = !succeeded || (failureRate > 0 && this.chance.nextDoubleUnsafe() < failureRate)
    const after = this.after === undefined ? 0 : this.after(this.chance)
    const failure = fails ? failed : undefined
    if (after === 0) return this.answer(request, failure)
    const { time } = this.environment
    request.outcome = failure
    time.plan(time.nowMillis + after, request, isDone)
  }

  answer(request: Request, failure: Failure | undefined): void {
    this.entrance?.leave(request)
    if (failure === undefined) this.meter.now.succeeded++
    else this.meter.now.failures.add(failure.kind)
    request.answer(failure)
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.servers.reduce((sum, { waiting }) => sum + waiting, 0)
  }

  private get busy(): number {
    return this.servers.reduce((sum, { busy }) => sum + busy, 0)
  }

  /** A bucket of the series ends. */
  roll(fromMillis: number): void {
    this.meter.roll(fromMillis, this.waiting, this.busy)
  }

  /** The counts so far; `fromMillis` is the start of the current bucket. */
  result(fromMillis: number | undefined): ServiceResult {
    const { busy, meter, name, waiting } = this
    return { name, totals: meter.totals, series: meter.series(fromMillis, waiting, busy) }
  }
}
