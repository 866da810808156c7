/** The command line in a process: its commands one after the other, in one thread, or in threads from the first run on. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stdio from "effect/Stdio"
import { Worker } from "node:worker_threads"
import { Installed } from "../../../lab/src/cli/Installed.ts"
import { main } from "../../../lab/src/cli/main.ts"
import { Threads } from "../../../lab/src/cli/Threads.ts"

export interface Asked {
  readonly commands: ReadonlyArray<ReadonlyArray<string>>
  /** The folder of the lab. */
  readonly folder: string
  /** The program of a thread; without one there are none. */
  readonly worker?: string | undefined
}

export interface Printed {
  readonly outputs: ReadonlyArray<string>
  readonly threads: number
}

const print = async ({ commands, folder, worker }: Asked): Promise<Printed> => {
  let threads = 0
  const start = (program: string): Worker => {
    threads++
    return new Worker(program)
  }
  const outputs: Array<string> = []
  for (const args of commands) {
    const out: Array<string> = []
    const console: Console.Console = Object.assign(Object.create(globalThis.console), {
      log: (text: string) => out.push(text)
    })
    await Effect.runPromise(main.pipe(
      Effect.provideService(Installed, { version: "1.2.3", folder }),
      Effect.provideService(
        Threads,
        worker === undefined ? undefined : { available: 2, afterAttempts: 0, start: () => start(worker) }
      ),
      Effect.provideService(Console.Console, console),
      Effect.provide(Layer.merge(NodeServices.layer, Stdio.layerTest({ args: Effect.succeed(args) })))
    ))
    outputs.push(out.join("\n"))
  }
  return { outputs, threads }
}

print(JSON.parse(process.argv[2]!)).then((printed) => process.stdout.write(JSON.stringify(printed)))
