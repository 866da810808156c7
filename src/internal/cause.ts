import type * as Cause from "effect/Cause"

/** The first failure in a cause; `undefined` with a defect, or with only an interruption. */
export const firstIn = ({ reasons }: Cause.Cause<unknown>): Cause.Fail<unknown> | undefined => {
  let failure: Cause.Fail<unknown> | undefined
  for (const reason of reasons) {
    if (reason._tag === "Die") return undefined
    if (reason._tag === "Fail") failure ??= reason
  }
  return failure
}
