import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"
import * as Criticality from "effect-retry/Criticality"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import { build } from "esbuild"
import { type ChildProcess, fork } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "retry-propagation-"))
const worker = path.join(folder, "worker.mjs")

const children: Array<ChildProcess> = []

/** Starts a process, and returns the address at which it answers. */
const started = (next: string) =>
  new Promise<string>((resolve) => {
    const child = fork(worker, [next], { stdio: ["ignore", "inherit", "inherit", "ipc"] })
    children.push(child)
    child.once("message", (port) => resolve(`http://127.0.0.1:${port}`))
  })

/** The addresses of three processes in a row, each with three attempts. The last one is down. */
let first: string
let second: string
let last: string

beforeAll(async () => {
  await build({
    entryPoints: [fileURLToPath(new URL("propagation.worker.ts", import.meta.url))],
    outfile: worker,
    bundle: true,
    format: "esm",
    platform: "node",
    // What is CommonJS in it requires modules of Node.
    banner: { js: `import { createRequire as from } from "node:module"\nconst require = from(import.meta.url)` },
    tsconfig: fileURLToPath(new URL("../../tsconfig.json", import.meta.url)),
    logLevel: "error"
  })
  last = await started("")
  second = await started(last)
  first = await started(second)
})

afterAll(() => {
  for (const child of children) child.kill()
  fs.rmSync(folder, { recursive: true })
})

const threeAttempts = Backoff.fixed("5 millis").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)

type Seen = ReadonlyArray<Record<string, string>>

const seen = (address: string) =>
  HttpClient.get(`${address}/seen`).pipe(
    Effect.flatMap((response) => response.json),
    Effect.map((json) => json as unknown as Seen),
    Effect.orDie
  )

/** Forgets what was sent before. */
const forget = Effect.suspend(() => Effect.forEach([first, second, last], seen, { discard: true }))

describe("three real processes in a row, each with three attempts, the last one down", () => {
  it.live("27 sends arrive at the last one without propagation", () =>
    Effect.gen(function*() {
      yield* forget
      const client = (yield* HttpClient.HttpClient).pipe(RetryHttp.retry(threeAttempts))
      assert.strictEqual((yield* client.get(`${first}/plain`)).status, 503)
      assert.strictEqual((yield* seen(last)).length, 27)
    }).pipe(Effect.provide(FetchHttpClient.layer)))

  it.live(
    "3 with it, by every form of the call; each says which it is, and what is left",
    () =>
      Effect.gen(function*() {
        yield* forget
        const bare = yield* HttpClient.HttpClient
        const failing = Effect.flatMap(RetryPropagation.headers, (headers) => bare.get(`${first}/`, { headers })).pipe(
          Effect.flatMap((response) => response.status === 503 ? Effect.fail(response) : Effect.succeed(response))
        )
        const policy = RetryPolicy.deadline(
          Backoff.fixed("5 millis").pipe(RetryPolicy.maxAttempts(3)),
          "5 minutes"
        )
        const ways: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
          RetryHttp.retry(bare, RetryPolicy.deadline(threeAttempts, "5 minutes")).get(`${first}/`),
          withRetry(failing, policy),
          Effect.retry(failing, policy)
        ]
        for (const way of ways) {
          yield* Effect.exit(way).pipe(
            Effect.provideService(Criticality.CurrentCriticality, "sheddable"),
            Effect.provide(RetryPropagation.layer())
          )
          const [atFirst, atSecond, atLast] = yield* Effect.all([seen(first), seen(second), seen(last)])
          for (const at of [atFirst, atSecond, atLast]) {
            assert.deepStrictEqual(at.map(({ attempt, max }) => `${attempt} of ${max}`), ["1 of 3", "2 of 3", "3 of 3"])
            assert.deepStrictEqual([...new Set(at.map(({ criticality }) => criticality))], ["sheddable"])
          }
          for (let send = 0; send < 3; send++) {
            const left = [atFirst, atSecond, atLast].map((at) => Number(at[send]!["deadline"]))
            assert.isTrue(left[0]! >= left[1]! && left[1]! >= left[2]! && left[2]! > 0, left.join(", "))
          }
        }
      }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("the deadline cuts off the work of all of them", () =>
    Effect.gen(function*() {
      yield* forget
      const bare = yield* HttpClient.HttpClient
      const atLast: Array<string | undefined> = []
      // On a slow machine a deadline is over before a send has reached the last one.
      for (let millis = 1000; atLast.at(-1) !== "cut off"; millis *= 2) {
        atLast.length = 0
        const client = RetryHttp.retry(bare, RetryPolicy.deadline(threeAttempts, millis))
        const exit = yield* Effect.exit(client.get(`${first}/slow`)).pipe(Effect.provide(RetryPropagation.layer()))
        // The first process has the same deadline, in whole milliseconds, and may answer just before.
        const isCutOff = Exit.isSuccess(exit) ? exit.value.status >= 500 : String(exit).includes("no response within")
        assert.isTrue(isCutOff, String(exit))
        do {
          yield* Effect.sleep(millis / 10)
          atLast.push(...(yield* seen(last)).map(({ attempt }) => attempt))
        } while (atLast.at(-1) === "1")
      }
      assert.deepStrictEqual(atLast, ["1", "cut off"])
    }).pipe(Effect.provide(FetchHttpClient.layer)))
})
