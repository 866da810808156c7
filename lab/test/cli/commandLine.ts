import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert } from "@effect/vitest"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Clock from "effect/Clock"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll } from "vitest"
import { Installed } from "../../src/cli/Installed.ts"
import { exitCode, main } from "../../src/cli/main.ts"
import { Threads } from "../../src/cli/Threads.ts"

/** The folder of the lab, and that of the whole. */
export const lab = fileURLToPath(new URL("../..", import.meta.url))
export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** A folder of a test file, which is removed when its tests have ended. */
export const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), "effect-retry-cli-"))
  afterAll(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  /** What was written to the terminal over and over. */
  readonly progress: ReadonlyArray<string>
}

/** Runs a command line in this process. With a terminal, `onProgress` sees its progress and may interrupt. */
export const run = (
  args: ReadonlyArray<string>,
  options: {
    readonly onProgress?: (interrupt: () => void, text: string) => void
    readonly folder?: string
    readonly threads?: Context.Service.Shape<typeof Threads>
    /** How wide the terminal is. Default wide enough for every table. */
    readonly columns?: number
    readonly isColored?: boolean
  } = {}
): Promise<Ran> => {
  const out: Array<string> = []
  const err: Array<string> = []
  const progress: Array<string> = []
  let interrupt = () => {}
  const stdio = Stdio.layerTest({
    args: Effect.succeed(args),
    stderrIsTerminal: Effect.succeed(options.onProgress !== undefined),
    stderr: () =>
      Sink.forEach((text) =>
        Effect.sync(() => {
          progress.push(String(text))
          options.onProgress?.(() => interrupt(), String(text))
        })
      )
  })
  const console: Console.Console = Object.assign(Object.create(globalThis.console), {
    log: (text: string) => out.push(`${text}\n`),
    error: (text: string) => err.push(`${text}\n`)
  })
  // However fast the machine is, a tenth of a second goes by between two looks at the clock.
  let nanos = 0n
  const clock: Clock.Clock = Object.assign(Object.create(Clock.Clock.defaultValue()), {
    monotonicTimeNanosUnsafe: () => nanos += 100_000_000n
  })
  const environment = ConfigProvider.fromEnvRecord({ ...process.env, COLUMNS: `${options.columns ?? 200}` })
  const canColor = options.isColored === true
  const fiber = Effect.runFork(main.pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, environment),
    Effect.provideService(TerminalCapabilities, { canColor, canAnimate: false, canPrompt: false }),
    Effect.provideService(Clock.Clock, clock),
    Effect.provideService(Installed, { version: "1.2.3", folder: options.folder ?? lab }),
    Effect.provideService(Threads, options.threads),
    Effect.provideService(Console.Console, console),
    Effect.provide(Layer.merge(NodeServices.layer, stdio))
  ))
  interrupt = () => fiber.interruptUnsafe()
  return Effect.runPromise(Effect.map(Fiber.await(fiber), (exit) => ({
    code: exitCode(exit),
    out: out.join(""),
    err: err.join(""),
    progress
  })))
}

/** What a command prints that succeeds. */
export const good = async (args: ReadonlyArray<string>): Promise<string> => {
  const { code, err, out } = await run(args)
  assert.strictEqual(code, 0, err)
  return out
}

/** What a command says that is refused before it has printed anything. */
export const refused = async (args: ReadonlyArray<string>): Promise<string> => {
  const { code, err, out } = await run(args)
  assert.deepStrictEqual([code, out], [2, ""])
  return err.trimEnd()
}
