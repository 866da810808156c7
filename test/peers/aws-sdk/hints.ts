import * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { Side } from "./sides.ts"

/** What a server may say, and whether it is well-formed, of reasonable length, and asks for more than 5 seconds. */
export const headers: ReadonlyArray<readonly [name: string, value: string, isLong: boolean]> = [
  ["retry-after", "1000000000000", true],
  ["retry-after", "99999999999999999999", true],
  ["retry-after", "9".repeat(400), false],
  ["retry-after", "Fri, 31 Dec 9999 23:59:59 GMT", true],
  ["retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", false],
  ["retry-after", "Infinity", false],
  ["retry-after", "NaN", false],
  ["retry-after", "-5", false],
  ["retry-after", "1e9", false],
  ["retry-after", "0x10", false],
  ["retry-after", "", false],
  ["x-amz-retry-after", "99999999999999999999", true],
  ["x-amz-retry-after", "Infinity", false],
  ["x-amz-retry-after", "1e400", false],
  ["x-amz-retry-after", "-100", false],
  ["x-amz-retry-after", "0x10", false],
  ["x-amz-retry-after", "", false]
]

/** How a side took the headers. */
export interface Hints {
  readonly name: string
  /** Milliseconds from the first answer to the second request, for each header; `"none"` where there was none. */
  readonly gaps: ReadonlyArray<number | "none">
  /** Timers that were asked to wait for no finite time. */
  readonly oddTimers: number
}

/** Answers 500 with a header to the first request of a word, which is the header's number, and 200 to the second. */
const startServer = (gaps: Array<number | "none">) =>
  new Promise<http.Server>((resolve) => {
    const answeredAt = new Map<string, number>()
    const server = http.createServer(async (request, response) => {
      let body = ""
      for await (const chunk of request) body += chunk
      const word: string = JSON.parse(body).ExclusiveStartTableName
      const before = answeredAt.get(word)
      if (before === undefined) {
        const [name, value] = headers[Number(word)]!
        response.writeHead(500, { "content-type": "application/x-amz-json-1.0", [name]: value })
        response.end(`{"__type":"InternalServerError"}`)
        answeredAt.set(word, performance.now())
      } else {
        gaps[Number(word)] = Math.round(performance.now() - before)
        response.writeHead(200, { "content-type": "application/x-amz-json-1.0" })
        response.end(`{"TableNames":[]}`)
      }
    })
    server.listen(0, "127.0.0.1", () => resolve(server))
  })

/** Counts the timers without a finite time while `run` runs. */
const countingOddTimers = async (run: () => Promise<void>): Promise<number> => {
  const original = globalThis.setTimeout
  let odd = 0
  const counting = (done: (...args: Array<unknown>) => void, millis?: number, ...args: Array<unknown>) => {
    if (millis !== undefined && !Number.isFinite(millis)) odd++
    return original(done, millis, ...args)
  }
  globalThis.setTimeout = Object.assign(counting, original)
  try {
    await run()
  } finally {
    globalThis.setTimeout = original
  }
  return odd
}

/** One call for each header, all at the same time. */
export const hints = async (side: Side): Promise<Hints> => {
  const gaps: Array<number | "none"> = headers.map(() => "none")
  const server = await startServer(gaps)
  const { port } = server.address() as AddressInfo
  const oddTimers = await countingOddTimers(async () => {
    await Promise.all(headers.map((_, word) => side.call(port, { word: `${word}` }).catch(() => undefined)))
  })
  server.closeAllConnections()
  server.close()
  return { name: side.name, gaps, oddTimers }
}
