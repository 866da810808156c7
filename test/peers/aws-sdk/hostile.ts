import { isThrottlingError, isTransientError } from "@smithy/core/retry"
import { RetryClassifier } from "effect-retry"
import * as Option from "effect/Option"
import type { Side } from "./sides.ts"

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const cyclic = () => {
  const error = new Error("cyclic")
  error.cause = error
  return error
}

const deep = () => Array.from({ length: 10_000 }).reduce<Error>((cause) => new Error("deep", { cause }), new Error())

/** What an attempt may fail with. */
export const failures: ReadonlyArray<readonly [name: string, make: () => unknown]> = [
  ["null", () => null],
  ["undefined", () => undefined],
  ["a string", () => "boom"],
  ["a symbol", () => Symbol("boom")],
  ["a getter that throws", () => ({
    get name() {
      throw new Error("the getter")
    }
  })],
  ["a revoked proxy", revoked],
  ["a frozen error", () => Object.freeze(new Error("frozen"))],
  ["its own cause", cyclic],
  ["10,000 causes", deep]
]

/** What two classifiers make of a failure. */
export interface Classified {
  readonly failure: string
  readonly sdk: string
  readonly ours: string
}

const answer = (classify: () => unknown): string => {
  try {
    return String(classify())
  } catch (error) {
    return `throws: ${error instanceof Error ? error.message : "something"}`
  }
}

/** Asks the SDK's classifier and ours about each failure. */
export const classified = (): ReadonlyArray<Classified> =>
  failures.map(([failure, make]) => {
    const error: any = make()
    return {
      failure,
      sdk: answer(() => isThrottlingError(error) || isTransientError(error)),
      ours: answer(() => Option.isSome(RetryClassifier.defaultClassifier(error)))
    }
  })

/** What a call came to whose attempt fails so. */
export interface Survived {
  readonly name: string
  /** For each failure: `"same"` when the caller got it unchanged, otherwise what was got. */
  readonly got: ReadonlyArray<string>
}

/** Calls whose attempt fails right below the retries, as a user's middleware does. */
export const survived = async (side: Side): Promise<Survived> => {
  const got: Array<string> = []
  for (const [, make] of failures) {
    const failure = make()
    const sent = () => {
      throw failure
    }
    side.watch.current = { sent }
    const outcome = (error: unknown) => error === failure ? "same" : answer(() => error)
    got.push(await side.call(1).then(() => "a success", outcome))
  }
  return { name: side.name, got }
}
