/**
 * Durable retries: a backoff that outlives the process.
 *
 * The first process is killed while it waits for its third attempt. The
 * second continues where the first was: the third attempt is made when
 * it was due, with the delay that the first process drew, and the first
 * two are not repeated.
 */
import { Clock, Effect, Layer, Schema } from "effect"
import {
  Backoff,
  RetryInfo,
  RetryObserver,
  RetryPolicy
} from "effect-retry"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import { Activity, Workflow } from "effect/workflow"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { engine } from "./durableEngine.ts"
import { isStarted } from "./support/program.ts"

export class BankDown
  extends Schema.TaggedError<BankDown>()("BankDown", {})
{
  readonly [RetryInfo.TypeId] = RetryInfo.transient
}

const policy = Backoff.exponential("1 second", 2, { jitter: "equal" })
  .pipe(
    RetryPolicy.maxAttempts(6),
    RetryPolicy.deadline("1 day"),
    RetryPolicy.whileRetryable
  )

export const Pay = Workflow.make("Pay", {
  payload: Schema.Struct({ order: Schema.String }),
  idempotencyKey: ({ order }) => order,
  success: Schema.String,
  error: BankDown
})

/**
 * One send: it gets a key that is the same for every attempt, so a bank
 * can recognize a repetition.
 */
const charge = (
  bank: (
    attempt: number,
    key: string
  ) => Effect.Effect<string, BankDown>
) =>
  Activity.make({
    name: "charge",
    success: Schema.String,
    error: BankDown,
    execute: Effect.gen(function*() {
      return yield* bank(
        yield* Activity.CurrentAttempt,
        yield* Activity.idempotencyKey("charge")
      )
    })
  })

export const pay = (
  bank: (
    attempt: number,
    key: string
  ) => Effect.Effect<string, BankDown>
) => Pay.toLayer(() => charge(bank).pipe(RetryWorkflow.retry(policy)))

/**
 * The life of a process, which may be killed while it waits for the
 * third attempt.
 */
const live = (folder: string, isDoomed: boolean) => {
  const say = (line: string) =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) =>
        Effect.sync(() =>
          process.stdout.write(
            `${new Date(now).toISOString().slice(11, 21)}  ${line}\n`
          )
        )
    )
  const bank = (attempt: number) =>
    Effect.andThen(
      say(`attempt ${attempt}`),
      attempt < 4 ? Effect.fail(new BankDown()) : Effect.succeed("paid")
    )
  const killed = Effect.sync(() => process.kill(process.pid, "SIGKILL"))
  const observer = RetryObserver.layer({
    onRetry: ({ delayMillis, retry }) =>
      say(`retry ${retry} in ${(delayMillis / 1000).toFixed(1)} s`)
  })
  return Effect.gen(function*() {
    yield* say("a process is up")
    const paid = Pay.execute({ order: "1" })
    const doom = Effect.andThen(
      Effect.sleep("2500 millis"),
      Effect.andThen(say("it is killed"), killed)
    )
    yield* say(
      yield* isDoomed
        ? Effect.raceFirst(paid, Effect.andThen(doom, Effect.never))
        : paid
    )
  }).pipe(
    Effect.provide(
      pay(bank).pipe(
        Layer.provideMerge(engine(folder)),
        Layer.provideMerge(observer)
      )
    )
  )
}

const [, file, fate, folder] = process.argv
if (isStarted(import.meta.url)) {
  if (folder !== undefined) {
    await Effect.runPromise(live(folder, fate === "doomed"))
  } else {
    const place = mkdtempSync(join(tmpdir(), "durable-"))
    for (const fate of ["doomed", "spared"]) {
      spawnSync(process.execPath, [
        ...process.execArgv,
        file!,
        fate,
        place
      ], { stdio: "inherit" })
    }
    rmSync(place, { recursive: true })
  }
}
