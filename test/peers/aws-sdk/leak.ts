import { setTimeout as sleep } from "node:timers/promises"
import type { Ports } from "./servers.ts"
import type { Side } from "./sides.ts"

/** What 60 calls left of the retry quota, each aborted while it waited to be retried. */
export interface Leak {
  readonly name: string
  /** Tokens at the start. */
  readonly full: number
  /** Tokens a second after the last abort. */
  readonly capacity: number
  /** Requests that the 60 calls sent: 60 when no retry had been sent yet. */
  readonly sent: number
  /** Attempts of the next call, which fails too. */
  readonly nextAttempts: number
  /** Tokens after it. */
  readonly capacityAfter: number
}

/** Aborts every call 5 ms after the answer to its first attempt, in the backoff. */
export const leak = async (side: Side, ports: Ports): Promise<Leak> => {
  const full = await side.capacity()
  let sent = 0
  for (let call = 0; call < 60; call++) {
    const controller = new AbortController()
    const answered = () => void setTimeout(() => controller.abort(), 5)
    side.watch.current = { sent: () => sent++, answered }
    await side.call(ports.failing, { signal: controller.signal }).catch(() => undefined)
  }
  await sleep(1000)
  const capacity = await side.capacity()
  let nextAttempts = 0
  side.watch.current = { sent: () => nextAttempts++ }
  await side.call(ports.failing).catch(() => undefined)
  return { name: side.name, full, capacity, sent, nextAttempts, capacityAfter: await side.capacity() }
}
