import { RetryInfo, RetryObserver, type RetryPolicy } from "effect-retry"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import * as Clock from "effect/Clock"
import type { Encoded } from "effect/cluster/MessageStorage"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import { database, type Death, engine, newProcess, type Process, start, timeUntil } from "./cluster.ts"

/** A payment that failed. Its facts are on the instance alone, and are not stored. */
export class Down extends Schema.TaggedError<Down>()("Down", { attempt: Schema.Int }) {
  facts: RetryInfo.RetryInfo | undefined = undefined
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo | undefined {
    return this.facts
  }
}

export const down = (attempt: number, facts: RetryInfo.RetryInfo | undefined = RetryInfo.transient): Down =>
  Object.assign(new Down({ attempt }), { facts })

interface Send {
  readonly attempt: number
  readonly began: number
  ended: number | undefined
}

/** What a run reports. Times are milliseconds since its beginning. */
export interface Run {
  readonly sends: Array<Send>
  /** What observers were notified of. */
  readonly notified: Array<string>
  exit: Exit.Exit<string, unknown> | undefined
  operations: number
  /** When the second process began. */
  restarted: number | undefined
}

export interface Script {
  readonly policy: RetryPolicy.RetryPolicy<any, any, any>
  readonly options?: RetryWorkflow.Options | undefined
  /** What the send with this number comes to, after `sendMillis`. Default: it fails until the fourth. */
  readonly answer?: ((attempt: number) => Effect.Effect<string, Down>) | undefined
  readonly sendMillis?: number | undefined
  /** When the first process dies, and how long there is none. */
  readonly death?: Death | undefined
  readonly downMillis?: number | undefined
  readonly pollMillis?: number | undefined
  readonly around?: Layer.Layer<any> | undefined
  /** Ends the wait for the result. */
  readonly until?: ((run: Run) => boolean) | undefined
}

export const failsUntil = (last: number) => (attempt: number) =>
  attempt < last ? Effect.fail(down(attempt)) : Effect.succeed("paid")

const Order = Workflow.make("Order", {
  payload: Schema.Struct({ id: Schema.String }),
  idempotencyKey: ({ id }: { readonly id: string }) => id,
  success: Schema.String,
  error: Schema.Union([Down, RetryWorkflow.NotSent])
})

const charging = (run: Run, process: Process, { answer = failsUntil(4), sendMillis = 10 }: Script) =>
  Activity.make({
    name: "charge",
    success: Schema.String,
    error: Down,
    execute: Effect.gen(function*() {
      yield* process.alive
      const attempt = yield* Activity.CurrentAttempt
      const send: Send = { attempt, began: yield* Clock.currentTimeMillis, ended: undefined }
      run.sends.push(send)
      yield* Effect.sleep(sendMillis)
      yield* process.alive
      send.ended = yield* Clock.currentTimeMillis
      return yield* answer(attempt)
    })
  })

/** Says in a word what observers are notified of. */
const observer = (run: Run): RetryObserver.RetryObserver => ({
  onRetry: ({ cost, delayMillis, retry }) => {
    run.notified.push(`retry ${retry} in ${delayMillis} for ${cost}`)
  },
  onStop: ({ attempts, reason }) => {
    run.notified.push(`${reason} after ${attempts}`)
  }
})

/** One life of the process that runs the workflow, to its end. */
const live = (run: Run, messages: Encoded, script: Script, death: Death | undefined) =>
  Effect.gen(function*() {
    const process = newProcess()
    const body = Order.toLayer(() =>
      RetryWorkflow.retryOrElse(
        charging(run, process, script),
        script.policy,
        (error, { attempts, gate, info, reason }) => {
          run.notified.push(`else ${reason} after ${attempts} (${gate ?? info?.safety})`)
          return Effect.fail(error)
        },
        script.options
      )
    )
    const layer = body.pipe(
      Layer.provideMerge(engine(process, messages, death, script.pollMillis)),
      Layer.provideMerge(script.around ?? Layer.empty),
      Layer.provideMerge(RetryObserver.layerOnly(observer(run)))
    )
    const context = yield* start(layer as Layer.Layer<any>)
    const fiber = yield* Effect.forkChild(Order.execute({ id: "1" }).pipe(Effect.provideContext(context)))
    yield* timeUntil(
      () => process.isDead || fiber.pollUnsafe() !== undefined || script.until?.(run) === true,
      script.pollMillis
    )
    run.exit = fiber.pollUnsafe()
    run.operations = process.operations
    return process.isDead
  })

/** Runs the workflow, and runs it on in another process if the first one dies. It has a clock of its own, which begins at 0. */
export const order = (script: Script): Effect.Effect<Run> =>
  Effect.gen(function*() {
    const run: Run = { sends: [], notified: [], exit: undefined, operations: 0, restarted: undefined }
    const messages = yield* database
    const isDead = yield* live(run, messages, script, script.death)
    if (isDead) {
      yield* TestClock.adjust(script.downMillis ?? 0)
      run.restarted = yield* Clock.currentTimeMillis
      yield* live(run, messages, script, undefined)
    }
    return run
  }).pipe(Effect.provide(TestClock.layer()))

/** From the end of each send to the beginning of the next. */
export const waits = ({ sends }: Run): ReadonlyArray<number> =>
  sends.slice(1).map(({ began }, index) => began - sends[index]!.ended!)
