import { paceOf } from "./bounds.ts"
import type { Chance, Sampler } from "./chance.ts"
import type { Environment } from "./environment.ts"
import { type Failure, overloaded, unavailable } from "./failure.ts"
import type { Lane } from "./lane.ts"
import { Holds, lasting, type Window, windowsOf } from "./outages.ts"
import { Queue } from "./queue.ts"
import { firstOfService, type Request } from "./request.ts"
import type { ServiceSettings } from "./scenario.ts"
import { millis, sampler } from "./units.ts"

/** What is planned for a request at its server. */
export const itsTurn = firstOfService
export const worked = firstOfService + 1
export const waitedTooLong = firstOfService + 2
export const delivered = firstOfService + 3
export const leaves = firstOfService + 4
export const afterServer = firstOfService + 5

/** The owner of a server. */
export interface Front {
  /** The work on a request has been done. */
  readonly worked: (request: Request) => void
  /** A request ends here. */
  readonly answer: (request: Request, failure: Failure | undefined) => void
}

/** The place of a server, and what it shares with the others of its service. */
interface Place {
  readonly index: number
  readonly environment: Environment
  readonly chance: Chance
  /** When requests in the queue have waited too long; `undefined` when they wait forever. */
  readonly patience: Lane | undefined
  readonly front: Front
}

/** One instance of a service: a queue, a turn or workers, and what goes wrong with it alone. */
export class Server {
  readonly index: number
  private readonly environment: Environment
  private readonly front: Front
  private readonly chance: Chance
  /** With a capacity only the turn of a request keeps others waiting, not what comes after: what it calls, its latency. */
  readonly takesTurns: boolean
  private readonly workers: number
  private readonly pace: ((nowMillis: number) => number) | undefined
  private readonly work: Sampler | undefined
  private readonly slowdownMillis: number
  private readonly maxQueue: number
  private readonly queueTimeoutMillis: number
  private readonly admitMillis: number
  private readonly connectingMillis: number
  private readonly refusingMillis: number
  private readonly abandoningMillis: number
  private readonly patience: Lane | undefined
  private readonly drops: ReadonlyArray<Window<"drop">>
  private readonly fails: ReadonlyArray<Window<"fail">>
  private readonly holds: Holds
  private readonly slows: ReadonlyArray<Window<"slow">>
  private readonly queue = new Queue<Request>()
  /** Requests in progress. */
  busy = 0
  /** Requests that wait outside until an outage of this server ends. */
  private outside = 0
  /** Work for refusals that the next turn must make up for. */
  private owedMillis = 0
  /** When an idle server has finished its refusals. */
  private refusingUntilMillis = 0
  /** When the turns of the present requests end, if the queue is bounded in time. */
  private fullUntilMillis = 0

  constructor(private readonly settings: ServiceSettings, { chance, front, index, patience, environment }: Place) {
    const { admitWithin, capacity, costs, latency, outages, queue, queueTimeout, slowdown, workers } = settings
    this.index = index
    this.environment = environment
    this.chance = chance
    this.front = front
    this.pace = capacity === undefined ? undefined : paceOf(capacity)
    this.takesTurns = this.pace !== undefined
    this.workers = this.takesTurns ? 1 : workers ?? Infinity
    this.work = sampler(latency)
    this.slowdownMillis = millis(slowdown)
    this.maxQueue = queue ?? Infinity
    this.queueTimeoutMillis = queueTimeout === undefined ? Infinity : millis(queueTimeout)
    this.admitMillis = admitWithin === undefined ? Infinity : millis(admitWithin)
    this.connectingMillis = millis(costs.connecting)
    this.refusingMillis = millis(costs.refusing)
    this.abandoningMillis = millis(costs.abandoning)
    this.patience = patience
    this.drops = windowsOf(outages, "drop", index)
    this.fails = windowsOf(outages, "fail", index)
    this.holds = new Holds(windowsOf(outages, "hold", index))
    this.slows = [...windowsOf(outages, "slow"), ...windowsOf(outages, "slow", index)]
  }

  private isHitBy(windows: ReadonlyArray<Window<"drop" | "fail">>): boolean {
    const outage = lasting(windows, this.environment.time.nowMillis)
    return outage !== undefined && (outage.share === 1 || this.chance.nextDoubleUnsafe() < outage.share)
  }

  /** A request comes from the balancer. */
  receive(request: Request): void {
    request.server = this.index
    const { time } = this.environment
    const atMillis = this.holds.deliversAt(time.nowMillis, request.fresh)
    if (atMillis === Infinity) return
    if (atMillis === time.nowMillis) return this.take(request)
    this.outside++
    time.plan(atMillis, request, delivered)
  }

  /** It was held, and arrives now. */
  delivered(request: Request): void {
    this.outside--
    this.take(request)
  }

  private take(request: Request): void {
    if (this.isHitBy(this.drops)) return
    if (this.isHitBy(this.fails)) return this.refuse(request, unavailable)
    if (this.admitMillis !== Infinity && !this.admits(request)) return this.refuse(request, overloaded)
    if (this.busy < this.workers) return this.begin(request)
    if (this.queue.size < this.maxQueue) return this.wait(request)
    this.refuse(request, overloaded)
  }

  private refuse(request: Request, failure: Failure): void {
    this.charge()
    this.front.answer(request, failure)
  }

  /** A refusal costs some work, of this server or of the limit before it. */
  charge(): void {
    if (this.refusingMillis === 0) return
    if (this.busy > 0) this.owedMillis += this.refusingMillis
    else {
      this.refusingUntilMillis = Math.max(this.environment.time.nowMillis, this.refusingUntilMillis) +
        this.refusingMillis
    }
  }

  /** The work of refusals that has not been done by now: the next turn makes up for it. */
  private get unpaidMillis(): number {
    return this.owedMillis + Math.max(0, this.refusingUntilMillis - this.environment.time.nowMillis)
  }

  private pay(): void {
    this.owedMillis = 0
    this.refusingUntilMillis = 0
  }

  /** Whether a queue bounded in time accepts a request. Its turn is as long as one takes on arrival. */
  private admits(request: Request): boolean {
    const { nowMillis } = this.environment.time
    const turn = this.workMillis(request, this.busy + this.queue.size + 1)
    const until = Math.max(nowMillis, this.fullUntilMillis) + turn
    if (until - nowMillis > this.admitMillis) return false
    this.fullUntilMillis = until
    request.turnMillis = turn
    this.pay()
    return true
  }

  private factor(nowMillis: number): number {
    return lasting(this.slows, nowMillis)?.factor ?? 1
  }

  private wait(request: Request): void {
    if (this.patience !== undefined) {
      request.ticket = this.patience.add(this.environment.time.nowMillis + this.queueTimeoutMillis, request)
    }
    this.queue.push(request)
  }

  /** All have the same longest wait, so the one whose time is up is the first. */
  waitedTooLong(request: Request): void {
    this.queue.shift()
    this.refuse(request, overloaded)
  }

  /** The turn of a request has come. */
  itsTurn(request: Request): void {
    this.busy--
    this.begin(request)
  }

  private begin(request: Request): void {
    this.busy++
    const { time } = this.environment
    if (request.settled && this.settings.dropsAbandoned) return this.drop(request)
    const work = this.turnMillis(request) + (request.settled ? this.abandoningMillis : 0)
    if (work === 0) this.front.worked(request)
    else time.plan(time.nowMillis + work, request, worked)
  }

  private turnMillis(request: Request): number {
    if (request.turnMillis >= 0) return request.turnMillis
    const work = this.workMillis(request, this.busy)
    this.pay()
    return work
  }

  /** How long a request takes when this many are present. */
  private workMillis(request: Request, there: number): number {
    const { nowMillis } = this.environment.time
    const drawn = this.pace === undefined ? this.work?.(this.chance) ?? 0 : 1000 / this.pace(nowMillis)
    const work = (drawn + this.slowdownMillis * there) * this.factor(nowMillis)
    return work + (request.fresh ? this.connectingMillis : 0) + this.unpaidMillis
  }

  /** Its client has given up: only the cost of noticing that is spent. */
  private drop(request: Request): void {
    if (this.abandoningMillis === 0) return this.release()
    this.environment.time.plan(this.environment.time.nowMillis + this.abandoningMillis, request, leaves)
  }

  /** The place of a request is free for the next. */
  release(): void {
    this.busy--
    let next = this.shift()
    if (this.settings.dropsAbandoned && this.abandoningMillis === 0) {
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
    // Its turn comes through the clock, so that a long queue does not make a deep stack.
    this.busy++
    this.environment.time.plan(this.environment.time.nowMillis, request, itsTurn)
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.queue.size
  }

  /** Requests that are present, in any state. */
  get size(): number {
    return this.queue.size + this.busy + this.outside
  }
}
