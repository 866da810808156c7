import { type Checks, checks } from "../../internal/checks.ts"
import type { Jitter } from "../delay.ts"

/** The checked jitter option. */
export const jitterOf = (check: Checks, jitter: Jitter | undefined, otherwise?: "none"): Jitter => {
  if (typeof jitter !== "object" || jitter === null) {
    return check.oneOf("jitter", jitter, ["none", "full", "equal"], otherwise)
  }
  const { between, given } = checks(check.tag)
  const proportional = between("proportional", jitter.proportional, 0, 1)
  check.given.jitter = given
  return { proportional }
}
