import { assert } from "@effect/vitest"
import { ContractBroken, type Law } from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"

/** The law of this name. */
export const lawOf = (laws: ReadonlyArray<Law>, name: string): Law => {
  const law = laws.find((law) => law.name === name)
  assert.isDefined(law, name)
  return law!
}

/** How a law fails, as it must: with words for what is wrong, and not by a mistake of its own. */
export const isBroken = (law: Law) =>
  Effect.gen(function*() {
    const exit = yield* Effect.exit(law.run)
    const error = Option.getOrUndefined(Exit.findErrorOption(exit))
    assert.instanceOf(error, ContractBroken)
    assert.strictEqual(error!.law, law.name)
    assert.match(error!.what, /^\S.*\w$/)
    assert.isNotEmpty(String(error!.expected))
    assert.notInstanceOf(error!.actual, TypeError)
    return error!
  })
