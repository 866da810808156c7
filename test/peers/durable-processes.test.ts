/** Durable retries in several processes at a time. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import { engine } from "../../examples/durableEngine.ts"
import { freePort, startPostgres, startRedis, temporaryFolder } from "../utils/peers.ts"
import { shared } from "../utils/shared.ts"
import { built, created } from "./durable/processes.ts"

const program = shared(built("shop"))
const server = shared(Effect.tap(freePort, startPostgres))

interface Line {
  readonly pid: number
  readonly what: string
  readonly order: string
  readonly attempt: number
  readonly at: number
}

const linesOf = (journal: string): ReadonlyArray<Line> =>
  fs.readFileSync(journal, "utf8").split("\n").filter((line) => line !== "").map((line) => {
    const [pid, what, order, attempt, at] = line.split(" ")
    return { pid: Number(pid), what: what!, order: order!, attempt: Number(attempt), at: Number(at) }
  })

const delayMillis = 1000

interface Shop {
  readonly start: (...orders: ReadonlyArray<string>) => Effect.Effect<ChildProcess, never, Scope.Scope>
  /** Waits for a line that any process has written. */
  readonly seen: (what: string, order: string, attempt: number) => Effect.Effect<void>
  readonly lines: () => ReadonlyArray<Line>
}

const shop = (isCluster: boolean): Effect.Effect<Shop, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const journal = `${yield* temporaryFolder}/journal`
    fs.writeFileSync(journal, "")
    const database = yield* created(server(), `shop${journal.replaceAll(/[^a-zA-Z0-9]/g, "").toLowerCase()}`)
    const lines = () => linesOf(journal)
    return {
      lines,
      start: (...orders) =>
        Effect.flatMap(freePort, (port) =>
          Effect.acquireRelease(
            Effect.sync(() =>
              spawn(process.execPath, [program(), database, journal, isCluster ? `${port}` : "-", ...orders], {
                stdio: "inherit"
              })
            ),
            (child) => Effect.sync(() => child.kill("SIGKILL"))
          )),
      seen: Effect.fnUntraced(function*(what, order, attempt) {
        const isThere = () =>
          lines().some((line) => line.what === what && line.order === order && line.attempt === attempt)
        while (!isThere()) yield* Effect.sleep("100 millis")
      })
    }
  })

/** Attempts that a killed process may not have stored: begun and not ended, or ended just before. */
const inFlight =
  (lines: ReadonlyArray<Line>, pid: number | undefined, killedAt: number) => (order: string, attempt: number) =>
    lines.some((line) =>
      line.pid === pid && line.order === order && line.attempt === attempt && line.what === "began" &&
      !lines.some((end) =>
        end.pid === pid && end.order === order && end.attempt === attempt && end.what === "ended" &&
        end.at < killedAt - 500
      )
    )

/** Each attempt once, but for those that are in flight at a kill; none early. */
const assertExact = (
  lines: ReadonlyArray<Line>,
  orders: ReadonlyArray<string>,
  repeated: (order: string, attempt: number) => boolean = () => false
) => {
  for (const order of orders) {
    for (const attempt of [1, 2, 3]) {
      const timesOf = (what: string, attempt: number) =>
        lines.filter((line) => line.what === what && line.order === order && line.attempt === attempt).map(({ at }) =>
          at
        )
      const began = timesOf("began", attempt)
      const most = repeated(order, attempt) ? 2 : 1
      assert.isTrue(began.length >= 1 && began.length <= most, `${order}, attempt ${attempt}: ${began.length} times`)
      if (attempt > 1) assert.isAtLeast(began[0]!, timesOf("ended", attempt - 1).at(0)! + delayMillis)
    }
  }
}

const named = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}${n}`)

const paid = ({ seen }: Shop, orders: ReadonlyArray<string>) =>
  Effect.forEach(orders, (order) => seen("ended", order, 3), { concurrency: "unbounded", discard: true })

for (const [name, isCluster] of [["a PostgreSQL server", false], ["NodeClusterSocket", true]] as const) {
  // They wait most of the time.
  describe.concurrent(`processes at a time, with ${name}`, () => {
    it.live("two side by side make each attempt once", () =>
      Effect.gen(function*() {
        const one = yield* shop(isCluster)
        const [a, b] = [named("a", 4), named("b", 4)]
        yield* Effect.all([one.start(...a), one.start(...b)])
        yield* paid(one, [...a, ...b])
        assertExact(one.lines(), [...a, ...b])
      }))

    it.live("the second goes on when the first is killed, and repeats nothing but what was in flight", () =>
      Effect.gen(function*() {
        const one = yield* shop(isCluster)
        const [a, b] = [named("a", 4), named("b", 4)]
        const first = yield* one.start(...a)
        yield* one.seen("up", "-", 0)
        yield* one.start(...b)
        yield* one.seen("began", "b0", 1)
        yield* one.seen("began", "a0", 2)
        first.kill("SIGKILL")
        const killedAt = Date.now()
        yield* paid(one, [...a, ...b])
        assertExact(one.lines(), [...a, ...b], inFlight(one.lines(), first.pid, killedAt))
      }))

    it.live("a rolling update makes each attempt once", () =>
      Effect.gen(function*() {
        const one = yield* shop(isCluster)
        const a = named("a", 4)
        const first = yield* one.start(...a)
        yield* one.seen("ended", "a0", 1)
        yield* one.start()
        yield* one.seen("ended", "a3", 1)
        first.kill("SIGTERM")
        const killedAt = Date.now()
        yield* paid(one, a)
        assertExact(one.lines(), a, inFlight(one.lines(), first.pid, killedAt))
      }))

    it.live("ten make each attempt once", () =>
      Effect.gen(function*() {
        const one = yield* shop(isCluster)
        const orders = named("o", 10)
        yield* Effect.all(orders.map((order) => one.start(order)))
        yield* paid(one, orders)
        assertExact(one.lines(), orders)
      }))
  })
}

const holder = shared(built("folder"))

describe("a folder with a database", () => {
  it.live("is opened by one at most of those that start at the same moment, also after one that was killed", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const killed = spawn(process.execPath, [
        "-e",
        "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))",
        `${folder}/owner-killed`
      ])
      yield* Effect.callback<void>((resume) => void killed.once("exit", () => resume(Effect.void)))
      const opening = Effect.exit(Layer.build(engine(folder)))
      const exits = yield* Effect.scoped(Effect.all([opening, opening, opening], { concurrency: "unbounded" }))
      assert.isAtMost(exits.filter(Exit.isSuccess).length, 1)
      yield* Effect.scoped(Layer.build(engine(folder)))
      assert.deepStrictEqual(fs.readdirSync(folder).filter((name) => name.startsWith("owner")), [])
    }))

  it.live("is refused to a second process, and opened again when the first was killed", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const open = Effect.scoped(Layer.build(engine(folder)))
      const first = spawn(process.execPath, [holder(), folder], { stdio: ["ignore", "pipe", "inherit"] })
      yield* Effect.addFinalizer(() => Effect.sync(() => first.kill("SIGKILL")))
      yield* Effect.callback<void>((resume) => void first.stdout.once("data", () => resume(Effect.void)))
      const exit = yield* Effect.exit(open)
      assert.include(String(Exit.isFailure(exit) && Cause.squash(exit.cause)), `${folder} is open in another process`)
      first.kill("SIGKILL")
      yield* Effect.callback<void>((resume) => void first.once("exit", () => resume(Effect.void)))
      yield* open
    }))
})

const crash = shared(built("crash"))

/** Starts a process that is killed by its first retry, again and again; counts how often, up to a number. */
const kills = (url: string, most: number) =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    let count = 0
    while (count < most) {
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(process.execPath, [crash(), folder, url], { stdio: "inherit" })),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      const signal = yield* Effect.callback<string | null>((resume) => {
        child.once("exit", (_code, signal) => resume(Effect.succeed(signal)))
      })
      if (signal === null) return count
      count++
    }
    return count
  })

describe("a process that crashes at its first retry and is started again", () => {
  it.live("has as many retries as the quota in Redis; with a quota of its own there is no end", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      assert.strictEqual(yield* kills(`redis://127.0.0.1:${port}`, 4), 2)
      assert.strictEqual(yield* kills("", 4), 4)
    }))
})
