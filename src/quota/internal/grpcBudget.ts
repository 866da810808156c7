import { constVoid } from "effect/Function"
import { checksOf } from "../../internal/checks.ts"
import { tokenEpsilon } from "../../internal/math/tokenBucket.ts"
import { callback, type Inputs, positive, validOptions, whole } from "../../internal/options.ts"
import { isRejected } from "../../internal/rejection.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Outcome, SendGate } from "../../SendGate.ts"
import { budgetGate, counted, CountingStore } from "./reservation.ts"

/** The options of a throttle. */
export const grpcOptions = {
  maxTokens: whole(1, 1000, 10),
  tokenRatio: positive(0.1),
  isFailure: callback(isRejected)
}

/** Options with their defaults, checked. In thousandths of tokens, so that sums are exact. */
export const validGrpc = (options: Inputs<typeof grpcOptions>) => {
  const check = checksOf("RetryBudget.grpc", options)
  const { isFailure, maxTokens, tokenRatio } = validOptions(check, grpcOptions, options)
  check.between("tokenRatio", tokenRatio, 0.001, maxTokens)
  return {
    maxMilliTokens: maxTokens * 1000,
    milliRatio: Math.floor(tokenRatio * 1000 + tokenEpsilon),
    isFailure
  }
}

/** Valid options of a throttle. */
export type GrpcThrottleOptions = ReturnType<typeof validGrpc>

/** A failure takes a token, a success adds part of one; retries pass above one half. Source: gRPC proposal A6. */
export class GrpcThrottleStore extends CountingStore implements RetryQuotaStore {
  readonly gates: ReadonlyArray<SendGate>

  private milliTokens: number

  constructor(private options: GrpcThrottleOptions) {
    super()
    this.milliTokens = options.maxMilliTokens
    const pass = { settle: (outcome: Outcome) => this.count(outcome), cancel: () => undefined }
    this.gates = [budgetGate(1000, (send) => send.hold(pass))]
  }

  /** Keeps its share of tokens: half full stays half full. */
  change(options: GrpcThrottleOptions): void {
    this.milliTokens *= options.maxMilliTokens / this.options.maxMilliTokens
    this.options = options
  }

  reserve(cost: number): Reservation | undefined {
    return counted(cost, () => this.milliTokens > this.options.maxMilliTokens / 2 ? constVoid : undefined)
  }

  balance(): number {
    return this.milliTokens / 1000
  }

  private count(outcome: Outcome): void {
    const { isFailure, maxMilliTokens, milliRatio } = this.options
    const isFailed = outcome._tag === "Failure" && isFailure(outcome)
    if (outcome._tag === "Success") this.milliTokens = Math.min(maxMilliTokens, this.milliTokens + milliRatio)
    else if (isFailed) this.milliTokens = Math.max(0, this.milliTokens - 1000)
  }
}
