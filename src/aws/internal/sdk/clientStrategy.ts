import type * as Smithy from "@smithy/types"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Compiled } from "../../../engine/compiled.ts"
import { isRetryable } from "../../../engine/verdict.ts"
import { get } from "../../../internal/tryGet.ts"
import { classify, CurrentClassifier } from "../../../RetryClassifier.ts"
import * as RetryInfo from "../../../RetryInfo.ts"
import { discard, InvalidToken, type Operation, type Service, type Token } from "../tokenStrategy.ts"
import { unknownInfo } from "./errorInfo.ts"

/**
 * The abort signals of the calls in progress, by the scope with which they ask for their first token.
 *
 * The retry loop of the SDK passes one thing about a call to a strategy: this string, made of `partition_id`. It keeps
 * the signal to itself, and a client has one strategy for all its calls. So the signal is found by a name that is
 * unique in the process, for as long as the call lasts.
 */
const signals = new Map<string, AbortSignal>()

let calls = 0

/** The abort signal of the call that asks for a token for this scope, if known. */
export const signalOf = (scope: string): AbortSignal | undefined => signals.get(scope.split(":")[0]!)

/** A plug-in of the client that passes the call's signal to one of our strategies. */
export const abortPlugin: Smithy.Pluggable<any, any> = {
  applyToStack: (stack: Smithy.MiddlewareStack<any, any>) => {
    stack.addRelativeTo((next: any, context: object) => (args: any) => {
      const signal = get(get(context, "__smithy_context"), "abortSignal")
      if (!(signal instanceof AbortSignal)) return next(args)
      const scope = `effect-retry-${++calls}`
      signals.set(scope, signal)
      Object.assign(context, { partition_id: scope })
      return Promise.resolve(args).then(next).finally(() => signals.delete(scope))
    }, {
      name: "effectRetryAbort",
      relation: "before",
      toMiddleware: "retryMiddleware",
      override: true
    })
  }
}

/** What a strategy knows about a call. */
type Call = Operation & { readonly signal: AbortSignal | undefined }

/**
 * One of our tokens, in the SDK's form. A promise delivers it to a caller that may have stopped waiting for it.
 *
 * The SDK races the token against the abort signal, which it does not pass on, and drops a token that loses, so nothing
 * is called that could say so. What can be seen of a race is whether it looks at the value, and that what listens is
 * built in. Dropping tokens until they are garbage would lose them for as long as that takes.
 */
class SdkToken implements Smithy.StandardRetryToken {
  readonly $retryLog: { readonly acquisitionDelay: number }
  /** Whether any code has received it. */
  isTaken = false

  constructor(readonly owner: SdkStrategy, readonly token: Token, readonly call: Call) {
    this.$retryLog = { acquisitionDelay: Duration.toMillis(Duration.sum(token.waited, token.delay)) }
  }

  /**
   * A promise resolved with the token first looks for this property, unless it is already settled: then it ignores the
   * token and does not look. So a look means that the token was received.
   */
  get then(): undefined {
    this.isTaken = true
    return undefined
  }

  getRetryCount(): number {
    return this.token.attempt - 1
  }

  getRetryDelay(): number {
    return 0
  }

  getRetryCost(): number | undefined {
    return this.token.attempt === 1 ? undefined : this.token.cost
  }

  isLongPoll(): boolean {
    return this.call.longPolling === true
  }
}

const nativeCode = /\{\s*\[native code\]\s*\}\s*$/

/** Whether a callback is built in, such as those that `Promise.race` passes. */
const isNative = (callback: unknown): boolean =>
  typeof callback !== "function" || nativeCode.test(Function.prototype.toString.call(callback))

/**
 * Watches who waits for a promise. Returns a function that says whether only races do, which may be over.
 *
 * `Promise.race` does not report when it is over, but it ignores a value that comes too late, and that can be seen: the
 * value is never looked at. A promise that is awaited directly, or by the caller's own callbacks, counts as waited for.
 */
const watchRaces = (promise: Promise<SdkToken>): () => boolean => {
  const listen = promise.then.bind(promise)
  const listeners: Array<unknown> = []
  const then: typeof listen = (onToken, onError) => {
    listeners.push(onToken)
    return listen(onToken, onError)
  }
  Object.defineProperty(promise, "then", { value: then, configurable: true })
  return () => listeners.length > 0 && listeners.every(isNative)
}

/** The facts in what the SDK reports about a failure, if our own classifier does not know it. */
const byType: ReadonlyMap<unknown, RetryInfo.RetryInfo> = new Map([
  ["THROTTLING", RetryInfo.throttled()],
  ["TRANSIENT", RetryInfo.transient]
])

/** The facts of errors of the client that are not known to be transient. */
const clientErrors = new WeakSet<object>()

const infoOf = (info: Smithy.RetryErrorInfo): Effect.Effect<RetryInfo.RetryInfo | undefined> =>
  Effect.gen(function*() {
    const classifier = yield* CurrentClassifier
    const facts = Option.getOrUndefined(classify(classifier, info.error)) ?? byType.get(info.errorType)
    if (info.errorType === "CLIENT_ERROR" && (facts === undefined || facts.safety === "No")) {
      const final = { ...facts ?? unknownInfo(info.error) }
      clientErrors.add(final)
      return final
    }
    if (facts === undefined || facts.retryAfter !== undefined || !(info.retryAfterHint instanceof Date)) return facts
    const retryAfter = info.retryAfterHint.getTime() - (yield* Clock.currentTimeMillis)
    return RetryInfo.make({ ...facts, retryAfter: Math.min(retryAfter, Number.MAX_SAFE_INTEGER) })
  })

/** A policy that never retries such an error, whatever else it retries. */
export const unlessClientError = ({ whileRetryable }: Compiled): Partial<Compiled> => ({
  whileRetryable: (failing) => !clientErrors.has(failing.info!) && isRetryable(whileRetryable, failing)
})

/** The strategy of a policy, as the SDK's retry middleware drives it. */
export class SdkStrategy implements Smithy.RetryStrategyV2 {
  constructor(
    private readonly service: Service<unknown>,
    private readonly context: Context.Context<never>,
    readonly mode: "standard" | "adaptive",
    readonly maxAttempts: number
  ) {}

  acquireInitialRetryToken(retryTokenScope: string): Promise<Smithy.RetryToken> {
    const longPolling = retryTokenScope.includes(":longpoll")
    const call: Call = { longPolling, signal: signalOf(retryTokenScope) }
    return this.issue(this.service.acquireInitialToken(call), call)
  }

  refreshRetryTokenForRetry(token: Smithy.RetryToken, info: Smithy.RetryErrorInfo): Promise<Smithy.RetryToken> {
    return this.owns(token)
      ? this.issue(this.refresh(token.token, info), token.call, token.token)
      : Promise.reject(new InvalidToken({ reason: "foreign" }))
  }

  recordSuccess(token: Smithy.RetryToken): void {
    if (!this.owns(token)) return
    // Immediately: the fiber of the call may be interrupted in the next step.
    const exit = Effect.runSyncExitWith(this.context)(this.service.recordSuccess(token.token))
    if (Exit.isFailure(exit)) {
      Effect.runForkWith(this.context)(Effect.logDebug("a success was not recorded", exit.cause))
    }
  }

  private owns(token: Smithy.RetryToken): token is SdkToken {
    return token instanceof SdkToken && token.owner === this
  }

  /** The next token, after its backoff. A call aborted in flight counts neither as success nor as failure. */
  private refresh(token: Token, info: Smithy.RetryErrorInfo): Effect.Effect<Token, unknown> {
    if (get(info.error, "name") === "AbortError") return Effect.fail(info.error)
    return Effect.flatMap(infoOf(info), (facts) => {
      const classifier = () => Option.fromUndefinedOr(facts)
      return this.service.refreshRetryToken(token, info.error).pipe(
        Effect.provideService(CurrentClassifier, classifier),
        Effect.tap(({ delay }) => Duration.isZero(delay) ? Effect.void : Effect.sleep(delay))
      )
    })
  }

  /**
   * Passes a token to the middleware. One that comes after the call was aborted goes back. If an abort keeps the
   * strategy from seeing the previous attempt's error, that attempt ended without an outcome.
   */
  private issue(acquire: Effect.Effect<Token, unknown>, call: Call, before?: Token): Promise<SdkToken> {
    const token = Effect.map(acquire, (token) => new SdkToken(this, token, call))
    const promise = Effect.runPromiseWith(this.context)(token, { signal: call.signal })
    void promise.then((delivered) => {
      // Until now only the promise that delivers has looked.
      delivered.isTaken = false
      // Once all reactions have run.
      const check = Effect.suspend(() =>
        isRaced() && !delivered.isTaken ? delivered.token.abandon : delivered.token.markSent
      )
      Effect.runForkWith(this.context)(Effect.andThen(Effect.yieldNow, check))
    }, () => discard(before))
    const isRaced = watchRaces(promise)
    return promise
  }
}
