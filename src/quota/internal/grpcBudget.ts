import { constVoid } from "effect/Function"
import { checksOf, predicate, rejectUnknown } from "../../internal/checks.ts"
import { tokenEpsilon } from "../../internal/math/tokenBucket.ts"
import { isRejected } from "../../internal/rejection.ts"
import { Stateful } from "../../internal/savedState.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Outcome, SendGate } from "../../SendGate.ts"
import { counted } from "./reservation.ts"

/** Valid options of a throttle. In thousandths of tokens, so that sums are exact. */
export interface GrpcThrottleOptions {
  readonly maxMilliTokens: number
  readonly milliRatio: number
  readonly isFailure: (outcome: Outcome) => boolean
}

/** Options before they are checked: those of `RetryBudget`. */
interface Input {
  readonly maxTokens?: number | undefined
  readonly tokenRatio?: number | undefined
  readonly isFailure?: ((outcome: Outcome) => boolean) | undefined
}

/** Options with their defaults, checked. */
export const validGrpc = (options: Input): GrpcThrottleOptions => {
  const check = checksOf("RetryBudget.grpc", options)
  const { maxTokens = 10, tokenRatio = 0.1 } = options
  check.names.add("maxTokens")
  if (!Number.isInteger(maxTokens) || maxTokens < 1 || maxTokens > 1000) {
    check.reject("maxTokens", maxTokens, "a whole number from 1 to 1000")
  }
  check.between("tokenRatio", tokenRatio, 0.001, maxTokens)
  return rejectUnknown(check, options, {
    maxMilliTokens: maxTokens * 1000,
    milliRatio: Math.floor(tokenRatio * 1000 + tokenEpsilon),
    isFailure: predicate(check, "isFailure", options.isFailure, isRejected)
  })
}

interface GrpcThrottle {
  readonly milliTokens: number
}

/** A failure takes a token, a success adds part of one; retries pass above one half. Source: gRPC proposal A6. */
export class GrpcThrottleStore extends Stateful<GrpcThrottle> implements RetryQuotaStore {
  readonly capacity = Infinity
  readonly successIncrement = 0
  readonly firstAttemptCost = 0
  readonly onExceeded = "stop"
  readonly gates: ReadonlyArray<SendGate>

  constructor(private options: GrpcThrottleOptions) {
    super({ milliTokens: options.maxMilliTokens })
    const pass = { settle: (outcome: Outcome) => this.count(outcome), cancel: () => undefined }
    this.gates = [{ name: "RetryBudget", order: 1000, enter: (send) => send.hold(pass) }]
  }

  /** Keeps its share of tokens: half full stays half full. */
  change(options: GrpcThrottleOptions): void {
    this.state = { milliTokens: this.state.milliTokens * (options.maxMilliTokens / this.options.maxMilliTokens) }
    this.options = options
  }

  reserve(cost: number): Reservation | undefined {
    return counted(cost, () => this.state.milliTokens > this.options.maxMilliTokens / 2 ? constVoid : undefined)
  }

  /** Only outcomes decide. */
  deposit(): void {}

  balance(): number {
    return this.state.milliTokens / 1000
  }

  private count(outcome: Outcome): void {
    const { isFailure, maxMilliTokens, milliRatio } = this.options
    const { milliTokens } = this.state
    if (outcome._tag === "Success") this.state = { milliTokens: Math.min(maxMilliTokens, milliTokens + milliRatio) }
    else if (outcome._tag === "Failure" && isFailure(outcome)) {
      this.state = { milliTokens: Math.max(0, milliTokens - 1000) }
    }
  }
}
