/**
 * The servers of the comparison with reality, as processes of their own: `burner PORT MILLIS` works on one request after the
 * other and does nothing else meanwhile; `pool PORT WORKERS MILLIS QUEUE FACTOR` has workers that wait, a factor as long from
 * one SIGUSR2 to the next, and refuses with 503 what its queue has no place for.
 */
import * as http from "node:http"
import { performance } from "node:perf_hooks"

const [kind, port, ...numbers] = process.argv.slice(2)
const [first = 0, second = 0, third = 0, slowFactor = 10] = numbers.map(Number)

const burn = (millis: number): void => {
  const until = performance.now() + millis
  while (performance.now() < until);
}

const burner: http.RequestListener = (_, response) => {
  burn(first)
  response.end("done")
}

let factor = 1
process.on("SIGUSR2", () => {
  factor = factor === 1 ? slowFactor : 1
})

const waiting: Array<() => void> = []
let busy = 0

const pool: http.RequestListener = (_, response) => {
  const work = () => {
    busy++
    setTimeout(() => {
      busy--
      response.end("done")
      waiting.shift()?.()
    }, -Math.log(1 - Math.random()) * second * factor)
  }
  if (busy < first) return work()
  if (waiting.length < third) return void waiting.push(work)
  response.writeHead(503).end()
}

// Room for all that come while the process is stopped: the default of 511 would turn some away.
http.createServer({ keepAliveTimeout: 60_000 }, kind === "burner" ? burner : pool)
  .listen({ host: "127.0.0.1", port: Number(port), backlog: 4096 })
