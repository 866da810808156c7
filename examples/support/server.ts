/** Servers on this machine, for the examples that call one. */
import { Effect } from "effect"
import {
  createServer,
  type RequestListener,
  type Server
} from "node:http"
import type { AddressInfo } from "node:net"

/** Runs with the address of a server, and closes it at the end. */
export const withServer = <A, E, R>(
  server: Server,
  use: (url: string) => Effect.Effect<A, E, R>
) =>
  Effect.acquireUseRelease(
    Effect.callback<string>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        resume(
          Effect.succeed(
            `http://127.0.0.1:${(server.address() as AddressInfo).port}`
          )
        )
      })
    }),
    use,
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

/**
 * A server that prints each request with the status of its answer: the
 * statuses in turn, then 200.
 */
export const answering = (
  statuses: ReadonlyArray<number>,
  body = "{}"
): Server => {
  let requests = 0
  const listener: RequestListener = (request, response) => {
    const status = statuses[requests++] ?? 200
    console.log(`${request.method} ${request.url}: ${status}`)
    response.writeHead(status, { "content-type": "application/json" })
      .end(body)
  }
  return createServer(listener)
}
