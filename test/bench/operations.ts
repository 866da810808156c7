/** The operations that are retried: the same for every library, with errors made once. */
import * as Effect from "effect/Effect"

const failure = (name: string, httpStatusCode: number) =>
  Object.assign(new Error("the service has failed"), { name, $metadata: { httpStatusCode } })

/** An error as the SDK for JavaScript throws it. */
export type ServiceError = ReturnType<typeof failure>

const transient = failure("InternalServerError", 500)
const invalid = failure("ValidationException", 400)

/** The predicate for libraries that leave the decision to their user. */
export const isTransient = (error: unknown): boolean => (error as ServiceError).$metadata.httpStatusCode >= 500

let made = 0

/** How many attempts were made since this was last read. */
export const attemptsMade = (): number => {
  const attempts = made
  made = 0
  return attempts
}

/** The outcome of a send, by its number. */
const outcomes = {
  success: () => undefined,
  /** Fails twice, then succeeds, over and over. */
  twice: (send: number) => send % 3 === 0 ? undefined : transient,
  transient: () => transient,
  invalid: () => invalid
}

export type Script = keyof typeof outcomes

/** The operation as an effect. */
export const effectOf = (script: Script): Effect.Effect<number, ServiceError> => {
  if (script === "success") return Effect.sync(() => ++made)
  const outcome: (send: number) => ServiceError | undefined = outcomes[script]
  let sends = 0
  return Effect.suspend(() => {
    made++
    const error = outcome(++sends)
    return error === undefined ? Effect.succeed(sends) : Effect.fail(error)
  })
}

/** The operation as an async function. */
export const functionOf = (script: Script): () => Promise<number> => {
  const outcome: (send: number) => ServiceError | undefined = outcomes[script]
  let sends = 0
  return async () => {
    made++
    const error = outcome(++sends)
    if (error === undefined) return sends
    throw error
  }
}

/** An operation that is answered in a later microtask. */
export const answered = (): Promise<number> => Promise.resolve(++made)
