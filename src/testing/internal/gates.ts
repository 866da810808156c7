import type { Pass, Send } from "../../SendGate.ts"

/**
 * The same send, whose pass is given to another.
 *
 * @internal
 */
export const watched = (send: Send, hold: (pass: Pass) => void): Send => ({
  attempt: send.attempt,
  context: send.context,
  hold,
  get nowMillis() {
    return send.nowMillis
  }
})
