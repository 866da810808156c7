import { get, look, short } from "../safe.ts"
import { pushbackOf } from "./grpcHint.ts"
import { faultOfStatus } from "./traits.ts"
import { type Answer, isRetryStatus } from "./wire.ts"

/**
 * What an answer says about a retry. `"final"`: never retry. `"throttled"` and `"refused"`: the server has not started
 * processing the request; if throttled, because it asks for less traffic. `"failed"`: it may have started.
 */
export type Said = "final" | "throttled" | "refused" | "failed"

/**
 * Problems named in bodies. Those in the group are final: no credit, or a pattern of requests that looks malicious.
 * Source: the errors of OpenAI; draft-ietf-httpapi-ratelimit-headers, "Problem Types".
 */
const problems =
  /^(?:(insufficient_quota|billing_(?:not_active|hard_limit_reached)|\S+#abnormal-usage-detected)|\S+#temporary-reduced-capacity)$/

/** A longer body is not read. */
const maxBodyLength = 65_536

const parsed = (body: unknown): unknown =>
  typeof body === "string" && body.length <= maxBodyLength ? look(() => JSON.parse(body)) : body

const nameOf = (word: unknown): RegExpExecArray | null => problems.exec(short(word))

/** The meaning of the problem that a body names, as its `code` or `type` or that of the `error` in it. */
const problemIn = (body: unknown, depth = 2): Said | undefined => {
  const value = parsed(body)
  const name = nameOf(get(value, "code")) ?? nameOf(get(value, "type"))
  if (name !== null) return name[1] === undefined ? "throttled" : "final"
  const error = get(value, "error")
  return depth > 0 && error !== undefined ? problemIn(error, depth - 1) : undefined
}

const byBody = ({ bodies, status }: Answer): Said | undefined =>
  status === 429 || status === 503 ? bodies().map((body) => problemIn(body)).find(Boolean) : undefined

/** The decision of a server, or of a proxy that has not forwarded the request. */
const byHeaders = (header: (name: string) => unknown): Said | undefined => {
  const should = /^\s*(?:(true)|false)\s*$/i.exec(short(String(header("x-should-retry"))))
  if (should) return should[1] === undefined ? "final" : "refused"
  const pushback = header("grpc-retry-pushback-ms")
  const isForbidden = header("x-envoy-overloaded") || header("finagle-http-nonretryable-nack") ||
    (pushback && pushbackOf([pushback]) === "stop")
  return isForbidden ? "final" : header("x-envoy-ratelimited") ? "throttled" : undefined
}

const byStatus = (status: number): Said => status === 429 ? "throttled" : status === 425 ? "refused" : "failed"

/** What an answer says about a retry; `undefined` if it is not a failure. */
export const saidBy = (answer: Answer, isWorthARetry: (status: number) => boolean): Said | undefined => {
  const { header, status } = answer
  if (!(status! >= 400)) return undefined
  const said = header && byHeaders(header)
  return said ?? (isWorthARetry(status!) ? byBody(answer) ?? byStatus(status!) : undefined)
}

/** The facts of an answer, for a request that is safe to send twice, or may not be. */
export const factsOf = (said: Said, status: number | undefined, isRepeatable: boolean) => ({
  safety: said === "final" ? "No" : said === "failed" && !isRepeatable ? "Maybe" : "Yes",
  throttling: said === "throttled" || (said !== "final" && status === 429),
  fault: status !== 429 && isRetryStatus(status!) ? "server" : faultOfStatus(status)
} as const)
