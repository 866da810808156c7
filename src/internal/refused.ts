/** Marks errors of sends that the quota or a gate refused: nothing was sent, and no policy retries them. */
export const Refused: unique symbol = Symbol.for("effect-retry/Refused") as any
