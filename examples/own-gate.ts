/**
 * Your own gate: a maximum number of sends at the same time.
 *
 * A service that has become slow holds on to its callers' sends: soon
 * all of them wait for it, and nothing is left for other services. A
 * bulkhead lets a few sends in, makes a few more wait in line, and
 * refuses the others before they are sent: an error that costs nothing.
 * Every send asks it, first or retry, under any policy. The kit's suite
 * tests it: `SendGateSuite.laws(Effect.sync(() => new
 * Bulkhead(options)))`.
 */
import { Data, Effect, Layer } from "effect"
import {
  awsStandard,
  RetryPolicy,
  SendGate,
  withRetry
} from "effect-retry"
import { main, showMany } from "./support/program.ts"

/**
 * The send was refused. The mark says that nothing was sent, so no
 * policy retries it.
 */
export class BulkheadFull
  extends Data.TaggedError("BulkheadFull")<{ readonly sends: number }>
{
  readonly [SendGate.Refused] = true
}

export interface Options {
  /** How many sends run at the same time. */
  readonly sends: number
  /** How many wait in line. */
  readonly waiting: number
}

export class Bulkhead implements SendGate.SendGate<BulkheadFull> {
  /**
   * Before the adaptive limiter, at 400: a send should not wait for a
   * place while holding one of its tokens.
   */
  readonly order = 300
  private free: number
  /** The waiting sends, in order of arrival. */
  private readonly line = new Set<() => void>()
  /** All sends do the same when they end, so they share one pass. */
  private readonly pass: SendGate.Pass = {
    settle: () => this.release(),
    cancel: () => this.release()
  }
  private readonly options: Options

  constructor(options: Options) {
    this.options = options
    this.free = options.sends
  }

  enter(send: SendGate.Send): void | Effect.Effect<void, BulkheadFull> {
    if (this.take(send)) return
    return Effect.suspend(() =>
      this.line.size < this.options.waiting
        ? this.wait(send)
        : this.refusal
    )
  }

  /** Passes if there is a place. */
  private take(send: SendGate.Send): boolean {
    if (this.free === 0) return false
    this.free--
    send.hold(this.pass)
    return true
  }

  private wait(send: SendGate.Send): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.take(send)) return resume(Effect.void)
      const next = () => {
        send.hold(this.pass)
        resume(Effect.void)
      }
      this.line.add(next)
      // An interrupted send has taken nothing, and is no longer in
      // line.
      return Effect.sync(() => this.line.delete(next))
    })
  }

  /** Hands the place on, or frees it. */
  private release(): void {
    const [next] = this.line
    if (next === undefined) {
      this.free++
    } else {
      this.line.delete(next)
      next()
    }
  }

  private get refusal(): Effect.Effect<never, BulkheadFull> {
    return Effect.fail(new BulkheadFull({ sends: this.options.sends }))
  }
}

/** The service of the gate. Attempts find it in their context. */
export class OrdersBulkhead
  extends SendGate.Service<OrdersBulkhead, BulkheadFull>()(
    "app/OrdersBulkhead"
  )
{}

export const layer = Layer.sync(
  OrdersBulkhead,
  () => new Bulkhead({ sends: 10, waiting: 20 })
)

/** It needs the gate: a program without the layer does not compile. */
const policy = awsStandard.pipe(RetryPolicy.requires(OrdersBulkhead))

/** Fails with `BulkheadFull` too, as its type says. */
export const load = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(withRetry(policy))

/**
 * Catches the refusal of any gate, also where no type names it. All
 * other errors stay.
 */
export const orBusy = <A, E>(send: Effect.Effect<A, E>) =>
  load(send).pipe(
    SendGate.catchRefusal(({ _tag }) => Effect.succeed(`busy: ${_tag}`))
  )

const slow = Effect.delay(Effect.succeed("ok"), "1 second")

main(
  import.meta.url,
  showMany("10 at a time, 20 in line", { calls: 40 }, slow, load).pipe(
    Effect.provide(layer)
  )
)
