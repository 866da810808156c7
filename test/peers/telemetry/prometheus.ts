import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as ChildProcess from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { freePort, startServer, temporaryFolder } from "../../utils/peers.ts"

/** The dashboard and the alerts, as they are in the package. */
export const shipped = fileURLToPath(new URL("../../../examples/grafana/", import.meta.url))

/** A program of Prometheus, and what it says. */
export const promtool = (args: ReadonlyArray<string>, input?: string): string =>
  ChildProcess.execFileSync("promtool", args, {
    encoding: "utf8",
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    ...(input === undefined ? {} : { input })
  })

interface Prometheus {
  readonly get: (path: string, parameters: Record<string, string>) => Effect.Effect<any>
}

/** Prometheus with the alerts, over these samples in the text format with timestamps, scraping these ports. */
export const startPrometheus = (samples: ReadonlyArray<string>, ports: ReadonlyArray<number> = []) =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const data = path.join(folder, "data")
    if (samples.length > 0) {
      const file = path.join(folder, "samples.txt")
      fs.writeFileSync(file, `${samples.join("\n")}\n# EOF\n`)
      promtool(["tsdb", "create-blocks-from", "openmetrics", file, data])
    }
    const config = path.join(folder, "prometheus.yml")
    fs.writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: "1s", evaluation_interval: "1s" },
        rule_files: [path.join(shipped, "alerts.yml")],
        scrape_configs: ports.map((port) => ({
          job_name: `port-${port}`,
          static_configs: [{ targets: [`127.0.0.1:${port}`] }]
        }))
      })
    )
    const port = yield* freePort
    yield* startServer("prometheus", [
      `--config.file=${config}`,
      `--storage.tsdb.path=${data}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--storage.tsdb.retention.time=100y",
      "--log.level=error"
    ], port)
    // It listens before its samples are loaded.
    yield* Effect.tryPromise(async () => {
      if (!(await fetch(`http://127.0.0.1:${port}/-/ready`)).ok) throw new Error("not ready")
    }).pipe(Effect.retry(Schedule.spaced("50 millis")))
    const get: Prometheus["get"] = (path, parameters) =>
      Effect.promise(async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters)}`)
        const { data, error } = await answer.json() as { readonly data: unknown; readonly error?: string }
        if (error !== undefined) throw new Error(`${parameters["query"]}: ${error}`)
        return data
      })
    return { get } satisfies Prometheus
  })
