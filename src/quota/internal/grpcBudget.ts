import { constVoid } from "effect/Function"
import { checksOf } from "../../internal/checks.ts"
import { tokenEpsilon } from "../../internal/math/tokenBucket.ts"
import { callback, type Inputs, positive, validOptions, whole } from "../../internal/options.ts"
import { isRejected } from "../../internal/rejection.ts"
import { Stateful } from "../../internal/savedState.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Outcome, SendGate } from "../../SendGate.ts"
import { counted } from "./reservation.ts"

/** The options of a throttle. */
export const grpcOptions = {
  maxTokens: whole(1, 1000, 10),
  tokenRatio: positive(0.1),
  isFailure: callback(isRejected)
}

/** Valid options of a throttle. In thousandths of tokens, so that sums are exact. */
export interface GrpcThrottleOptions {
  readonly maxMilliTokens: number
  readonly milliRatio: number
  readonly isFailure: (outcome: Outcome) => boolean
}

/** Options with their defaults, checked. */
export const validGrpc = (options: Inputs<typeof grpcOptions>): GrpcThrottleOptions => {
  const check = checksOf("RetryBudget.grpc", options)
  const { isFailure, maxTokens, tokenRatio } = validOptions(check, grpcOptions, options)
  check.between("tokenRatio", tokenRatio, 0.001, maxTokens)
  return {
    maxMilliTokens: maxTokens * 1000,
    milliRatio: Math.floor(tokenRatio * 1000 + tokenEpsilon),
    isFailure
  }
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
