import { retryFetch } from "effect-retry/fetch"

/** Call it as you call `fetch`. Each host has its own quota. */
export const fetch = retryFetch()
