/**
 * Five fleets of clients meet the same outage: one without retries, one
 * that retries naively, two with the modes of AWS, and one with a quota
 * for its retries and gates for its sends: a concurrency limit and a
 * cool-down. At the end it writes a page with charts among the
 * temporary files of the system. On a busy machine the figures mean
 * little, so it gives no verdict.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"
import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Display from "./Display.ts"
import * as Fleet from "./Fleet.ts"
import * as Page from "./Page.ts"
import * as Report from "./Report.ts"
import * as Script from "./Script.ts"
import * as Service from "./Service.ts"

const server = createServer()
const script = Script.outage
const seconds = Script.totalSeconds(script)

const progress = (elapsed: number): string => {
  const phase = elapsed < seconds
    ? Script.phaseAt(script, elapsed).name
    : "last answers"
  return `${phase.padEnd(17)} ${
    Math.min(elapsed, seconds).toFixed(0).padStart(2)
  } of ${seconds} s`
}

const bar = (elapsed: number): string => {
  const filled = Math.min(40, Math.floor(elapsed / seconds * 40))
  return "#".repeat(filled) + ".".repeat(40 - filled)
}

const program = Effect.gen(function*() {
  const fleets = Fleet.all()
  const service = yield* Service.make(script)
  yield* HttpServer.serveEffect(service.app)
  // Clients keep connections open, and a server that closes waits for
  // them.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => server.closeAllConnections())
  )
  const address = yield* HttpServer.addressFormattedWith(Effect.succeed)
  const client = HttpClient.mapRequest(
    yield* HttpClient.HttpClient,
    HttpClientRequest.prependUrl(address)
  )
  const figures = Effect.sync(() =>
    fleets.map(({ name, path, tally }) =>
      Report.figures(name, tally, service.requests(path))
    )
  )

  const late = monitorEventLoopDelay({ resolution: 10 })
  late.enable()
  yield* Effect.addFinalizer(() => Effect.sync(() => late.disable()))
  const lateMillis = () => (late.percentile(99) - late.min) / 1e6

  yield* Display.print([
    `${fleets.length} fleets of clients call a server in this process `
    + `for ${seconds} s, each with a policy:`,
    ...Report.abouts(fleets),
    "The server throttles for a while, "
    + "later it is down for 4 s and slow after that.",
    "Ctrl-C ends it."
  ])
  yield* Effect.forEach(fleets, (fleet) => fleet.run(seconds), {
    concurrency: "unbounded",
    discard: true
  }).pipe(
    Effect.provideService(HttpClient.HttpClient, client),
    Effect.raceFirst(Display.show({
      block: Effect.zipWith(
        service.elapsed,
        figures,
        (elapsed, figures) => [
          "",
          `${progress(elapsed)}  ${bar(elapsed)}`,
          "of the answers of the last 5 s:",
          ...Report.live(figures)
        ]
      ),
      line: Effect.zipWith(
        service.elapsed,
        figures,
        (elapsed, figures) =>
          [progress(elapsed), ...Report.liveLines(figures)].join("\n")
      )
    })),
    Effect.onExit((exit) =>
      Effect.flatMap(figures, (figures) =>
        Display.print([
          "",
          ...Exit.isSuccess(exit)
            ? []
            : ["Interrupted; the results until then:", ""],
          ...Report.table(figures)
        ]))
    )
  )
  const latest = lateMillis()
  yield* Page.write(fleets).pipe(
    Effect.match({
      onFailure: (
        why
      ) => ["", `The page with charts could not be written: ${why}`],
      onSuccess: (
        path
      ) => [
        "",
        "The same over time, "
        + "measured and as the simulator predicts it:",
        path
      ]
    }),
    Effect.flatMap(Display.print)
  )
  const last = yield* figures
  yield* Display.print([
    "",
    ...Report.verdict(last, latest),
    ...Report.lesson(last, latest)
  ])
})

const layer = Layer.merge(
  FetchHttpClient.layer,
  NodeHttpServer.layer(() => server, { host: "127.0.0.1", port: 0 })
)

// A reader of the pipe may quit early, as `head` does.
process.stdout.once("error", () => process.exit())

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(layer)))
