import { withRetry } from "effect-retry/Attempt"
import type { RetryObserver } from "effect-retry/RetryObserver"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Chance, Sampler } from "./chance.ts"
import { dropped, type Failure, refused, timedOut } from "./failure.ts"
import type { Timer } from "./heap.ts"
import { ClientMeter } from "./meter.ts"
import { resolve, type Retrying } from "./policy.ts"
import { Process } from "./process.ts"
import type { Request, Target } from "./request.ts"
import type { ClientResult, Gauges } from "./result.ts"
import type { Edge } from "./scenario.ts"
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
    this.network = sampler(edge.network)
    this.chance = world.chance(`${edge.name}/network`)
    this.retrying = resolve(edge.policy)
    const throttle = edge.throttle && { k: edge.throttle.k, windowMillis: millis(edge.throttle.window) }
    const options = {
      retrying: this.retrying,
      throttle,
      observer: this.observer,
      time: world.time,
      chance: world.chance(`${edge.name}/jitter`)
    }
    this.processes = Array.from({ length: edge.processes }, () => new Process(options))
  }

  get service(): Target {
    return this.target()
  }

  private readonly observer: RetryObserver = {
    onRetry: (retry) =>
      this.world.trace.add(this.world.time.nowMillis, "retry", this.id, Duration.toMillis(retry.delay)),
    onStop: ({ attempts, reason }) => {
      this.meter.now.stops.add(reason)
      this.world.trace.add(this.world.time.nowMillis, "stop", this.id, attempts)
    }
  }

  /** Makes a call, and says at its end whether it went well. */
  call(process: Process, done: (succeeded: boolean) => void): void {
    new ClientCall(this, process, done).begin()
  }

  get gauges(): Gauges {
    const { inFlight, processes } = this
    const step = Math.ceil(processes.length / maxGauged)
    const gauged = processes.filter((_, index) => index % step === 0)
    const now = this.world.time.nowMillis
    const rate = mean(gauged.map((process) => process.fillRate))
    return {
      inFlight,
      balance: mean(gauged.map((process) => process.balance)),
      budget: mean(gauged.map((process) => process.budget?.balance(now))),
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

/** One call: its attempts, as the policy of its process makes them. */
class ClientCall {
  readonly client: Client
  readonly process: Process
  attempts = 0
  failure: Failure = refused
  private readonly done: (succeeded: boolean) => void
  private readonly beganMillis: number

  constructor(client: Client, process: Process, done: (succeeded: boolean) => void) {
    this.client = client
    this.process = process
    this.done = done
    this.beganMillis = client.world.time.nowMillis
  }

  begin(): void {
    const { client, process } = this
    client.inFlight++
    client.meter.now.calls++
    client.world.trace.add(this.beganMillis, "call", client.id)
    process.budget?.called(this.beganMillis)
    const send = Effect.callback<void, Failure>((resume) => new Attempt(this, resume).send())
    const call = process.policy === undefined ? send : withRetry(send, process.policy)
    process.fork(call).addObserver(this.ended)
  }

  private readonly ended = (exit: Exit.Exit<void, unknown>): void => {
    const { client } = this
    const { meter, world } = client
    const now = world.time.nowMillis
    client.inFlight--
    const succeeded = Exit.isSuccess(exit)
    if (succeeded) {
      meter.now.succeeded++
      meter.now.latency.add(now - this.beganMillis)
    } else if (Cause.hasFails(exit.cause)) {
      meter.now.failures.add(this.failure.kind)
    } else {
      world.defect = { cause: exit.cause }
    }
    world.trace.add(now, "end", client.id, succeeded ? this.attempts : -this.attempts)
    this.done(succeeded)
  }
}

/** One send of a call. */
class Attempt implements Request {
  private readonly call: ClientCall
  private readonly retry: boolean
  private readonly resume: (outcome: Effect.Effect<void, Failure>) => void
  private timer: Timer | undefined = undefined
  /** The client has its answer, or has given up. */
  settled = false

  constructor(call: ClientCall, resume: (outcome: Effect.Effect<void, Failure>) => void) {
    this.call = call
    this.resume = resume
    this.retry = call.attempts > 0
    call.attempts++
  }

  send(): void {
    const { client, process } = this.call
    const { time, trace } = client.world
    const now = time.nowMillis
    if (process.throttle?.drops(now, client.chance.nextDoubleUnsafe())) return this.settle(dropped)
    client.world.attempts++
    client.meter.now.attempts++
    process.budget?.sent()
    trace.add(now, "send", client.id, this.call.attempts)
    if (client.timeoutMillis !== Infinity) {
      this.timer = time.at(now + client.timeoutMillis, () => {
        this.timer = undefined
        this.settle(timedOut)
      })
    }
    const arrives = client.service.deliversAt(now) + this.leg()
    if (arrives > now) time.at(arrives, () => client.service.receive(this))
    else client.service.receive(this)
  }

  private leg(): number {
    const { chance, network } = this.call.client
    return network === undefined ? 0 : network(chance)
  }

  /** The service answers; the answer travels back. */
  answer(failure: Failure | undefined): void {
    const leg = this.leg()
    if (leg === 0) return this.settle(failure)
    const { time } = this.call.client.world
    time.at(time.nowMillis + leg, () => this.settle(failure))
  }

  /** The attempt has ended for its client; what comes later is ignored. */
  private settle(failure: Failure | undefined): void {
    if (this.settled) return
    this.settled = true
    const { client, process } = this.call
    const { time, trace } = client.world
    const now = time.nowMillis
    if (this.timer !== undefined) time.cancel(this.timer)
    if (failure !== dropped) process.budget?.ended(failure === undefined, this.retry, now)
    else if (this.retry) process.budget?.dropped()
    trace.add(now, failure === undefined ? "succeed" : "fail", client.id, this.call.attempts)
    if (failure === undefined) {
      process.throttle?.accepted(now)
      return this.resume(Effect.void)
    }
    this.call.failure = failure
    client.meter.now.attemptFailures.add(failure.kind)
    this.resume(Effect.fail(failure))
  }
}
