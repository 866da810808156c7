import type * as Clock from "effect/Clock"

/**
 * The same clock, showing an earlier time.
 *
 * @internal
 */
export const earlier = (clock: Clock.Clock, millis: number): Clock.Clock => ({
  ...clock,
  sleep: (duration) => clock.sleep(duration),
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - millis,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() - BigInt(millis) * 1_000_000n,
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() - BigInt(millis) * 1_000_000n
})
