import * as Duration from "effect/Duration"
import { hintOfValue } from "../../internal/classification/resource.ts"
import { wallMillis } from "../../internal/clock.ts"
import type { Outcome } from "../../SendGate.ts"
import { isResponse } from "./classifyResponse.ts"
import { type HintReader, readHint } from "./hintHeaders.ts"

const byDefault = (value: unknown): Duration.Duration | undefined => {
  const millis = hintOfValue(value, wallMillis)
  return millis === undefined ? undefined : Duration.millis(millis)
}

/**
 * The `hint` of a `CoolDown` for services with their own headers: the facts decide for a failure, the readers for any
 * other response, before what `CoolDown` itself reads.
 *
 * **Gotchas**
 *
 * The readers see every response, including successes: use none that reports something on each, as `hintRetryAfter` may
 * for a running job. Failures are read by the `hints` of {@link retry}.
 *
 * **Example** (A service with its own header for how long to wait)
 *
 * ```ts
 * const coolDownLayer = CoolDown.layer({ hint: RetryHttp.hintOf([RetryHttp.hintSeconds("x-vendor-wait")]) })
 * ```
 *
 * @category hints
 * @since 0.1.0
 */
export const hintOf =
  (readers: ReadonlyArray<HintReader>) => ({ info, value }: Outcome): Duration.Duration | undefined => {
    if (info !== undefined || !isResponse(value)) return info?.retryAfter
    return readHint(readers, value, wallMillis()) ?? byDefault(value)
  }
