import { setTimeout as sleep } from "node:timers/promises"
import { sum } from "./bounds.ts"
import type { Ports } from "./servers.ts"
import type { Side } from "./sides.ts"

/** How long the calls waited that were made after others had been aborted, in milliseconds. */
export interface Ghosts {
  readonly name: string
  /** After 20 calls that were aborted while they waited for a send token. */
  readonly after: ReadonlyArray<number>
  /** At the same time, on another limiter, without those 20. */
  readonly control: ReadonlyArray<number>
}

/** The calls that live are given up then, and the last of them counts as waiting that long. */
export const patienceMillis = 20_000

/** Until the clock of a limiter has begun a half second, in which the limiter measures. */
const halfSecond = async (now: () => number): Promise<void> => {
  await sleep(500 - now() % 500)
}

/** After four throttles: some calls that are aborted after 50 ms, and then three, one after the other. */
const waits = async (side: Side, ports: Ports, aborted: number): Promise<ReadonlyArray<number>> => {
  await Promise.all(Array.from({ length: 4 }, () => side.call(ports.throttling).catch(() => undefined)))
  const controller = new AbortController()
  const { signal } = controller
  const calls = Array.from({ length: aborted }, () => side.call(ports.healthy, { signal }).catch(() => undefined))
  await sleep(50)
  controller.abort()
  await Promise.all(calls)
  const end = AbortSignal.timeout(patienceMillis)
  const seen: Array<number> = []
  for (let call = 0; call < 3 && !end.aborted; call++) {
    const start = performance.now()
    await side.call(ports.healthy, { signal: end }).catch(() => undefined)
    seen.push(Math.round(performance.now() - start))
  }
  return seen
}

/** Both at once. `now` is the clock of the limiters, in milliseconds. */
const beside = async (
  make: () => Promise<Side>,
  ports: Ports,
  now: () => number,
  lateness: number
): Promise<Ghosts> => {
  const sides = [await make(), await make()] as const
  // So that the clients have read their configuration.
  await Promise.all(sides.map((side) => side.call(ports.healthy)))
  await halfSecond(now)
  await sleep(lateness)
  const [after, control] = await Promise.all([waits(sides[0], ports, 20), waits(sides[1], ports, 0)])
  return { name: sides[0].name, after, control }
}

/** The worst of four, of different times within a half second: who wakes first is chance where nobody keeps an order. */
export const ghosts = async (make: () => Promise<Side>, ports: Ports, now: () => number): Promise<Ghosts> => {
  const seen = await Promise.all([0, 80, 160, 240].map((lateness) => beside(make, ports, now, lateness)))
  return seen.reduce((worst, other) => sum(other.after) > sum(worst.after) ? other : worst)
}
