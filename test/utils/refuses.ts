import { assert } from "@effect/vitest"
import { InvalidOption } from "effect-retry"

type Fields = Partial<Pick<InvalidOption, "constructorName" | "field" | "value">>

const isRefused = (make: () => unknown): InvalidOption => {
  try {
    make()
  } catch (error) {
    assert.instanceOf(error, InvalidOption)
    return error
  }
  return assert.fail("it was accepted")
}

/** That an option is refused, with an error that has at least these fields. */
export const refuses = (make: () => unknown, fields: Fields): InvalidOption => {
  const error = isRefused(make)
  assert.deepInclude(error, fields)
  return error
}
