import { get, look, short } from "../tryGet.ts"

/** Where clients put the status of a response. */
const places: ReadonlyArray<(error: any) => unknown> = [
  (error) => error.$metadata?.httpStatusCode,
  (error) => error.statusCode,
  (error) => error.status,
  (error) => error.response?.status ?? error.response?.statusCode,
  (error) => error.reason?.response?.status
]

/**
 * The HTTP status of an error, wherever its maker put it: AWS SDK v3 in `$metadata`, AWS SDK v2, undici and most clients
 * in `statusCode` or `status`, axios, ky and got in their `response`, Effect's HTTP client in the response of its `reason`.
 */
export const statusOf = (error: unknown): number | undefined => {
  if (error === null || (typeof error !== "object" && typeof error !== "function")) return undefined
  for (const place of places) {
    try {
      const status = place(error)
      if (typeof status === "number") return status
    } catch {
      // A property that throws counts as missing.
    }
  }
  return undefined
}

/**
 * The status of a gRPC error: grpc-js and nice-grpc have `details`, Connect has `Headers`, grpc-web is known by name.
 */
export const grpcStatusOf = (error: any): number | undefined => {
  const code = look(() => error.code)
  if (!Number.isInteger(code) || code < 1 || code > 16) return undefined
  const isOne = typeof get(error, "details") === "string" ||
    typeof get(get(error, "metadata"), "get") === "function" || get(error, "name") === "RpcError"
  return isOne ? code : undefined
}

/** Whether an error is a server's response, so that its cause says nothing more. */
export const isAnswer = (error: unknown): boolean => {
  const status = statusOf(error)
  return (status !== undefined && status >= 400 && status < 600) || grpcStatusOf(error) !== undefined
}

/** 5xx statuses that mean the server never will. */
const finalStatuses: ReadonlyArray<number> = [501, 505, 506, 508, 510, 511]

/** The retryable statuses: 408, 425, 429, and the 5xx except the final ones. */
export const isRetryStatus = (status: number): boolean =>
  status === 408 || status === 425 || status === 429 ||
  (status >= 500 && status < 600 && !finalStatuses.includes(status))

/** The headers of a response that Node's client keeps. Source: `maxHeadersCount` of `node:http`. */
const mostHeaders = 2000

/** The headers of a plain record, in any case (of the first so many), or of a `Headers` object, by lowercase name. */
export const headerIn = (headers: any): (name: string) => unknown => {
  if (typeof headers.get === "function") return (name) => headers.get(name) ?? undefined
  const names = new Map(Object.keys(headers).slice(0, mostHeaders).map((name) => [name.toLowerCase(), name]))
  return (name) => headers[names.get(name) ?? name]
}

/** Methods whose second execution changes nothing (RFC 9110, section 9.2.2), and QUERY, which is safe by definition. */
const idempotentMethod = /^(?:GET|HEAD|OPTIONS|TRACE|QUERY|PUT|DELETE)$/

/** A request as clients show it. */
export interface Request {
  readonly method?: unknown
  readonly headers?: object | undefined
}

/** The header of an idempotency key. Source: draft-ietf-httpapi-idempotency-key-header. */
export const keyHeader = "idempotency-key"

/** Whether a request carries an idempotency key. */
export const hasKey = ({ headers }: Request): boolean => {
  const key = headers && headerIn(headers)(keyHeader)
  return typeof key === "string" && key.trim() !== ""
}

/**
 * The retryable statuses of a request. With a key, 409 means that a send with the same key is in progress, and 422 that
 * the key was used for another request. Source: draft-ietf-httpapi-idempotency-key-header.
 */
export const retryStatusOf =
  (requestOf: () => Request | undefined, isRetry: (status: number) => boolean) => (status: number): boolean =>
    (status === 409 || status === 422) && look(() => hasKey(requestOf()!)) ? status === 409 : isRetry(status)

/** Whether a request can be sent twice, as far as it shows. */
export const isRepeatable = (request: Request): boolean =>
  idempotentMethod.test(short(request.method)) || hasKey(request)

const withMethod = (request: any): any => typeof request?.method === "string" ? request : undefined

/** got shows the request after a redirect: a GET may have been a POST. */
const isRewritten = ({ request }: any): boolean => request?.redirectUrls?.length > 0

/** The requests of failures that do not show them, as those of `fetch`. */
const requests = new WeakMap<object, Request>()

/** Notes the request of a failure that does not show it. */
export const showRequest = (failure: unknown, request: Request): void => {
  if (typeof failure === "object" && failure !== null) requests.set(failure, request)
}

/** The request in an error: `config` of axios, `options` of got and ofetch, `request` of ky and of others. */
export const requestOf = (error: any): Request | undefined => {
  const request = withMethod(error.config) ?? withMethod(error.options) ?? withMethod(error.request) ??
    requests.get(error)
  return request && { method: isRewritten(error) ? undefined : request.method.toUpperCase(), headers: request.headers }
}

/** Whether a body can be read once: a Web stream, a Node stream, an iterator. */
export const isReader = (body: unknown): boolean =>
  ["getReader", "pipe", "next", Symbol.asyncIterator].some((method) => typeof get(body, method) === "function")

/** A server's answer: a response, or an error that carries one. */
export interface Answer {
  readonly status: number | undefined
  readonly header: (name: string) => unknown
  /** The values that may be or contain the body. */
  readonly bodies: () => ReadonlyArray<unknown>
}

const responseOf = (error: any): any => error.$response ?? error.response ?? error.reason?.response ?? error

/**
 * Whether the client has followed a redirect: then the request has been processed, whatever came of the next. got shows
 * it; so does follow-redirects, which axios uses in Node; so does a response of `fetch`, also inside that of Effect.
 */
export const isRedirected = (error: any): boolean =>
  look(() => {
    const { request } = error
    const response = responseOf(error)
    const { source = response } = response.original ?? response
    return source.redirected === true || isRewritten(error) ||
      (request?._redirectable ?? request)?._redirectCount > 0
  }) === true

/** The headers in an error, wherever its client put them. */
export const headersOf = (error: any): object | undefined => {
  const headers = responseOf(error).headers ?? error.headers ?? error.responseHeaders
  return typeof headers === "object" && headers ? headers : undefined
}

/** The answer in an error. */
export const answerOf = (error: any, status?: number): Answer => {
  const headers = headersOf(error)
  return {
    status,
    header: headers === undefined ? () => undefined : headerIn(headers),
    bodies: () => {
      const response = responseOf(error)
      return [error, response.data, response.body, error.data, error.responseBody]
    }
  }
}
