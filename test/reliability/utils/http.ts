import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"

/** A status with its headers and body, an error of the network, or no answer at all. */
export type Answer =
  | { readonly status: number; readonly headers?: Record<string, unknown>; readonly body?: string | ReadableStream }
  | { readonly error: unknown }
  | "never"

/** A response with exactly these headers, including those that no `Response` would accept. */
export const responseOf = (
  headers: Record<string, unknown>,
  status = 429,
  request: HttpClientRequest.HttpClientRequest = HttpClientRequest.get("http://a/"),
  body: string | ReadableStream = ""
): HttpClientResponse.HttpClientResponse =>
  Object.create(HttpClientResponse.fromWeb(request, new Response(body, { status })), {
    headers: { value: headers },
    status: { value: status }
  })

/** A client that gives each of the answers in turn, the last one forever, and notes when it was asked. */
export const clientOf = (answers: ReadonlyArray<Answer>) => {
  const times: Array<number> = []
  const client = HttpClient.make((request) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const answer = answers[Math.min(times.push(now), answers.length) - 1]!
      if (answer === "never") return Effect.never
      if ("error" in answer) {
        const reason = new HttpClientError.TransportError({ request, cause: answer.error })
        return Effect.fail(new HttpClientError.HttpClientError({ reason }))
      }
      return Effect.succeed(responseOf(answer.headers ?? {}, answer.status, request, answer.body ?? ""))
    })
  )
  return { client, times }
}
