import { get, short } from "../tryGet.ts"
import { inDetails, sectionsIn } from "./errorBodies.ts"
import { pushbackOf } from "./grpcHint.ts"
import { faultOfStatus } from "./smithyTraits.ts"
import { type Answer, isRetryStatus } from "./wire.ts"

/**
 * What an answer says about a retry. `"final"`: never retry. `"throttled"` and `"refused"`: the server has not started
 * processing the request; if throttled, because it asks for less traffic. `"failed"`: it may have started.
 */
export type AnswerKind = "final" | "throttled" | "refused" | "failed"

/**
 * Problems named in bodies. Those in the first group are final: no credit, or a pattern of requests that looks malicious.
 * Those in the second are throttling; the rest is in the error events of streams, whose status was 200. Source: the errors
 * of OpenAI and Anthropic; draft-ietf-httpapi-ratelimit-headers, "Problem Types".
 */
const problems =
  /^(?:(insufficient_quota|billing_(?:not_active|hard_limit_reached)|\S+#abnormal-usage-detected)|(\S+#temporary-reduced-capacity|rate_limit_e(?:rror|xceeded))|(?:api|overloaded|server|timeout)_error)$/

const nameOf = (word: unknown): RegExpExecArray | null => problems.exec(short(word))

/** A quota of Google's that is spent until tomorrow. */
const dailyQuota = /"quotaId":"[^"]*PerDay/

/** With other statuses a body says nothing more. Without one it is an event of a stream. */
const bodyStatuses: ReadonlyArray<number | undefined> = [undefined, 429, 503]

const byBody = ({ bodies, status }: Answer): AnswerKind | undefined => {
  if (!bodyStatuses.includes(status)) return undefined
  const all = bodies()
  const name = sectionsIn(all).map((part) => nameOf(get(part, "code")) ?? nameOf(get(part, "type"))).find(Boolean)
  if (name?.[1] || inDetails(all, dailyQuota)) return "final"
  if (name?.[2]) return "throttled"
  return name && status === undefined ? "failed" : undefined
}

/** The decision of a server, or of a proxy that has not forwarded the request. */
const byHeaders = (header: (name: string) => unknown): AnswerKind | undefined => {
  const should = /^\s*(?:(true)|false)\s*$/i.exec(short(String(header("x-should-retry"))))
  if (should) return should[1] === undefined ? "final" : "refused"
  const pushback = header("grpc-retry-pushback-ms")
  const isForbidden = header("x-envoy-overloaded") || header("finagle-http-nonretryable-nack") ||
    (pushback && pushbackOf([pushback]) === "stop")
  return isForbidden ? "final" : header("x-envoy-ratelimited") ? "throttled" : undefined
}

const byStatus = (status: number): AnswerKind => status === 429 ? "throttled" : status === 425 ? "refused" : "failed"

/** What an answer says about a retry; `undefined` if it is not a failure. Without a status it is an event of a stream. */
export const kindOf = (answer: Answer, isWorthARetry: (status: number) => boolean): AnswerKind | undefined => {
  const { header, status } = answer
  if (status === undefined) return byBody(answer)
  if (!(status >= 400)) return undefined
  return byHeaders(header) ?? (isWorthARetry(status) ? byBody(answer) ?? byStatus(status) : undefined)
}

/**
 * The facts of an answer, for a request that is safe to send twice, or may not be: after a redirect no answer says that
 * it was not processed.
 */
export const infoOfKind = (
  kind: AnswerKind,
  status: number | undefined,
  isRepeatable: boolean,
  isRedirected: () => boolean
) => ({
  safety: kind === "final" ? "No" : isRepeatable || (kind !== "failed" && !isRedirected()) ? "Yes" : "Maybe",
  throttling: kind === "throttled" || (kind !== "final" && status === 429),
  fault: status !== 429 && isRetryStatus(status!) ? "server" : faultOfStatus(status)
} as const)
