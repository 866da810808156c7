import { ClientThrottled } from "effect-retry/ClientThrottle"
import type { RetryDecision } from "effect-retry/RetryDecision"
import type * as RetryDriver from "effect-retry/RetryDriver"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Actor } from "./agenda.ts"
import type { Chance, Sampler } from "./chance.ts"
import { dropped, type Failure, refused, timedOut } from "./failure.ts"
import type { Lane } from "./lane.ts"
import { ClientMeter } from "./meter.ts"
import { resolve, type Retrying } from "./policy.ts"
import { Process } from "./process.ts"
import { arrives, type Caller, isAnswered, type Request, type Target, timesOut } from "./request.ts"
import type { ClientResult, Gauges } from "./result.ts"
import type { Edge } from "./scenario.ts"
import { called, ended, failed, retried, sent, stopped, succeeded } from "./trace.ts"
import { millis, sampler } from "./units.ts"
import type { World } from "./world.ts"

/** How many processes are asked for their gauges. */
const maxGauged = 100

/** Those who call a service with the same policy: the processes of a fleet, or another service. */
export class Client {
  readonly world: World
  readonly name: string
  readonly kind: ClientResult["kind"]
  readonly id: number
  readonly meter = new ClientMeter()
  readonly processes: ReadonlyArray<Process>
  readonly timeoutMillis: number
  readonly timeouts: Lane | undefined
  readonly network: Sampler | undefined
  readonly chance: Chance
  private readonly target: () => Target
  private readonly retrying: Retrying
  inFlight = 0

  constructor(
    world: World,
    edge: Edge & { readonly name: string; readonly processes: number },
    kind: ClientResult["kind"],
    target: () => Target
  ) {
    this.world = world
    this.name = edge.name
    this.kind = kind
    this.id = world.nextId()
    this.target = target
    this.timeoutMillis = edge.timeout === undefined ? Infinity : millis(edge.timeout)
    this.timeouts = edge.timeout === undefined ? undefined : world.time.lane(timesOut)
    this.network = sampler(edge.network)
    this.chance = world.chance(`${edge.name}/network`)
    this.retrying = resolve(edge.policy)
    const options = {
      retrying: this.retrying,
      time: world.time,
      chance: world.chance(`${edge.name}/jitter`)
    }
    this.processes = Array.from({ length: edge.processes }, () => new Process(options))
  }

  get service(): Target {
    return this.target()
  }

  /** Makes a call, and tells the caller at its end whether it went well. */
  call<For>(process: Process, caller: Caller<For>, of: For): void {
    new ClientCall(this, process, caller, of).begin()
  }

  get gauges(): Gauges {
    const { inFlight, processes } = this
    const step = Math.ceil(processes.length / maxGauged)
    const gauged = processes.filter((_, index) => index % step === 0)
    const rate = mean(gauged.map((process) => process.fillRate))
    return {
      inFlight,
      balance: mean(gauged.map((process) => process.balance)),
      budget: mean(gauged.map((process) => process.left)),
      fillRate: rate === null ? null : rate * processes.length
    }
  }

  /** What has been counted; `fromMillis` is the beginning of a bucket that runs. */
  result(fromMillis: number | undefined): ClientResult {
    const { gauges, kind, meter, name } = this
    return {
      name,
      kind,
      to: this.service.name,
      policy: this.retrying.label,
      totals: meter.totals(gauges),
      series: meter.series(fromMillis, gauges)
    }
  }
}

const mean = (values: ReadonlyArray<number | undefined>): number | null => {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length
}

/** What a call does by itself. */
const retries = 0
const ends = 1

/** One call: its attempts, as the policy of its process makes them. */
class ClientCall implements Actor {
  readonly client: Client
  readonly process: Process
  attempts = 0
  private failure: Failure = refused
  private readonly driven: RetryDriver.Call | undefined
  private readonly caller: Caller<any>
  private readonly of: unknown
  private readonly beganMillis: number

  constructor(client: Client, process: Process, caller: Caller<any>, of: unknown) {
    this.client = client
    this.process = process
    this.caller = caller
    this.of = of
    this.beganMillis = client.world.time.nowMillis
    this.driven = process.driver?.call()
  }

  begin(): void {
    const { client } = this
    client.inFlight++
    client.meter.now.calls++
    client.world.trace.add(this.beganMillis, called, client.id)
    this.enter()
  }

  act(what: number): void {
    if (what === retries) this.enter()
    else this.end(false)
  }

  /** The next send, as soon as the gates let it go. */
  private enter(): void {
    const waiting = this.driven?.enter()
    if (waiting === undefined) return this.send()
    this.process.fork(waiting).addObserver((exit) => {
      if (Exit.isSuccess(exit)) return this.send()
      const refusal = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      if (refusal === undefined) return this.client.world.fail(exit.cause)
      if (refusal.error instanceof ClientThrottled) this.failure = dropped
      this.follow(refusal.decision)
    })
  }

  private send(): void {
    this.driven?.leave()
    new Attempt(this).send()
  }

  succeeded(): void {
    this.driven?.succeeded()
    this.end(true)
  }

  failed(failure: Failure): void {
    this.failure = failure
    const { driven } = this
    if (driven === undefined) return this.end(false)
    const decision = driven.failed(failure)
    if (!Effect.isEffect(decision)) return this.follow(decision)
    this.process.fork(decision).addObserver((exit) => {
      if (Exit.isSuccess(exit)) this.follow(exit.value)
      else this.client.world.fail(exit.cause)
    })
  }

  private follow(decision: RetryDecision): void {
    const { client } = this
    const { time, trace } = client.world
    const delayMillis = Duration.toMillis(decision.delay)
    if (decision._tag === "Stop") {
      client.meter.now.stops.add(decision.reason)
      trace.add(time.nowMillis, stopped, client.id, decision.attempts)
      return delayMillis === 0 ? this.end(false) : time.plan(time.nowMillis + delayMillis, this, ends)
    }
    trace.add(time.nowMillis, retried, client.id, delayMillis)
    if (delayMillis === 0) time.soon(() => this.enter())
    else time.plan(time.nowMillis + delayMillis, this, retries)
  }

  private end(succeeded: boolean): void {
    const { client } = this
    const { meter, world } = client
    const now = world.time.nowMillis
    client.inFlight--
    if (succeeded) {
      meter.now.succeeded++
      meter.now.latency.add(now - this.beganMillis)
    } else {
      meter.now.failures.add(this.failure.kind)
    }
    world.trace.add(now, ended, client.id, succeeded ? this.attempts : -this.attempts)
    this.caller.ended(this.of, succeeded)
  }
}

/** One send of a call. */
class Attempt implements Request {
  private readonly call: ClientCall
  private deadline = -1
  ticket = -1
  asked = 0
  outcome: Failure | undefined = undefined
  /** The client has its answer, or has given up. */
  settled = false

  constructor(call: ClientCall) {
    this.call = call
    call.attempts++
  }

  send(): void {
    const { client } = this.call
    const { time, trace } = client.world
    const now = time.nowMillis
    client.world.attempts++
    client.meter.now.attempts++
    trace.add(now, sent, client.id, this.call.attempts)
    if (client.timeouts !== undefined) this.deadline = client.timeouts.add(now + client.timeoutMillis, this)
    const arrival = client.service.deliversAt(now) + this.leg()
    if (arrival > now) time.plan(arrival, this, arrives)
    else client.service.receive(this)
  }

  private leg(): number {
    const { chance, network } = this.call.client
    return network === undefined ? 0 : network(chance)
  }

  act(what: number): void {
    switch (what) {
      case arrives:
        return this.call.client.service.receive(this)
      case isAnswered:
        return this.settle(this.outcome)
      case timesOut:
        this.deadline = -1
        return this.settle(timedOut)
      default:
        return this.call.client.service.goesOn(this, what)
    }
  }

  /** The service answers; the answer travels back. */
  answer(failure: Failure | undefined): void {
    const leg = this.leg()
    if (leg === 0) return this.settle(failure)
    this.outcome = failure
    const { time } = this.call.client.world
    time.plan(time.nowMillis + leg, this, isAnswered)
  }

  /** The attempt has ended for its client; what comes later is ignored. */
  private settle(failure: Failure | undefined): void {
    if (this.settled) return
    this.settled = true
    const { client } = this.call
    const { time, trace } = client.world
    const now = time.nowMillis
    if (this.deadline >= 0) client.timeouts!.cancel(this.deadline)
    trace.add(now, failure === undefined ? succeeded : failed, client.id, this.call.attempts)
    if (failure === undefined) return this.call.succeeded()
    client.meter.now.attemptFailures.add(failure.kind)
    this.call.failed(failure)
  }
}
