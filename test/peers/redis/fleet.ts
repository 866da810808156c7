import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as ChildProcess from "node:child_process"
import * as path from "node:path"
import { createInterface, type Interface } from "node:readline"

/** A command of an administrator, over a connection of its own. */
export const command = (port: number, ...args: ReadonlyArray<string>): Effect.Effect<unknown, unknown> =>
  Effect.provide(
    NodeRedis.NodeRedis.use(({ use }) => use((client) => client.sendCommand([...args]))),
    NodeRedis.layer({ url: `redis://127.0.0.1:${port}` })
  )

/** The exchanges that there were. */
export const exchanges = (port: number): Effect.Effect<number, unknown> =>
  Effect.map(
    command(port, "INFO", "commandstats"),
    (info) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(info))?.[1] ?? 0)
  )

export const urlOf = (port: number, user = "") => `redis://${user}127.0.0.1:${port}`

/** A shared quota of this process. */
export const quotaAt = (url: string, options: RetryQuotaRedis.Options) =>
  Effect.flatMap(
    Layer.build(NodeRedis.layer({ url })),
    (redis) => Effect.provideContext(RetryQuotaRedis.make(options), redis)
  )

/** Looks until it is true, and says what it waited for if the limit of the test comes first. */
export const eventually = <E, R>(
  is: Effect.Effect<boolean, E, R>,
  what: string | (() => string)
): Effect.Effect<void, E, R> =>
  Effect.gen(function*() {
    while (!(yield* is)) yield* Effect.sleep(25)
  }).pipe(
    Effect.onInterrupt(() => Effect.sync(() => console.error(`not yet: ${typeof what === "string" ? what : what()}`)))
  )

/** How long it takes, in milliseconds. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<readonly [A, number], E, R> =>
  Effect.gen(function*() {
    const start = yield* Clock.currentTimeNanos
    const value = yield* effect
    return [value, Number((yield* Clock.currentTimeNanos) - start) / 1e6] as const
  })

/** Another process of the fleet. */
export interface Worker {
  readonly process: ChildProcess.ChildProcess
  /** Has it begin its job. */
  readonly go: Effect.Effect<void>
  readonly line: Effect.Effect<string>
}

const nextLine = (lines: Interface, kept: Array<string>) =>
  Effect.callback<string>((resume) => {
    const first = kept.shift()
    if (first !== undefined) return resume(Effect.succeed(first))
    lines.once("line", () => resume(Effect.sync(() => kept.shift()!)))
    lines.once("close", () => resume(Effect.die(new Error("the worker has ended without a word"))))
  })

/** Starts a program of this folder as a process of the fleet, and waits until it is ready. It is killed with the scope. */
export const startProcess = (
  program: string,
  parameters: ReadonlyArray<string>
): Effect.Effect<Worker, never, Scope.Scope> =>
  Effect.gen(function*() {
    const file = path.join(import.meta.dirname, program)
    const args = ["--import", "tsx", file, ...parameters]
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => ChildProcess.spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] })),
      (worker) => Effect.sync(() => worker.kill("SIGKILL"))
    )
    const lines = createInterface(child.stdout)
    const kept: Array<string> = []
    lines.on("line", (line) => kept.push(line))
    const line = Effect.suspend(() => nextLine(lines, kept))
    yield* line
    return { process: child, line, go: Effect.sync(() => child.stdin.write("go\n")) }
  })

/** A process with a shared quota. */
export const startWorker = (
  port: number,
  options: RetryQuotaRedis.Options,
  job: "outage" | "longOutage" | "holding"
): Effect.Effect<Worker, never, Scope.Scope> => startProcess("worker.ts", [urlOf(port), JSON.stringify(options), job])
