import { type Checks, checks, rejectUnknown } from "../../internal/checks.ts"
import { isObject } from "../../internal/invalidField.ts"
import type { Jitter } from "../delay.ts"

/** The checked jitter option. */
export const jitterOf = (check: Checks, jitter: Jitter | undefined, otherwise?: "none"): Jitter => {
  check.names.add("jitter")
  if (!isObject(jitter)) {
    return check.oneOf("jitter", jitter, ["none", "full", "equal"], otherwise)
  }
  const nested = checks(check.tag)
  const proportional = nested.between("proportional", jitter.proportional, 0, 1)
  rejectUnknown(nested, jitter)
  check.input.jitter = nested.input
  return { proportional }
}
