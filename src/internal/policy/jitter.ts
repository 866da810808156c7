import { identity } from "effect/Function"
import { type Checks, checks } from "../checks.ts"
import type { Adjust } from "../engine/parts.ts"
import * as Delays from "../math/delay.ts"

type Jitter = "none" | "full" | "equal" | { readonly proportional: number }

/** The jitter as a function. */
export const jitterOf = (check: Checks, jitter: Jitter | undefined, otherwise?: "none"): Adjust => {
  if (typeof jitter === "object" && jitter !== null) {
    const { between, given } = checks(check.tag)
    const share = between("proportional", jitter.proportional, 0, 1)
    check.given.jitter = given
    return (delayMillis, { random }) => Delays.proportionalJitter(delayMillis, share, random.nextDoubleUnsafe())
  }
  switch (check.oneOf("jitter", jitter, ["none", "full", "equal"], otherwise)) {
    case "none":
      return identity
    case "full":
      return (delayMillis, { random }) => Delays.fullJitter(delayMillis, random.nextDoubleUnsafe())
    case "equal":
      return (delayMillis, { random }) => Delays.equalJitter(delayMillis, random.nextDoubleUnsafe())
  }
}
