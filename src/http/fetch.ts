/**
 * `fetch` that retries, for code outside Effect.
 *
 * {@link retryFetch} makes a function that is called as `fetch` is, and answers as `fetch` does: the last response is
 * the result, also if it is a 503, and a network error is rejected unchanged. In between it retries what may be sent
 * twice, waits as long as the server asks, and gives each host a quota, so that an outage of one leaves the others
 * alone.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as PromiseCall from "../drivers/internal/promiseCall.ts"
import type { AttemptContext, ContextOptions, Policy, RetryOptions } from "../drivers/internal/promiseOptions.ts"
import { changed } from "../engine/compiled.ts"
import { compiledOf } from "../engine/policy/policy.ts"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import * as CoolDown from "../gates/CoolDown.ts"
import { callable, type Checks, checksOf } from "../internal/checks.ts"
import { isReader, isRepeatable } from "../internal/classification/wire.ts"
import { get, look, short } from "../internal/tryGet.ts"
import * as ResourceLimiters from "../resources/ResourceLimiters.ts"
import * as RetryQuota from "../RetryQuota.ts"
import type * as SendGate from "../SendGate.ts"
import * as defaults from "./internal/defaults.ts"
import { globalFetch } from "./internal/globalFetch.ts"

/**
 * `fetch`, as the program's own types have it.
 *
 * @category models
 * @since 0.1.0
 */
export type Fetch = typeof globalThis.fetch

/**
 * Options of a `fetch` that retries. All can be left out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends RetryOptions, ContextOptions {
  /**
   * When to retry, and how often. Whatever it says, only what is known to be transient, and may be sent twice, is
   * retried. Default `httpStandard`, with 10 attempts in 30 seconds: random delays up to 100, 200, 400 milliseconds and so
   * on, up to 5 seconds, or as long as the server asks, as long as the retry begins within 30 seconds. If the server
   * asks for more, its response is the result.
   */
  readonly policy?: Policy<ResourceLimiters.Limiters> | undefined
  /**
   * How long one attempt may take until its response begins: above 0, or `false` for as long as it likes. Its body is
   * not limited: pass a `signal` for that. An attempt that takes longer is aborted, and fails with a `DOMException`
   * named `TimeoutError`, which is retried if the policy still allows it. Default 10 seconds, or 30 if no attempt can
   * follow it, as for a POST without `Idempotency-Key`: too short for some reports and language models.
   */
  readonly attemptTimeout?: Duration.Input | false | undefined
  /**
   * The quota of each host, which its retries are paid from. Default: 500 tokens, of which a retry takes 5; with a
   * `context` that has a quota, that one, for all hosts.
   */
  readonly quota?: RetryQuota.Options | undefined
  /**
   * What happens when a host asks a caller to wait: all callers of it do, and then a few go first. Default: a call that
   * would wait longer than 10 seconds, or with too many others, is sent, once. With options, of which `maxWait` is 10
   * seconds if left out, it fails with `CoolingDown`, unsent. `false`: each call only waits for what it was asked itself.
   */
  readonly coolDown?: CoolDown.Options | false | undefined
  /**
   * Makes the requests. Default: the global `fetch` of the moment, so a test may replace it; if this function has ever
   * taken its place, the one before.
   */
  readonly fetch?: Fetch | undefined
}

const isRequest = (u: unknown): u is Request =>
  typeof get(u, "url") === "string" && typeof get(u, "clone") === "function"

/** The host and port; of a relative address, those of the page. */
const hostOf = (address: string): string =>
  look(() => new URL(address, get(get(globalThis, "location"), "href") as string | undefined).host) ?? ""

/** Firefox does not show the body of a request. */
const hasBody = ({ body, method }: Request): boolean => body !== null && method !== "GET" && method !== "HEAD"

/** A `Request` with options is another request, which has a referrer only if they say so. */
const keptOf = ({ referrer, referrerPolicy }: Request): RequestInit => ({
  ...(typeof referrer === "string" ? { referrer } : {}),
  ...(referrerPolicy ? { referrerPolicy } : {})
})

/** The sending of a request: one that has a body is sent itself, and its copy if it is sent again. */
const sendingOf = (fetch: Fetch, input: Parameters<Fetch>[0], init: RequestInit | undefined) => {
  let spare = isRequest(input) && (init?.body ?? null) === null && hasBody(input) ? input : undefined
  return {
    send: ({ signal }: AttemptContext) => {
      const sent = spare ?? input
      spare = spare?.clone()
      const kept = init === undefined && isRequest(input) ? keptOf(input) : init
      return fetch(sent, { ...kept, signal })
    },
    /** Nothing is sent any more. */
    end: () => {
      if (spare !== input) spare?.body?.cancel().catch(() => {})
    }
  }
}

/** A send that nothing follows, and nothing counts. */
const uncounted: SendGate.Pass = { settle: () => {}, cancel: () => {} }

/** First sends pass, though perhaps late, as a caller of `fetch` expects. Retries are refused. */
const lenient = ({ gate, ...service }: CoolDown.Service): CoolDown.Service => ({
  ...service,
  gate: {
    name: gate.name,
    order: gate.order,
    isStrained: (nowMillis) => gate.isStrained?.(nowMillis) === true,
    enter: (send) => {
      const entering = gate.enter(send)
      return entering === undefined || send.attempt > 1
        ? entering
        : Effect.catch(entering, () => Effect.sync(() => send.hold(uncounted)))
    }
  }
})

/** One call. Options take the place of parts of a `Request`. */
const fetched = (shared: Shared, input: Parameters<Fetch>[0], init: RequestInit | undefined): Promise<Response> => {
  const own: Partial<Request> = isRequest(input) ? input : {}
  const { body, headers = own.headers, method = own.method ?? "GET", signal = own.signal } = init ?? {}
  const { end, send } = sendingOf(shared.send, input, init)
  const request = { method: short(method).toUpperCase(), headers: look(() => new Headers(headers)) }
  return PromiseCall.call(send, {
    ...(isReader(body) ? shared.once : isRepeatable(request) ? shared.setting : shared.single),
    signal: PromiseCall.signalOf("retryFetch", { signal }),
    request,
    around: shared.around(hostOf(own.url ?? String(input)))
  }).finally(end)
}

/** How long an attempt may take that another can follow, and one that none can. */
const timeoutsOf = (timeout: Options["attemptTimeout"], check: Checks) => {
  if (timeout === undefined) return defaults.timeouts
  const millis = timeout === false ? undefined : check.positiveDuration("attemptTimeout", timeout)
  return { attemptMillis: millis, lastMillis: millis }
}

/**
 * What limits calls: each attempt uses what its host has, and what all hosts share. Resources of a context are used, or
 * its quota, limiter and cool-down, unless the options have their own.
 */
const limitsOf = (options: Options, isAdaptive: boolean, scope: Scope.Scope) => {
  const { context = Context.empty(), coolDown, quota } = options
  const isOpen = coolDown === undefined
  if (isOpen && quota === undefined && context.mapUnsafe.has(ResourceLimiters.ResourceLimiters.key)) {
    return { env: context, around: (host: string) => Effect.provide(ResourceLimiters.get(host)) }
  }
  const limiters = ResourceLimiters.layer({
    ...defaults.limiters,
    quota,
    limiter: isAdaptive ? {} : "unlimited",
    coolDown: coolDown === false ? undefined : { ...defaults.coolDown, ...coolDown }
  })
  const env = Effect.runSyncWith(context)(Layer.buildWithScope(limiters, scope))
  const isLenient = isOpen && !context.mapUnsafe.has(CoolDown.CoolDown.key)
  const shared = Context.pick(
    ...quota === undefined ? [RetryQuota.RetryQuota] : [],
    ...isOpen ? [CoolDown.CoolDown] : [],
    AdaptiveRateLimiter.AdaptiveRateLimiter
  )(context as Context.Context<any>)
  return {
    env: Context.merge(context, env) as Context.Context<never>,
    around: (host: string) => (call: Effect.Effect<any, unknown, any>) =>
      Effect.updateContext(
        isLenient ? Effect.updateService(call, CoolDown.CoolDown, lenient) : call,
        (context: Context.Context<any>) => Context.merge(context, shared)
      ).pipe(Effect.provide(ResourceLimiters.get(host)))
  }
}

/** What all calls of one function share. */
const settingsOf = (options: Options, scope: Scope.Scope) => {
  const check = checksOf("retryFetch", options)
  const { coolDown, policy = defaults.policy() } = options
  PromiseCall.valid(check, policy, options, "policy", "quota", "coolDown", "attemptTimeout", "fetch")
  if (coolDown === true as unknown) check.reject("coolDown", coolDown, "options or false")
  const { attemptMillis, lastMillis } = timeoutsOf(options.attemptTimeout, check)
  /** The `fetch` of the program, as it was when this one was made. */
  const before = callable(check, "fetch", options.fetch ?? globalThis.fetch, "a function such as fetch")
  const global = options.fetch === undefined ? globalFetch(before) : undefined
  const { around, env } = limitsOf(options, compiledOf(policy).adaptive, scope)
  /** For a request that can be sent twice. */
  const setting = { ...PromiseCall.settingOf(policy, env, options, { unasked: "yes" }), attemptMillis }
  /** For one that cannot, once it may have run. */
  const single = { ...setting, attemptMillis: lastMillis }
  /** For a body that can be read once. */
  const once = { ...single, compiled: changed(setting.compiled, () => ({ maxAttempts: 1 })) }
  return { around, before, global, once, send: global?.send ?? before, setting, single }
}

type Shared = ReturnType<typeof settingsOf>

/** Must not lead back to the function: it would never be garbage. Some Workers lack it. */
const dropped = typeof FinalizationRegistry === "undefined"
  ? undefined
  : /* @__PURE__ */ new FinalizationRegistry<Scope.Closeable>((scope) =>
    void Effect.runFork(Scope.close(scope, Exit.void))
  )

/**
 * Makes a `fetch` that retries. Throws `InvalidOption` when an option is impossible.
 *
 * **Details**
 *
 * | what happens | what follows |
 * | --- | --- |
 * | 408, 425, 429, a 5xx except 501, 505, 506, 508, 510, 511 | sent again |
 * | no connection, a broken one, no response in time | sent again |
 * | a POST or PATCH without `Idempotency-Key` that may have run | not sent again: only after a 425 or 429, or without a connection |
 * | a 409 to a request with a key: one with the same key is in progress | sent again |
 * | a body that can be read once, such as a stream in `init` | sent once |
 * | retries end on a response | it is the result, whatever its status |
 * | retries end on an error | the promise rejects with it, unchanged |
 * | the signal of `init`, or of the `Request`, is aborted | the promise rejects with its reason; nothing is sent any more |
 *
 * Delays are those of `httpStandard`: up to 100 ms, doubled each time up to 5 seconds. No retry begins later than 30
 * seconds after the call. An attempt has 10 seconds until its response begins, or 30 if no other can follow it. A retry
 * takes 5 of the 500 tokens of its host. No layer is needed.
 *
 * A response that is followed by a retry is canceled. `Retry-After` and the headers like it say how long to wait. Each
 * host has a quota and a cool-down, of at most 10,000 hosts. The body of a `Request` is kept until the call ends.
 *
 * **Gotchas**
 *
 * Make it once, where the program starts: each has its own quotas. Do not put it around another client that retries.
 *
 * **Example** (In place of `fetch`)
 *
 * ```ts
 * import { retryFetch } from "effect-retry/fetch"
 *
 * const fetch = retryFetch()
 * const getOrders = () => fetch("https://shop.example/orders")
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const retryFetch = (options: Options = {}): Fetch => {
  const scope = Scope.makeUnsafe()
  const shared = settingsOf(options, scope)
  const { before, global } = shared
  // It has the properties that a runtime adds to its `fetch`.
  const retrying = new Proxy(before, {
    apply: (_, __, [input, init]: Parameters<Fetch>) => {
      if (global?.isBack(input, init) === true) return before(input, init)
      return PromiseCall.promised(() =>
        isRequest(init) ? fetched(shared, new Request(input, init), undefined) : fetched(shared, input, init)
      )
    }
  })
  global?.usedBy(retrying)
  dropped?.register(retrying, scope)
  return retrying
}
