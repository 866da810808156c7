import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { Failing } from "../../engine/delay.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import { retryAfterMillis } from "../../internal/classification/hint.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { wallMillis } from "../../internal/clock.ts"
import { get, short } from "../../internal/tryGet.ts"
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

/** The properties that may hold the code of an error of an older SDK. */
export const namesOf = (error: unknown): ReadonlyArray<unknown> =>
  ["name", "code", "Code"].map((property) => get(error, property))

/** The hint in the facts of a failure, in milliseconds. */
export const hintMillis = ({ info }: Failing): number =>
  info?.retryAfter === undefined ? 0 : Duration.toMillis(info.retryAfter)

/** The throttling codes that the SDKs share, except these. */
export const throttlingBut = (...others: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(Array.from(codes.awsThrottlingCodes).filter((code) => !others.includes(code)))

/** What of the codes and the status of an answer is retried. The defaults are those of most SDKs. */
interface AnswerRules {
  /** Default: the 14 codes that the SDKs share. */
  readonly throttling?: ReadonlySet<unknown>
  /** Codes that are throttling because of a word in them. */
  readonly throttlingWord?: RegExp
  /** Whether a 429 without a code is throttling. */
  readonly status429?: boolean
  /** Default: the 2 codes that the SDKs share. */
  readonly transient?: ReadonlySet<unknown>
  /** Default: the 4 statuses that the SDKs share. */
  readonly statuses?: Pick<ReadonlySet<number>, "has">
  /** Codes that blame the client for what it has corrected by then. Default: none. */
  readonly corrected?: ReadonlySet<unknown>
}

/** What an answer says by these rules. */
export const answering = ({
  corrected,
  status429 = false,
  statuses = codes.awsTransientStatuses,
  throttling = codes.awsThrottlingCodes,
  throttlingWord,
  transient = codes.awsTransientCodes
}: AnswerRules) =>
(found: ReadonlyArray<unknown>, status: number | undefined): RetryInfo.RetryInfo | undefined => {
  const throttles = (code: unknown) => throttling.has(code) || throttlingWord?.test(short(code))
  if (found.some(throttles) || (status429 && status === 429)) return RetryInfo.throttled()
  if (statuses.has(status!) || found.some((code) => transient.has(code))) return RetryInfo.transient
  return found.some((code) => corrected?.has(code)) ? RetryInfo.make({ fault: "client" }) : undefined
}

/** What an SDK retries. */
export interface ErrorRules extends AnswerRules {
  /** Whether the service's model decides about an error before its code and status. */
  readonly modelFirst?: boolean
  /** What costs as much as a timeout. By default, of network failures only client timeouts. */
  readonly timeout?: {
    readonly codes?: ReadonlySet<unknown>
    readonly statuses?: ReadonlySet<unknown>
    readonly network?: "all" | "none"
  }
}

const traitOf = (error: unknown): RetryInfo.RetryInfo | undefined => {
  const trait = get(error, "$retryable")
  if (typeof trait !== "object" || trait === null) return undefined
  return get(trait, "throttling") === true ? RetryInfo.throttled() : RetryInfo.transient
}

/** What is known, with the hint of the response in the error. */
export const withHint = (info: RetryInfo.RetryInfo | undefined, error: unknown) => {
  if (info === undefined) return Option.none<RetryInfo.RetryInfo>()
  const retryAfter = retryAfterMillis(error, wallMillis)
  return Option.some(retryAfter === undefined ? info : RetryInfo.make({ ...info, retryAfter }))
}

/** The facts, with whether it costs as much as a timeout, if that depends on it. */
export const asTimeout = (info: RetryInfo.RetryInfo, timeout: boolean): RetryInfo.RetryInfo =>
  info.throttling || info.safety === "No" || info.timeout === timeout ? info : { ...info, timeout }

/**
 * The classifier of an SDK. Facts that an error carries come first; if the error says nothing, its causes are checked.
 */
export const classifierOf = ({ modelFirst, timeout = {}, ...rules }: ErrorRules): RetryClassifier.RetryClassifier => {
  const answered = answering(rules)
  const service: RetryClassifier.RetryClassifier = (error) => {
    const trait = traitOf(error)
    const found = codes.codesOf(error)
    const status = statusOf(error)
    const costsMore = timeout.statuses?.has(status) === true || found.some((code) => timeout.codes?.has(code))
    const answer = answered(found, status)
    const own = answer && asTimeout(answer, costsMore)
    return withHint(modelFirst || trait?.throttling === true ? trait ?? own : own ?? trait, error)
  }
  const failed = RetryClassifier.chain([RetryClassifier.effectErrors, timedOut, RetryClassifier.network])
  const network: RetryClassifier.RetryClassifier = (error) =>
    Option.map(failed(error), (info) => timeout.network ? asTimeout(info, timeout.network === "all") : info)
  return RetryClassifier.followingCause(RetryClassifier.chain([RetryClassifier.carried, service, network]))
}
