import { ClientThrottled } from "effect-retry/ClientThrottle"
import type { Criticality } from "effect-retry/Criticality"
import type { RetryDecision } from "effect-retry/RetryDecision"
import type * as RetryDriver from "effect-retry/RetryDriver"
import { CurrentObserver, type RetryObserver } from "effect-retry/RetryObserver"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { Actor } from "./agenda.ts"
import type { Chance, Sampler } from "./chance.ts"
import type { Environment } from "./environment.ts"
import { dropped, type Failure, isFailure, refused, timedOut } from "./failure.ts"
import type { Lane } from "./lane.ts"
import { ClientMeter } from "./meter.ts"
import { resolve, type Retrying } from "./policy.ts"
import { Process } from "./process.ts"
import { arrives, type Caller, isAnswered, type Request, type Target, timesOut } from "./request.ts"
import type { ClientResult, Gauges } from "./result.ts"
import type { Edge } from "./scenario.ts"
import { called, ended, failed, retried, sent, stopped, succeeded } from "./trace.ts"
import { millis, sampler } from "./units.ts"

/** How many processes are sampled for gauges. */
const maxGauged = 100

/** The clients of a service, and their settings. */
export type ClientSettings = Edge & {
  readonly name: string
  readonly processes: number
  readonly criticality?: Criticality
  /** The fleet whose processes make the calls; `undefined`: their own. */
  readonly host?: Client | undefined
}

/** Clients with the same policy: the processes of a fleet, or another service. */
export class Client {
  readonly name: string
  readonly id: number
  readonly meter = new ClientMeter()
  readonly processes: ReadonlyArray<Process>
  readonly timeoutMillis: number
  readonly timeouts: Lane | undefined
  readonly patienceMillis: number
  readonly patience: Lane | undefined
  readonly network: Sampler | undefined
  readonly chance: Chance
  private readonly retrying: Retrying
  inFlight = 0

  constructor(
    readonly environment: Environment,
    edge: ClientSettings,
    readonly kind: ClientResult["kind"],
    private readonly target: () => Target
  ) {
    this.name = edge.name
    this.id = environment.nextId()
    this.timeoutMillis = edge.timeout === undefined ? Infinity : millis(edge.timeout)
    this.timeouts = edge.timeout === undefined ? undefined : environment.time.lane(timesOut)
    this.patienceMillis = edge.patience === undefined ? Infinity : millis(edge.patience)
    this.patience = edge.patience === undefined ? undefined : environment.time.lane(givesUp)
    this.network = sampler(edge.network)
    this.chance = environment.chance(`${edge.name}/network`)
    const { criticality = "normal", host } = edge
    this.retrying = host?.retrying ?? resolve(edge.policy)
    this.processes = host?.processes.map((process) => process.as(criticality)) ??
      this.madeProcesses(edge.processes, criticality)
  }

  private madeProcesses(count: number, criticality: Criticality): ReadonlyArray<Process> {
    const { name, retrying, environment } = this
    const options = { retrying, time: environment.time, chance: environment.chance(`${name}/jitter`) }
    return Array.from({ length: count }, () => Process.make(options, criticality))
  }

  get service(): Target {
    return this.target()
  }

  /** Makes a call, and reports to the caller at its end whether it succeeded. */
  call<For>(process: Process, caller: Caller<For>, of: For): void {
    const Call = process.hedged === undefined ? ClientCall : HedgedCall
    new Call(this, process, caller, of).begin()
  }

  /** Records what a policy has decided. */
  decided(decision: RetryDecision): void {
    const { time, trace } = this.environment
    if (decision._tag === "Stop") {
      this.meter.now.stops.add(decision.reason)
      trace.add(time.nowMillis, stopped, this.id, decision.attempts)
    } else {
      trace.add(time.nowMillis, retried, this.id, Duration.toMillis(decision.delay))
    }
  }

  /** Sees what policies decide in fibers. */
  readonly observer: RetryObserver = {
    onRetry: (retry) => this.decided(retry),
    onStop: (stop) => this.decided(stop)
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

  /** The counts so far; `fromMillis` is the start of the current bucket. */
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
  const defined = values.filter((value) => value !== undefined)
  return defined.length === 0 ? null : defined.reduce((sum, value) => sum + value, 0) / defined.length
}

/** The actions of a call. */
const retries = 0
const ends = 1
const givesUp = 2

/** What makes a send, and sees how it ends. */
interface Sender {
  readonly client: Client
  readonly process: Process
  /** The number of the send in its call: 1 for the first. */
  readonly attempts: number
  readonly succeeded: () => void
  readonly failed: (failure: Failure) => void
}

/** One call, from its beginning to its end. */
abstract class AnyCall implements Actor {
  attempts = 0
  protected failure: Failure = refused
  protected isOver = false
  private readonly beganMillis: number
  private patience = -1

  constructor(
    readonly client: Client,
    readonly process: Process,
    private readonly caller: Caller<any>,
    private readonly of: unknown
  ) {
    this.beganMillis = client.environment.time.nowMillis
  }

  begin(): void {
    const { client } = this
    client.inFlight++
    client.meter.now.calls++
    client.environment.trace.add(this.beganMillis, called, client.id)
    if (client.patience !== undefined) {
      this.patience = client.patience.add(this.beganMillis + client.patienceMillis, this)
    }
    this.enter()
  }

  /** Makes the first send, or the next. */
  protected abstract enter(): void

  /** Ends whatever is in progress. */
  protected abstract halt(): void

  act(what: number): void {
    if (this.isOver) return
    switch (what) {
      case retries:
        return this.enter()
      case ends:
        return this.end(false)
      case givesUp:
        return this.giveUp()
    }
  }

  /** Abandons whatever is in progress. */
  private giveUp(): void {
    this.patience = -1
    this.failure = timedOut
    this.isOver = true
    this.halt()
    this.end(false)
  }

  protected end(succeeded: boolean): void {
    const { client } = this
    const { meter, environment } = client
    const now = environment.time.nowMillis
    this.isOver = true
    if (this.patience >= 0) client.patience!.cancel(this.patience)
    client.inFlight--
    if (succeeded) {
      meter.now.succeeded++
      meter.now.latency.add(now - this.beganMillis)
    } else {
      meter.now.failures.add(this.failure.kind)
    }
    environment.trace.add(now, ended, client.id, succeeded ? this.attempts : -this.attempts)
    this.caller.ended(this.of, succeeded)
  }
}

/** A call that is hedged: its sends race, so it is a fiber. */
class HedgedCall extends AnyCall {
  private fiber: Fiber.Fiber<void, unknown> | undefined = undefined

  protected enter(): void {
    const made = Effect.provideService(this.process.hedged!(this.send), CurrentObserver, this.client.observer)
    const fiber = this.process.fork(made as Effect.Effect<void, unknown>)
    this.fiber = fiber
    fiber.addObserver((exit) => {
      if (this.isOver) return
      if (Exit.isSuccess(exit)) return this.end(true)
      const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      if (error === undefined) return this.client.environment.fail(exit.cause)
      if (isFailure(error)) this.failure = error
      else if (error instanceof ClientThrottled) this.failure = dropped
      this.end(false)
    })
  }

  protected halt(): void {
    this.fiber?.interruptUnsafe()
  }

  private readonly send = Effect.callback<void, Failure>((resume) => {
    const attempt = new Attempt({
      client: this.client,
      process: this.process,
      attempts: ++this.attempts,
      succeeded: () => resume(Effect.void),
      failed: (failure) => {
        this.failure = failure
        resume(Effect.fail(failure))
      }
    })
    attempt.send()
    return Effect.sync(() => this.isOver ? attempt.abandon() : attempt.lose())
  })
}

/** One call: its attempts, as the policy of its process makes them. */
class ClientCall extends AnyCall implements Sender {
  private readonly driven: RetryDriver.Call | undefined
  /** The send in progress. */
  private under: Attempt | undefined = undefined
  /** What the call waits for: a gate, or a quota. */
  private waiting: Fiber.Fiber<unknown, unknown> | undefined = undefined

  constructor(client: Client, process: Process, caller: Caller<any>, of: unknown) {
    super(client, process, caller, of)
    this.driven = process.driver?.call()
  }

  protected halt(): void {
    this.under?.abandon()
    this.waiting?.interruptUnsafe()
    this.driven?.abandon()
  }

  /** The next send, as soon as the gates admit it. */
  protected enter(): void {
    if (this.isOver) return
    const waiting = this.driven?.enter()
    if (waiting === undefined) return this.send()
    const fiber = this.process.fork(waiting)
    this.waiting = fiber
    fiber.addObserver((exit) => {
      this.waiting = undefined
      if (this.isOver) return
      if (Exit.isSuccess(exit)) return this.send()
      const refusal = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      if (refusal === undefined) return this.client.environment.fail(exit.cause)
      if (refusal.error instanceof ClientThrottled) this.failure = dropped
      this.follow(refusal.decision)
    })
  }

  private send(): void {
    this.driven?.markSent()
    this.attempts++
    this.under = new Attempt(this)
    this.under.send()
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
    const fiber = this.process.fork(decision)
    this.waiting = fiber
    fiber.addObserver((exit) => {
      this.waiting = undefined
      if (this.isOver) return
      if (Exit.isSuccess(exit)) this.follow(exit.value)
      else this.client.environment.fail(exit.cause)
    })
  }

  private follow(decision: RetryDecision): void {
    const { time } = this.client.environment
    const delayMillis = Duration.toMillis(decision.delay)
    this.client.decided(decision)
    if (decision._tag === "Stop") {
      return delayMillis === 0 ? this.end(false) : time.plan(time.nowMillis + delayMillis, this, ends)
    }
    if (delayMillis === 0) time.soon(() => this.enter())
    else time.plan(time.nowMillis + delayMillis, this, retries)
  }
}

/** One send of a call. */
class Attempt implements Request {
  private readonly number: number
  private deadline = -1
  ticket = -1
  asked = 0
  server = 0
  turnMillis = -1
  fresh = false
  outcome: Failure | undefined = undefined
  /** The client has its answer, or has given up. */
  settled = false

  constructor(private readonly call: Sender) {
    this.number = call.attempts
  }

  send(): void {
    const { client } = this.call
    const { time, trace } = client.environment
    const now = time.nowMillis
    client.environment.attempts++
    client.meter.now.attempts++
    trace.add(now, sent, client.id, this.number)
    if (client.timeouts !== undefined) this.deadline = client.timeouts.add(now + client.timeoutMillis, this)
    this.fresh = this.call.process.connections === 0
    if (!this.fresh) this.call.process.connections--
    const arrival = client.service.deliversAt(now, this.fresh) + this.leg()
    if (arrival === Infinity) return
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
        return this.answered(this.outcome)
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
    if (leg === 0) return this.answered(failure)
    this.outcome = failure
    const { time } = this.call.client.environment
    time.plan(time.nowMillis + leg, this, isAnswered)
  }

  /** The answer is here: the connection is free for the next, unless its client has closed it. */
  private answered(failure: Failure | undefined): void {
    if (!this.settled) this.call.process.connections++
    this.settle(failure)
  }

  /** The attempt has ended for its client; what comes later is ignored. */
  private settle(failure: Failure | undefined): void {
    if (this.settled) return
    this.close(failure)
    if (failure === undefined) this.call.succeeded()
    else this.call.failed(failure)
  }

  private close(failure: Failure | undefined): void {
    const { client } = this.call
    const { time, trace } = client.environment
    this.settled = true
    if (this.deadline >= 0) client.timeouts!.cancel(this.deadline)
    trace.add(time.nowMillis, failure === undefined ? succeeded : failed, client.id, this.number)
    if (failure !== undefined) client.meter.now.attemptFailures.add(failure.kind)
  }

  /** Another send of the call was first: this one is abandoned. */
  lose(): void {
    if (this.settled) return
    this.settled = true
    if (this.deadline >= 0) this.call.client.timeouts!.cancel(this.deadline)
  }

  /** The call has ended before it. */
  abandon(): void {
    if (!this.settled) this.close(timedOut)
  }
}
