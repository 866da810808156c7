import { WindowCounter } from "./counter.ts"

/** A shortfall below this counts as none. */
const epsilon = 1e-9

/**
 * A model of the retry budget of another system, which the library itself does not have. It stands beside the library's
 * policy and quota: it hears of what a process does and lets a retry pass or not. Times are milliseconds.
 */
export interface Budget {
  /** A call begins. */
  readonly called: (nowMillis: number) => void
  /** An attempt is sent. */
  readonly sent: () => void
  /** An attempt has ended. */
  readonly ended: (succeeded: boolean, retry: boolean, nowMillis: number) => void
  /** A retry that was let pass is not sent after all: its client drops it. */
  readonly dropped: () => void
  /** Takes what a retry costs, if it is there. */
  readonly withdraw: (nowMillis: number) => boolean
  /** What is left: tokens, or retries that would pass now. */
  readonly balance: (nowMillis: number) => number
}

const deaf: Omit<Budget, "withdraw" | "balance"> = {
  called: () => {},
  sent: () => {},
  ended: () => {},
  dropped: () => {}
}

/** How a budget is made. Rates and shares as they are published by whoever has them. */
export type BudgetOptions =
  | {
    readonly kind: "bucket"
    readonly capacity: number
    readonly perCall: number
    readonly perSuccess: number
    readonly above: number
  }
  | { readonly kind: "finagle"; readonly ttlMillis: number; readonly minPerSecond: number; readonly share: number }
  | { readonly kind: "ratio"; readonly share: number; readonly of: "calls" | "attempts"; readonly windowMillis: number }
  | { readonly kind: "grpc"; readonly maxTokens: number; readonly tokenRatio: number }
  | { readonly kind: "envoy"; readonly share: number; readonly minConcurrency: number }
  | { readonly kind: "breaker"; readonly threshold: number }

type OptionsOf<Kind extends BudgetOptions["kind"]> = Extract<BudgetOptions, { readonly kind: Kind }>

/**
 * A bucket that starts full, into which calls or successes put a share of a retry. A retry takes 1, and leaves more than
 * `above` behind before it takes: Brooker's simulator asks for more than 1.
 * Source: Brooker, "Fixing retries with token buckets and circuit breakers", 2022, and its simulator.
 */
const bucket = ({ above, capacity, perCall, perSuccess }: OptionsOf<"bucket">): Budget => {
  let tokens = capacity
  const put = (amount: number) => {
    tokens = Math.min(capacity, tokens + amount)
  }
  return {
    ...deaf,
    called: () => put(perCall),
    ended: (succeeded) => {
      if (succeeded) put(perSuccess)
    },
    withdraw: () => {
      if (tokens + epsilon < 1 || tokens <= above + epsilon) return false
      tokens -= 1
      return true
    },
    balance: () => tokens
  }
}

/**
 * So many retries a second, and a share of the calls of the last `ttl`. Counted in whole calls, so that any share is
 * exact. Source: Finagle `RetryBudget`; Linkerd and the Gateway API have its numbers.
 */
const finagle = ({ minPerSecond, share, ttlMillis }: OptionsOf<"finagle">): Budget => {
  const calls = new WindowCounter(ttlMillis)
  const retries = new WindowCounter(ttlMillis)
  const reserve = minPerSecond * ttlMillis / 1000
  const balance = (nowMillis: number) => reserve + share * calls.total(nowMillis) - retries.total(nowMillis)
  return {
    ...deaf,
    called: (nowMillis) => calls.add(nowMillis),
    withdraw: (nowMillis) => {
      if (balance(nowMillis) + epsilon < 1) return false
      retries.add(nowMillis)
      return true
    },
    balance
  }
}

/** Retries up to a share of calls, or of all attempts, in a window. Source: Google SRE, chapter 21. */
const ratio = ({ of, share, windowMillis }: OptionsOf<"ratio">): Budget => {
  const calls = new WindowCounter(windowMillis)
  const retries = new WindowCounter(windowMillis)
  const balance = (nowMillis: number) => {
    const made = retries.total(nowMillis)
    const base = calls.total(nowMillis)
    return of === "calls" ? share * base - made : (share * base - (1 - share) * made) / (1 - share)
  }
  return {
    ...deaf,
    called: (nowMillis) => calls.add(nowMillis),
    withdraw: (nowMillis) => {
      if (balance(nowMillis) + epsilon < 1) return false
      retries.add(nowMillis)
      return true
    },
    balance
  }
}

/** A failure takes 1, a success puts `tokenRatio` in, a retry passes above one half. Source: gRPC proposal A6. */
const grpc = ({ maxTokens, tokenRatio }: OptionsOf<"grpc">): Budget => {
  let tokens = maxTokens
  return {
    ...deaf,
    ended: (succeeded) => {
      tokens = succeeded ? Math.min(maxTokens, tokens + tokenRatio) : Math.max(0, tokens - 1)
    },
    withdraw: () => tokens > maxTokens / 2 + epsilon,
    balance: () => tokens
  }
}

/**
 * Retries at one time up to a share of the attempts that are under way, at least so many. A retry counts as one from when
 * it is allowed, as an attempt from when it is sent. Source: Envoy `retry_budget`.
 */
const envoy = ({ minConcurrency, share }: OptionsOf<"envoy">): Budget => {
  let underWay = 0
  let retries = 0
  const left = () => Math.max(minConcurrency, share * underWay) - retries
  return {
    ...deaf,
    sent: () => {
      underWay++
    },
    ended: (_succeeded, retry) => {
      underWay--
      if (retry) retries--
    },
    dropped: () => {
      retries--
    },
    withdraw: () => {
      if (left() + epsilon < 1) return false
      retries++
      return true
    },
    balance: left
  }
}

/** No retries while there have ever been more failed attempts than a share of the calls. Source: Brooker, as above. */
const breaker = ({ threshold }: OptionsOf<"breaker">): Budget => {
  let calls = 0
  let failures = 0
  const left = () => threshold - failures / Math.max(1, calls)
  return {
    ...deaf,
    called: () => {
      calls++
    },
    ended: (succeeded) => {
      if (!succeeded) failures++
    },
    withdraw: () => left() >= 0,
    balance: left
  }
}

/** Makes a budget for one process. */
export const makeBudget = (options: BudgetOptions): Budget => {
  switch (options.kind) {
    case "bucket":
      return bucket(options)
    case "finagle":
      return finagle(options)
    case "ratio":
      return ratio(options)
    case "grpc":
      return grpc(options)
    case "envoy":
      return envoy(options)
    case "breaker":
      return breaker(options)
  }
}

/**
 * What a client drops itself before it is sent: with the chance `(requests - k * accepts) / (requests + 1)`, counted
 * over a window. Source: Google SRE, chapter 21, "Client-side throttling".
 */
export class ClientThrottle {
  private readonly requests: WindowCounter
  private readonly accepts: WindowCounter
  private readonly k: number

  constructor(k: number, windowMillis: number) {
    this.k = k
    this.requests = new WindowCounter(windowMillis)
    this.accepts = new WindowCounter(windowMillis)
  }

  /** Counts a request, and says whether it is dropped. */
  drops(nowMillis: number, random: number): boolean {
    const requests = this.requests.total(nowMillis)
    const chance = (requests - this.k * this.accepts.total(nowMillis)) / (requests + 1)
    this.requests.add(nowMillis)
    return random < chance
  }

  accepted(nowMillis: number): void {
    this.accepts.add(nowMillis)
  }
}
