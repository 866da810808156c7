import * as Cause from "effect/Cause"

/** The first failure in a cause; `undefined` with a defect, or with only an interruption. */
export const firstIn = ({ reasons }: Pick<Cause.Cause<unknown>, "reasons">): Cause.Fail<unknown> | undefined => {
  let failure: Cause.Fail<unknown> | undefined
  for (const reason of reasons) {
    if (reason._tag === "Die") return undefined
    if (reason._tag === "Fail") failure ??= reason
  }
  return failure
}

/** Stands for the failure of a cause that has none. */
export const noFailure = Symbol()

/** Of a cause, the error of its first failure. Any other value is itself, even one that looks like a cause. */
export const failureOf = (error: unknown): unknown => {
  try {
    if (!Cause.isCause(error)) return error
    const { reasons } = error
    if (!Array.isArray(reasons) || !reasons.every(Cause.isReason)) return error
    const first = firstIn({ reasons })
    return first === undefined ? noFailure : first.error
  } catch {
    return error
  }
}
