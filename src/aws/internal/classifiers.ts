import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { Failing } from "../../engine/delay.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import { retryAfterMillis } from "../../internal/classification/hint.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { wallMillis } from "../../internal/clock.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"

/** Requests of Effect's HTTP client that got no response, whatever their method. */
export const transport: RetryClassifier.RetryClassifier = (error) =>
  get(error, "_tag") === "HttpClientError" && get(get(error, "reason"), "_tag") === "TransportError"
    ? Option.some(RetryInfo.transient)
    : Option.none()

/** The client timeout, by its names and codes in any library. */
export const timedOut: RetryClassifier.RetryClassifier = (error) =>
  codes.isTimeout(error) ? Option.some(RetryInfo.timedOut) : Option.none()

/** The classifier of an older SDK: own facts, what it knows, the network, with causes; then transport errors without any. */
export const olderSdk = (service: RetryClassifier.RetryClassifier): RetryClassifier.RetryClassifier =>
  RetryClassifier.orElse(
    RetryClassifier.followingCause(RetryClassifier.chain([RetryClassifier.carried, service, RetryClassifier.network])),
    RetryClassifier.followingCause(transport)
  )

/** The hint in the facts of a failure, in milliseconds. */
export const hintMillis = ({ info }: Failing): number =>
  info?.retryAfter === undefined ? 0 : Duration.toMillis(info.retryAfter)

/** The throttling codes that the SDKs share, except these. */
export const throttlingBut = (...others: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(Array.from(codes.awsThrottlingCodes).filter((code) => !others.includes(code)))

interface Has<in A> {
  readonly has: (value: A) => boolean
}

/** What an SDK retries. The defaults are those of most: 14 throttling codes, 2 transient ones, 4 statuses, no 429. */
interface ErrorRules {
  readonly throttling?: ReadonlySet<string>
  /** Codes that are throttling because of a word in them. */
  readonly throttlingWord?: RegExp
  /** Whether a 429 without a code is throttling. */
  readonly status429?: boolean
  readonly transient?: ReadonlySet<string>
  readonly statuses?: Has<number>
  /** Whether the service's model decides about an error before its code and status. */
  readonly modelFirst?: boolean
  /** What costs as much as a timeout. By default, of network failures only client timeouts. */
  readonly timeout?: {
    readonly codes?: ReadonlySet<string>
    readonly statuses?: Has<number>
    readonly network?: "timeouts" | "all" | "none"
  }
}

const codesOf = (error: unknown): ReadonlyArray<string> =>
  codes.codesOf(error).filter((code) => typeof code === "string")

const traitOf = (error: unknown): RetryInfo.RetryInfo | undefined => {
  const trait = get(error, "$retryable")
  if (typeof trait !== "object" || trait === null) return undefined
  return get(trait, "throttling") === true ? RetryInfo.throttled() : RetryInfo.transient
}

/** With the hint of the response in the error. */
export const withHint = (info: RetryInfo.RetryInfo, error: unknown): RetryInfo.RetryInfo => {
  const retryAfter = retryAfterMillis(error, wallMillis)
  return retryAfter === undefined ? info : RetryInfo.make({ ...info, retryAfter })
}

/** The facts, with whether it costs as much as a timeout, if that depends on it. */
export const asTimeout = (info: RetryInfo.RetryInfo, timeout: boolean): RetryInfo.RetryInfo =>
  info.throttling || info.safety === "No" || info.timeout === timeout ? info : { ...info, timeout }

/**
 * The classifier of an SDK. Facts that an error carries come first; if the error says nothing, its causes are checked.
 */
export const classifierOf = ({
  modelFirst = false,
  status429 = false,
  statuses = codes.awsTransientStatuses,
  throttling = codes.awsThrottlingCodes,
  throttlingWord,
  timeout = {},
  transient = codes.awsTransientCodes
}: ErrorRules): RetryClassifier.RetryClassifier => {
  const throttles = (code: string): boolean => throttling.has(code) || throttlingWord?.test(code) === true
  const answered = (errorCodes: ReadonlyArray<string>, status: number | undefined): RetryInfo.RetryInfo | undefined => {
    if (errorCodes.some(throttles) || (status429 && status === 429)) return RetryInfo.throttled()
    const passes = errorCodes.some((code) => transient.has(code)) || (status !== undefined && statuses.has(status))
    if (!passes) return undefined
    const costsMore = errorCodes.some((code) => timeout.codes?.has(code) === true) ||
      (status !== undefined && timeout.statuses?.has(status) === true)
    return asTimeout(RetryInfo.transient, costsMore)
  }
  const service: RetryClassifier.RetryClassifier = (error) => {
    const trait = traitOf(error)
    const own = answered(codesOf(error), statusOf(error))
    const info = modelFirst || trait?.throttling === true ? trait ?? own : own ?? trait
    return Option.map(Option.fromUndefinedOr(info), (facts) => withHint(facts, error))
  }
  const failed = RetryClassifier.chain([RetryClassifier.effectErrors, timedOut, RetryClassifier.network])
  const network: RetryClassifier.RetryClassifier = (error) =>
    Option.map(failed(error), (info) =>
      timeout.network === undefined || timeout.network === "timeouts"
        ? info
        : asTimeout(info, timeout.network === "all"))
  return RetryClassifier.followingCause(RetryClassifier.chain([RetryClassifier.carried, service, network]))
}
