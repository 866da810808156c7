import { setTimeout as sleep } from "node:timers/promises"
import { sum } from "./bounds.ts"
import type { Ports } from "./servers.ts"
import type { Side } from "./sides.ts"

/** How long the calls waited that were made after others had been aborted, in milliseconds. */
export interface Ghosts {
  readonly name: string
  /**
   * The throttles came within a half second, on both limiters, and no send token was there before the 20 were aborted.
   * On a busy machine it may be otherwise, and then the waits mean nothing.
   */
  readonly isClean: boolean
  /** After 20 calls that were aborted while they waited for a send token. */
  readonly after: ReadonlyArray<number>
  /** At the same time, on another limiter, without those 20. */
  readonly control: ReadonlyArray<number>
}

/** The calls that live are given up then, and the last of them counts as waiting that long. */
export const patienceMillis = 10_000

/** The clock of a limiter, in milliseconds. */
type Now = () => number

/** Until the clock of a limiter has begun a half second, in which the limiter measures. */
const halfSecond = async (now: Now): Promise<void> => {
  await sleep(500 - now() % 500)
}

/** After four throttles: some calls that are aborted after 50 ms, and then three, one after the other. */
const waits = async (side: Side, ports: Ports, aborted: number, now: Now) => {
  let sent = 0
  const begun = Math.floor(now() / 500)
  await Promise.all(Array.from({ length: 4 }, () => side.call(ports.throttling).catch(() => undefined)))
  const isOneHalf = Math.floor(now() / 500) === begun
  const controller = new AbortController()
  const { signal } = controller
  side.watch.current = { sent: () => sent++ }
  const calls = Array.from({ length: aborted }, () => side.call(ports.healthy, { signal }).catch(() => undefined))
  await sleep(50)
  controller.abort()
  await Promise.all(calls)
  side.watch.current = {}
  const end = AbortSignal.timeout(patienceMillis)
  const seen: Array<number> = []
  for (let call = 0; call < 3 && !end.aborted; call++) {
    const start = performance.now()
    await side.call(ports.healthy, { signal: end }).catch(() => undefined)
    seen.push(Math.round(performance.now() - start))
  }
  return { isClean: isOneHalf && sent === 0, seen }
}

/** Both at the same time. */
const beside = async (make: () => Promise<Side>, ports: Ports, now: Now, lateness: number): Promise<Ghosts> => {
  const sides = [await make(), await make()] as const
  // So that the clients have read their configuration.
  await Promise.all(sides.map((side) => side.call(ports.healthy)))
  await halfSecond(now)
  await sleep(lateness)
  const [after, control] = await Promise.all([waits(sides[0], ports, 20, now), waits(sides[1], ports, 0, now)])
  const { name } = sides[0]
  return { name, isClean: after.isClean && control.isClean, after: after.seen, control: control.seen }
}

/**
 * The worst clean one of four, of different times within a half second: which call wakes first is random unless an
 * order is kept. Tried again while none is clean, but not forever.
 */
export const ghosts = async (make: () => Promise<Side>, ports: Ports, now: Now, again = 3): Promise<Ghosts> => {
  const seen = await Promise.all([0, 60, 120, 180].map((lateness) => beside(make, ports, now, lateness)))
  const clean = seen.filter(({ isClean }) => isClean)
  if (clean.length === 0 && again > 0) return ghosts(make, ports, now, again - 1)
  return (clean.length === 0 ? seen : clean).reduce((worst, other) =>
    sum(other.after) > sum(worst.after) ? other : worst
  )
}
