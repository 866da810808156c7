import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb"
import { HttpResponse } from "@smithy/core/protocols"
import type { HttpHandlerOptions } from "@smithy/types"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { Readable } from "node:stream"

/** What a request handler does with a request: a response, an error that it throws, or nothing until it is aborted. */
export interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly throws?: unknown
  readonly hangs?: boolean
}

/** A request that a handler was given. */
export interface Request {
  readonly headers: Record<string, string>
  readonly body: unknown
  readonly aborted: () => boolean
}

export const ok: Answer = { status: 200, body: "{}" }

/** An error of DynamoDB or SQS. */
export const failure = (name: string, status = 400, headers: Record<string, string> = {}): Answer => ({
  status,
  headers,
  body: JSON.stringify({ __type: `com.amazonaws#${name}`, message: name })
})

/** An error of a handler, or of whatever runs around it. */
export const coded = (fields: object, cause?: unknown): Error =>
  Object.assign(cause === undefined ? new Error("coded") : new Error("coded", { cause }), fields)

export const throttle = failure("ThrottlingException")
export const busy = failure("InternalServerError", 500)
export const invalid = failure("ValidationException")

const responseOf = (answer: Answer) => {
  if ("throws" in answer) throw answer.throws
  const { body = "", headers = {}, status = 200 } = answer
  return { response: new HttpResponse({ statusCode: status, headers, body: Readable.from([Buffer.from(body)]) }) }
}

const abortError = () => Object.assign(new Error("Request aborted"), { name: "AbortError" })

/** A request handler that gives the answers in turn, the last one forever, and keeps the requests. */
export const handlerOf = (answers: ReadonlyArray<Answer>) => {
  const requests: Array<Request> = []
  const handle = async (request: Request, { abortSignal }: HttpHandlerOptions = {}) => {
    if (abortSignal?.aborted) throw abortError()
    const answer = answers[Math.min(requests.length, answers.length - 1)]!
    requests.push({
      headers: { ...request.headers },
      body: request.body,
      aborted: () => abortSignal?.aborted === true
    })
    if (answer.hangs) {
      await new Promise((_, reject) => {
        if (abortSignal instanceof AbortSignal) abortSignal.addEventListener("abort", () => reject(abortError()))
      })
    }
    return responseOf(answer)
  }
  return { requests, handler: { handle } as any }
}

export const settings = { region: "eu-west-1", credentials: { accessKeyId: "a", secretAccessKey: "b" } }

/** A client of DynamoDB over such a handler. */
export const dynamo = (answers: ReadonlyArray<Answer>, config: DynamoDBClientConfig = {}) => {
  const { handler, requests } = handlerOf(answers)
  return { client: new DynamoDBClient({ ...settings, requestHandler: handler, ...config }), requests }
}

/** A client of DynamoDB whose requests are answered by this, in its own time. */
export const answered = (answer: () => Promise<Answer>, config: DynamoDBClientConfig) => {
  const handle = async () => responseOf(await answer())
  return new DynamoDBClient({ ...settings, requestHandler: { handle } as any, ...config })
}

export const getItem = () => new GetItemCommand({ TableName: "t", Key: { id: { S: "1" } } })

// The first call of a process loads what the SDK loads lazily, which takes real time.
await dynamo([busy, ok]).client.send(getItem())

/** Lets promises go on for some turns of the event loop. */
const flushed = (turns: number) =>
  Effect.promise(async () => {
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
  })

/** Lets promises go on as far as they usually can. */
export const flush = flushed(10)

/** Runs an effect in time that moves by itself, a step of `tick` each time that promises can go no further. */
export const played = <A, E, R>(self: Effect.Effect<A, E, R>, tick = 50, turns = 10) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self, { startImmediately: true })
    for (let steps = 0; fiber.pollUnsafe() === undefined; steps++) {
      if (steps > 20_000) return yield* Effect.die("it does not end")
      yield* flushed(turns)
      if (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(tick)
    }
    return yield* Fiber.join(fiber)
  })

/** The failure of an effect that has one. */
export const failed = <A, E>(exit: Exit.Exit<A, E>): unknown =>
  Exit.isFailure(exit)
    ? exit.cause.reasons.map((reason) => reason._tag === "Fail" ? reason.error : reason._tag)[0]
    : exit
