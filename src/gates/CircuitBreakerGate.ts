/**
 * Effect's circuit breaker as a gate: every send asks the circuit, first or retry, under any policy.
 *
 * While the circuit is open nothing is sent: a send fails with {@link CircuitRefused}, which costs no token and is not
 * retried. The breaker, its policy and its store are those of `effect/persistence`; this module only asks it.
 *
 * It comes after `CoolDown` and before every gate that makes sends wait, so that no send waits only to be refused. If a
 * `CoolDown` is also in the context, an open circuit closes it: once the circuit lets a probe through, sends follow a
 * few at a time.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import type * as Scope from "effect/Scope"
import { checksOf } from "../internal/checks.ts"
import { callback, inCode, positiveDuration, type Valid as ValidOf, validOptions } from "../internal/options.ts"
import { isRejected } from "../internal/rejection.ts"
import * as SendGate from "../SendGate.ts"
import { CoolDown } from "./CoolDown.ts"
import { RefusalError } from "./internal/gate.ts"

/**
 * A send that the circuit does not let through. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class CircuitRefused extends RefusalError("CircuitRefused")<{
  /** The circuit. */
  readonly key: string
  /** The breaker's reason: it is open, a probe is in progress, or its store does not respond. */
  readonly reason: CircuitBreaker.CircuitBreakerErrorReason["_tag"]
  /** When the circuit lets a probe through; `undefined` if the breaker does not know. */
  readonly retryAfter: Duration.Duration | undefined
  /** The error of the breaker. */
  readonly cause: CircuitBreaker.CircuitBreakerError
}> {
  override get message(): string {
    return this.retryAfter === undefined
      ? `the circuit ${JSON.stringify(this.key)} lets no send through: ${this.cause.message}`
      : `the circuit ${JSON.stringify(this.key)} is open: try again in ${Duration.format(this.retryAfter)}`
  }
}

/**
 * Options of a gate.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The circuit that sends ask: the name of what is called. */
  readonly key: string
  /**
   * Whether a failure counts against the called service. Default: one that may be retried, a throttle, a timeout, or
   * one whose retry a rule forbids. Its `retryAfter` extends the time the circuit stays open. Any other failure is a
   * response, like a success. Where it throws, the default answers.
   */
  readonly isFailure?: ((outcome: SendGate.Outcome) => boolean) | undefined
  /**
   * How long a probe may take before the circuit lets the next one through: a finite duration above 0, longer than any
   * good send. Default 1 minute.
   */
  readonly probeTime?: Duration.Input | undefined
}

/**
 * The gate of a circuit.
 *
 * @category services
 * @since 0.1.0
 */
export class CircuitBreakerGate
  extends SendGate.Service<CircuitBreakerGate, CircuitRefused>()("effect-retry/CircuitBreakerGate")
{}

/** When the circuit lets a probe through, if the breaker knows. */
const retryAfterOf = ({ reason }: CircuitBreaker.CircuitBreakerError): Duration.Duration | undefined =>
  reason._tag === "CircuitOpen" ? reason.retryAfter : undefined

const circuitOptions = {
  key: inCode,
  isFailure: callback(isRejected),
  probeTime: positiveDuration(60_000)
}

/** Valid options. */
type Valid = ValidOf<typeof circuitOptions> & { readonly key: string }

class CircuitGate implements SendGate.SendGate<CircuitRefused> {
  readonly name = "CircuitBreaker"
  readonly order = 150

  constructor(
    private readonly options: Valid,
    private readonly breaker: CircuitBreaker.CircuitBreaker,
    private readonly scope: Scope.Scope
  ) {}

  /** The breaker runs what waits for the outcome of the send, in its own fiber. */
  enter(send: SendGate.Send): void | Effect.Effect<void, CircuitRefused> {
    let isHeld = false
    let held = () => {
      isHeld = true
    }
    const outcome = Effect.suspend(() => {
      const outcome = Deferred.makeUnsafe<CircuitBreaker.Outcome>()
      const end = (result: CircuitBreaker.Outcome) => Deferred.doneUnsafe(outcome, Effect.succeed(result))
      send.hold({ settle: (outcome) => end(this.outcomeOf(outcome)), cancel: () => end(CircuitBreaker.ignored) })
      held()
      return this.inTime(Deferred.await(outcome))
    })
    const fiber = Effect.runForkWith(send.context)(this.booked(send, outcome))
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return this.refused(exit)
    Fiber.runIn(fiber, this.scope)
    if (isHeld) return
    // The store answers later.
    return Effect.callback<void, CircuitRefused>((resume) => {
      if (isHeld) return resume(Effect.void)
      held = () => resume(Effect.void)
      fiber.addObserver((exit) => resume(this.refused(exit)))
      return Fiber.interrupt(fiber)
    })
  }

  /** A probe that takes too long leaves its place to the next. */
  private inTime(outcome: Effect.Effect<CircuitBreaker.Outcome>): Effect.Effect<CircuitBreaker.Outcome> {
    const orElse = () =>
      Effect.flatMap(
        this.state,
        (state) => state?._tag === "HalfOpen" ? Effect.succeed(CircuitBreaker.ignored) : outcome
      )
    return Effect.timeoutOrElse(outcome, { duration: this.options.probeTimeMillis, orElse })
  }

  private booked(
    send: SendGate.Send,
    outcome: Effect.Effect<CircuitBreaker.Outcome>
  ): Effect.Effect<void, CircuitBreaker.CircuitBreakerError> {
    const executed = this.breaker.execute(outcome, {
      key: this.options.key,
      classify: (exit) => Exit.isSuccess(exit) ? exit.value : CircuitBreaker.ignored
    })
    return Effect.matchEffect(executed, {
      // A failure may have opened the circuit.
      onSuccess: ({ _tag }) => _tag === "Failure" ? this.closing(send, this.reopening) : Effect.void,
      onFailure: (error) => Effect.andThen(this.closing(send, Effect.succeed(retryAfterOf(error))), Effect.fail(error))
    })
  }

  private outcomeOf(outcome: SendGate.Outcome): CircuitBreaker.Outcome {
    if (outcome._tag === "Unknown") return CircuitBreaker.ignored
    return outcome._tag === "Failure" && this.options.isFailure(outcome)
      ? CircuitBreaker.failure({ retryAfter: outcome.info?.retryAfter })
      : CircuitBreaker.success
  }

  private refused(exit: Exit.Exit<void, CircuitBreaker.CircuitBreakerError>): Effect.Effect<void, CircuitRefused> {
    const { key } = this.options
    return Effect.mapError(
      exit,
      (cause) => new CircuitRefused({ key, cause, reason: cause.reason._tag, retryAfter: retryAfterOf(cause) })
    )
  }

  /** When the circuit lets a probe through, if it is open. */
  private get reopening() {
    return Effect.map(this.state, (state) => state?._tag === "Open" ? state.retryAfter : undefined)
  }

  /** `undefined` if the store does not respond. */
  private get state() {
    return Effect.orElseSucceed(this.breaker.state(this.options.key), () => undefined)
  }

  /** An open circuit closes the resource: the cool-down lets sends follow the probe a few at a time. */
  private closing(
    { context }: SendGate.Send,
    retryAfter: Effect.Effect<Duration.Duration | undefined>
  ): Effect.Effect<void> {
    const coolDown = Context.getOrUndefined(context, CoolDown)
    if (coolDown === undefined) return Effect.void
    return Effect.flatMap(retryAfter, (hint) => hint === undefined ? Effect.void : Effect.ignore(coolDown.close(hint)))
  }
}

/**
 * Makes a gate of the breaker in the context. Throws `InvalidOption` when an option is invalid.
 *
 * **Details**
 *
 * A send that ends in a defect or an interruption, or is not made because a later gate refuses it, reports nothing to
 * the breaker and frees the slot of a probe. So does a probe that takes longer than `probeTime`, whatever it ends with,
 * and closing the scope does the same for sends in progress.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options: Options
): Effect.Effect<SendGate.SendGate<CircuitRefused>, never, CircuitBreaker.CircuitBreaker | Scope.Scope> => {
  const check = checksOf("CircuitBreakerGate.make", options)
  const { key } = options
  if (typeof key !== "string") check.reject("key", key, "a string")
  const valid = { ...validOptions(check, circuitOptions, options), key }
  return Effect.gen(function*() {
    return new CircuitGate(valid, yield* CircuitBreaker.CircuitBreaker, yield* Effect.scope)
  })
}

/**
 * A layer with a gate of the breaker in the context. Throws `InvalidOption` when an option is invalid.
 *
 * **Example** (Nothing is sent for 30 seconds after five failures in a row)
 *
 * ```ts
 * const breakerLayer = CircuitBreaker.layer({
 *   tripPolicy: CircuitBreaker.consecutive(5),
 *   openDuration: "30 seconds"
 * }).pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))
 * const gateLayer = CircuitBreakerGate.layer({ key: "orders" }).pipe(Layer.provide(breakerLayer))
 * const program = call.pipe(withRetry(awsStandard), Effect.provide([RetryQuota.layer(), CoolDown.layer(), gateLayer]))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<CircuitBreakerGate, never, CircuitBreaker.CircuitBreaker> =>
  Layer.effect(CircuitBreakerGate, make(options))
