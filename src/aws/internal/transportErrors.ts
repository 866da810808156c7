import * as Option from "effect/Option"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"

/** Requests of Effect's HTTP client that got no response, whatever their method. */
const transport: RetryClassifier.RetryClassifier = (error) =>
  get(error, "_tag") === "HttpClientError" && get(get(error, "reason"), "_tag") === "TransportError"
    ? Option.some(RetryInfo.transient)
    : Option.none()

/** The classifier with causes, then failures of Effect's HTTP client whose causes say nothing. */
export const withTransport = (self: RetryClassifier.RetryClassifier): RetryClassifier.RetryClassifier =>
  RetryClassifier.orElse(RetryClassifier.followingCause(self), RetryClassifier.followingCause(transport))
