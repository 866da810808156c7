import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { HttpClientError } from "effect/http/HttpClientError"
import { fromWeb, type HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { short } from "../../internal/tryGet.ts"

/** A longer body is not read just to reuse its connection, nor parsed for a problem. */
const maxBytes = 65_536

/** How long a body is drained, and how long a decision waits for one, if the attempt and the call last so long. */
const maxMillis = 1000

/** Reads the body to its end, so that the connection can be reused, unless it is too long for that. */
const drained = (response: HttpClientResponse): Effect.Effect<unknown, unknown> => {
  let bytes = 0
  const bounded = Stream.takeWhile(response.stream, (chunk) => (bytes += chunk.length) <= maxBytes)
  return Effect.timeoutOption(Stream.runDrain(bounded), maxMillis)
}

/** Opens the body and closes it unread, which ends the request. */
const aborted = (response: HttpClientResponse): Effect.Effect<unknown> =>
  Effect.ignoreCause(Effect.scoped(Effect.suspend(() => Stream.toPull(response.stream))))

/**
 * Discards a response that will not be read. This runs alongside the call and never delays it: a body that closes
 * slowly must not delay an interruption.
 */
export const discard = (response: HttpClientResponse, reuse: boolean): Effect.Effect<void> => {
  const close = closes.get(response)
  const closed = close ?? aborted(response)
  const gone = reuse && close === undefined
    ? Effect.catchCause(Effect.suspend(() => drained(response)), () => closed)
    : closed
  return Effect.asVoid(Effect.forkDetach(gone, { startImmediately: true, uninterruptible: true }))
}

const json = /^application\/(?:[\w.+-]+\+)?json\b/i

/** What stops reading a body that is read before the caller asks for it. */
const closes = new WeakMap<HttpClientResponse, Effect.Effect<void>>()

/** Whether the body may say more than the status: that there is no credit, or that a pattern looks malicious. */
export const isWorthReading = ({ headers, status }: HttpClientResponse): boolean =>
  (status === 429 || status === 503) && json.test(short(headers["content-type"]))

type Bytes = Stream.Stream<Uint8Array, HttpClientError>

type Rest = Pull.Pull<readonly [Uint8Array, ...Array<Uint8Array>], HttpClientError>

const bodyGetters = ["arrayBuffer", "formData", "json", "stream", "text", "urlParamsBody"] as const

/** Stops reading a body that cannot be read any more: a pending read keeps its connection and itself forever. */
const unread = typeof FinalizationRegistry === "undefined"
  ? undefined
  : /* @__PURE__ */ new FinalizationRegistry((close: Effect.Effect<void>) => void Effect.runFork(close))

/**
 * The same response, with that stream as its body. Classifiers find its text in `data`, as in a response of axios;
 * `undefined` if it is too long, or does not arrive.
 */
const withBody = (
  response: HttpClientResponse,
  stream: Bytes,
  close: Effect.Effect<void>,
  data: string | undefined
): HttpClientResponse => {
  let replayed: HttpClientResponse | undefined
  const body = (): HttpClientResponse => {
    unread?.unregister(body)
    const { headers, request, status } = response
    return replayed ??= fromWeb(request, new Response(Stream.toReadableStream(stream), { headers, status }))
  }
  unread?.register(body, close, body)
  const read = (name: Exclude<typeof bodyGetters[number], "stream">) =>
    Effect.onInterrupt(Effect.suspend((): Effect.Effect<unknown, HttpClientError> => body()[name]), () => close)
  const getters = bodyGetters.map((name) => [name, {
    get: () => name === "stream" ? Stream.suspend(() => body().stream) : read(name),
    enumerable: true
  }])
  return Object.create(response, { ...Object.fromEntries(getters), data: { value: data } })
}

/** Reads the beginning of a body, and returns the rest, if any. */
const begin = (pull: Rest, chunks: Array<Uint8Array>): Effect.Effect<Rest | undefined> => {
  let size = 0
  const next: Effect.Effect<Rest | undefined> = Effect.suspend(() =>
    Pull.matchEffect(pull, {
      onSuccess: (read) => {
        for (const chunk of read) size += chunks[chunks.push(chunk) - 1]!.length
        return size > maxBytes ? Effect.succeed(pull) : next
      },
      onDone: () => Effect.undefined,
      onFailure: (cause) => Effect.succeed(Effect.failCause(cause))
    })
  )
  return next
}

const decoded = (chunks: ReadonlyArray<Uint8Array>): string => {
  const decoder = new TextDecoder()
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode()
}

/**
 * The response with its body read ahead, as far as it arrives in time. The caller reads the body as usual. What is late
 * is read by a fiber that only the response refers to, so that it ends with it: its context is empty, since that of the
 * call holds the response.
 */
export const readAhead = (response: HttpClientResponse, leftMillis: number): Effect.Effect<HttpClientResponse> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const scope = Scope.makeUnsafe()
      const chunks: Array<Uint8Array> = []
      const opened = Scope.provide(Stream.toPull(response.stream), scope)
      const begun = Effect.flatMap(opened, (pull) => begin(pull as Rest, chunks))
      const forked = Effect.updateContext(Effect.forkDetach(begun), (_: Context.Context<never>) => Context.empty())
      return Effect.flatMap(forked, (reading) => {
        const close = Effect.andThen(Fiber.interrupt(reading), Scope.close(scope, Exit.void))
        const body: Bytes = Effect.map(Fiber.join(reading), (rest) => {
          const read = Stream.fromIterable(chunks)
          return rest === undefined ? read : Stream.concat(read, Stream.fromPull(Effect.succeed(rest)))
        }).pipe(Stream.unwrap, Stream.ensuring(close))
        return restore(Effect.timeoutOption(Fiber.await(reading), Math.min(maxMillis, leftMillis))).pipe(
          Effect.map(Option.flatMap(Exit.getSuccess)),
          Effect.map((rest) => {
            const isWhole = Option.isSome(rest) && rest.value === undefined
            const whole = withBody(response, body, close, isWhole ? decoded(chunks) : undefined)
            closes.set(whole, close)
            return whole
          }),
          Effect.onInterrupt(() => Effect.forkDetach(close))
        )
      })
    })
  )
