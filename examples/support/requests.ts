/**
 * An outage, for the servers of `sharing`: forty requests while all
 * sends fail.
 */
import { Effect } from "effect"
import { print } from "./program.ts"

/** A client whose service is down. It counts what is sent. */
export const downClient = () => {
  const client = {
    sends: 0,
    getItem: async (_key: string): Promise<string> => {
      client.sends++
      throw Object.assign(new Error("later"), { status: 503 })
    }
  }
  return client
}

/**
 * Makes the requests at the same time, and prints how often the client
 * has sent.
 */
export const fortyRequests = (
  client: { readonly sends: number },
  get: (id: string) => Promise<unknown>
) =>
  Effect.gen(function*() {
    const ids = Array.from({ length: 40 }, (_, id) => String(id))
    yield* Effect.promise(() => Promise.allSettled(ids.map(get)))
    yield* print(`40 requests in an outage: ${client.sends} sends`)
  })
