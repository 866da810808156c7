/**
 * How a call flows through the sources: which files it enters, and how often it moves from one to another.
 *
 * `npm run flow` prints a table; `--path` adds the files in the order of their visits, `--json` prints both as JSON.
 *
 * Five calls are followed, each throttled once and then answered. A debugger stops at every place in `src` where it can
 * stop: statements, calls, returns. That is the path of stepping into everything, with the frames of Effect, the
 * SDK and Node skipped. It counts
 *
 * - files: those of `src` in which it stopped;
 * - moves: how often it stopped in another file than the time before, by a call or by a return;
 * - entered: how many of the moves into the file were calls.
 *
 * Only the call in the row is followed: quota, client and strategy are made before, modules are loaded,
 * and every call has run once. A call is followed until nothing that it started runs any more. Time is `TestClock`'s,
 * nothing uses the network and no path depends on randomness, so every run gives the same figures. Another major version
 * of Node may stop at other places and count a little differently.
 */
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb"
import { HttpResponse } from "@smithy/core/protocols"
import { attempt, awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { type Debugger, Session } from "node:inspector"
import { setImmediate } from "node:timers/promises"

type Context = RetryQuota.RetryQuota

/** A call: made again for each run, then run. */
interface Call {
  readonly name: string
  readonly make: Effect.Effect<Effect.Effect<unknown, unknown, Context>, never, Context>
}

class ThrottlingException extends Data.Error<{ readonly name: "ThrottlingException" }> {}

/** Gives the answers in turn, one each time it is asked. */
const inTurn = <A>(...answers: ReadonlyArray<() => A>) => {
  const left = answers.values()
  return (): A => left.next().value!()
}

const throttledOnce = Effect.sync(() => {
  const answer = inTurn<Effect.Effect<string, ThrottlingException>>(
    () => Effect.fail(new ThrottlingException({ name: "ThrottlingException" })),
    () => Effect.succeed("answer")
  )
  return Effect.suspend(answer)
})

const httpClient = Effect.sync(() => {
  const status = inTurn(() => 503, () => 200)
  return HttpClient.make((request) =>
    Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(null, { status: status() })))
  )
})

const responseOf = (statusCode: number, body: object) => () => ({
  response: new HttpResponse({ statusCode, headers: {}, body: new TextEncoder().encode(JSON.stringify(body)) })
})

const dynamoDb = (strategy?: AwsSdk.ClientStrategy) => {
  const answer = inTurn(responseOf(400, { __type: "com.amazonaws#ThrottlingException" }), responseOf(200, {}))
  return new DynamoDBClient({
    region: "eu-west-1",
    credentials: { accessKeyId: "id", secretAccessKey: "key" },
    requestHandler: { handle: async () => answer() },
    ...(strategy === undefined ? {} : { retryStrategy: strategy, maxAttempts: strategy.maxAttempts })
  })
}

const getItem = () => new GetItemCommand({ TableName: "orders", Key: { id: { S: "1" } } })

const calls: ReadonlyArray<Call> = [
  {
    name: "Effect.retry(attempt(call), awsStandard)",
    make: Effect.map(throttledOnce, (call) => Effect.suspend(() => Effect.retry(attempt(call), awsStandard)))
  },
  {
    name: "withRetry(call, awsStandard)",
    make: Effect.map(throttledOnce, (call) => Effect.suspend(() => withRetry(call, awsStandard)))
  },
  {
    name: "RetryHttp.retry(client, awsStandard).get(url)",
    make: Effect.map(
      httpClient,
      (client) => Effect.suspend(() => RetryHttp.retry(client, awsStandard).get("https://shop.example/orders/1"))
    )
  },
  {
    name: "withRetry(AwsSdk.send(client, command), awsStandard)",
    make: Effect.sync(() => {
      const client = dynamoDb()
      return Effect.suspend(() => withRetry(AwsSdk.send(client, getItem()), awsStandard))
    })
  },
  {
    name: "client.send(command), its retryStrategy of AwsSdk",
    make: Effect.map(AwsSdk.makeRetryStrategy(awsStandard), (strategy) => {
      const client = dynamoDb(strategy)
      return Effect.promise(() => client.send(getItem()))
    })
  }
]

/** Lets promises go on as far as they can. */
const flushed = Effect.promise(async () => {
  for (let turn = 0; turn < 10; turn++) await setImmediate()
})

/** Runs an effect and what it leaves running, in virtual time, which moves when promises can go no further. */
const played = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.exit(self), { startImmediately: true })
    yield* flushed
    while (fiber.pollUnsafe() === undefined) {
      yield* TestClock.adjust("100 millis")
      yield* flushed
    }
    return yield* Effect.flatten(Fiber.join(fiber))
  })

const root = new URL("../src/", import.meta.url).href

/** A debugger of this thread: while the program is stopped, only its listener runs. */
class Stepper {
  private readonly session = new Session()
  private readonly files = new Map<string, string>()
  private path: Array<string> = []
  private entered = new Map<string, number>()
  private stack: ReadonlyArray<string> = []

  constructor() {
    this.session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => {
      if (url.startsWith(root)) this.files.set(scriptId, url.slice(root.length))
    })
    this.session.on("Debugger.paused", ({ params }) => this.stopped(params.callFrames))
    this.session.connect()
    this.session.post("Debugger.enable")
    this.session.post("Debugger.setBreakpointsActive", { active: false })
    for (const scriptId of this.files.keys()) {
      const start = { scriptId, lineNumber: 0, columnNumber: 0 }
      this.session.post("Debugger.getPossibleBreakpoints", { start }, (error, { locations }) => {
        if (error !== null) throw error
        for (const location of locations) this.session.post("Debugger.setBreakpoint", { location })
      })
    }
  }

  private stopped(frames: ReadonlyArray<Debugger.CallFrame>): void {
    const inside = frames.filter(({ location }) => this.files.has(location.scriptId)).reverse()
    const file = this.files.get(inside.at(-1)!.location.scriptId)!
    const stack = inside.map(({ functionLocation: at, location }) =>
      [location.scriptId, at?.lineNumber, at?.columnNumber].join()
    )
    const isReturn = stack.length < this.stack.length && stack.every((frame, index) => frame === this.stack[index])
    if (file !== this.path.at(-1)) {
      this.path.push(file)
      if (!isReturn) this.entered.set(file, (this.entered.get(file) ?? 0) + 1)
    }
    this.stack = stack
  }

  /** Follows what runs from now on, until the function it returns is called. */
  follow() {
    this.path = []
    this.entered = new Map()
    this.stack = []
    this.session.post("Debugger.setBreakpointsActive", { active: true })
    return () => {
      this.session.post("Debugger.setBreakpointsActive", { active: false })
      const entered = [...this.entered].sort(([a, times], [b, others]) => others - times || (a < b ? -1 : 1))
      return {
        files: new Set(this.path).size,
        moves: this.path.length - 1,
        entered: Object.fromEntries(entered),
        path: this.path
      }
    }
  }

  /** Removes the debugger and its breakpoints. */
  close(): void {
    this.session.disconnect()
  }
}

const services = Layer.merge(RetryQuota.layer(), TestClock.layer())

const run = (call: Call, stepper?: Stepper) =>
  Effect.runPromise(
    Effect.gen(function*() {
      const made = yield* call.make
      const end = stepper?.follow()
      yield* played(made)
      return end?.()
    }).pipe(Effect.provide(services))
  )

const print = (line: string) => process.stdout.write(`${line}\n`)

for (const call of calls) await run(call)
const stepper = new Stepper()
const flows = []
for (const call of calls) flows.push({ call: call.name, ...(await run(call, stepper))! })
stepper.close()

if (process.argv.includes("--json")) print(JSON.stringify(flows, undefined, 2))
else {
  const width = Math.max(...flows.map(({ call }) => call.length))
  print(`${"call".padEnd(width)}  files  moves  most entered`)
  for (const { call, entered, files, moves, path } of flows) {
    const most = Object.entries(entered).slice(0, 5).map(([file, times]) => `${file.slice(0, -3)} ${times}`)
    print(`${call.padEnd(width)}  ${String(files).padStart(5)}  ${String(moves).padStart(5)}  ${most.join(", ")}`)
    if (process.argv.includes("--path")) print(`\n  ${path.map((file) => file.slice(0, -3)).join(" → ")}\n`)
  }
}
