import type { Reader, Sink } from "./entry.ts"
import { isKeyed, objectIn } from "./jsonLines.ts"
import { numberOf, statusOf } from "./parts.ts"

const listAt = (value: unknown, ...keys: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const found = isKeyed(value) ? keys.map((key) => value[key]).find(Array.isArray) : undefined
  return found ?? []
}

const spansOf = (line: string): ReadonlyArray<unknown> | undefined => {
  const object = objectIn(line)
  if (object === undefined || !Array.isArray(object["resourceSpans"])) return undefined
  return listAt(object, "resourceSpans").flatMap((resource) =>
    listAt(resource, "scopeSpans", "instrumentationLibrarySpans").flatMap((scope) => listAt(scope, "spans"))
  )
}

type Kind = "server" | "client"

const kinds: { readonly [kind: string]: Kind } = {
  2: "server",
  SPAN_KIND_SERVER: "server",
  3: "client",
  SPAN_KIND_CLIENT: "client"
}

const kindOf = (span: unknown): Kind | undefined => isKeyed(span) ? kinds[String(span["kind"])] : undefined

/** Of an attribute, whatever its type; 64 bit numbers are texts. */
const attribute = (span: unknown, ...names: ReadonlyArray<string>): unknown => {
  for (const one of listAt(span, "attributes")) {
    if (!isKeyed(one) || !names.includes(String(one["key"])) || !isKeyed(one["value"])) continue
    return Object.values(one["value"])[0]
  }
  return undefined
}

/** Nanoseconds since 1970, as a text or a number, in milliseconds. */
const nanosOf = (value: unknown): number | undefined => {
  const nanos = numberOf(value)
  return nanos === undefined || nanos <= 0 ? undefined : nanos / 1e6
}

/** Spans without an HTTP status have their own status for errors. */
const outcomeOf = (span: { readonly [key: string]: unknown }): number => {
  const status = statusOf(attribute(span, "http.response.status_code", "http.status_code"))
  if (status !== undefined) return status
  const own = isKeyed(span["status"]) ? String(span["status"]["code"]) : ""
  return own === "2" || own === "STATUS_CODE_ERROR" ? 500 : 200
}

const readSpan = (span: unknown, sink: Sink): boolean => {
  if (!isKeyed(span)) return false
  const from = nanosOf(span["startTimeUnixNano"])
  const to = nanosOf(span["endTimeUnixNano"])
  if (from === undefined || to === undefined || to < from) return false
  const resent = numberOf(attribute(span, "http.request.resend_count", "http.resend_count"))
  sink({
    endMillis: to,
    durationMillis: to - from,
    status: outcomeOf(span),
    attempt: resent === undefined ? undefined : resent + 1,
    call: undefined,
    upstream: undefined
  })
  return true
}

/**
 * Traces as OTLP JSON, one message per line, as the file exporter of the OpenTelemetry Collector writes them: the server spans,
 * or the client spans where the first lines have no others. Source: opentelemetry-proto, trace.proto; semantic conventions
 * of HTTP spans.
 */
export const otlp = (sample: ReadonlyArray<string>): Reader => {
  const hasServers = sample.some((line) => spansOf(line)?.some((span) => kindOf(span) === "server"))
  const wanted: Kind = hasServers ? "server" : "client"
  return {
    read: (line, sink) => {
      const spans = spansOf(line)
      if (spans === undefined) return false
      return spans.reduce<boolean>((well, span) => (kindOf(span) !== wanted || readSpan(span, sink)) && well, true)
    }
  }
}
