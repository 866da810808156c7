/**
 * Makes an example a program: it runs when it is started, and not when
 * something imports it.
 */
import { Cause, Clock, Console, Effect, Exit, Predicate } from "effect"
import { RetryInfo, RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import { existsSync, realpathSync } from "node:fs"
import { fileURLToPath } from "node:url"

/**
 * Whether the file with this URL is the one that Node was started with.
 */
export const isStarted = (url: string): boolean => {
  const [, file = ""] = process.argv
  return existsSync(file) && realpathSync(file) === fileURLToPath(url)
}

/**
 * Runs the programs one after the other if the file was started. Their
 * calls share one quota.
 */
export const main = (
  url: string,
  ...programs: ReadonlyArray<
    Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>
  >
): void => {
  if (!isStarted(url)) return
  const all = Effect.all(programs, { discard: true })
  void Effect.runPromise(Effect.provide(all, RetryQuota.layer()))
}

export const print = (line: unknown) => Console.log(String(line))

/** The error of a service that is down. */
export class Unavailable
  extends RetryInfo.TaggedError("Unavailable", { fault: "server" })
{}

/**
 * A service that is down for longer than any call of these examples
 * lasts.
 */
export const down = Array.from({ length: 20 }, () => new Unavailable())

const nameOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "_tag")) return String(error._tag)
  if (error instanceof Error) return `${error.name}: ${error.message}`
  return Predicate.hasProperty(error, "name")
    ? String(error.name)
    : JSON.stringify(error)
}

/** What a program came to: its value, or the name of its error. */
export const ended = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.match(exit, {
    onSuccess: (value) =>
      typeof value === "string"
        ? value
        : JSON.stringify(value) ?? "done",
    onFailure: (cause) => `failed with ${nameOf(Cause.squash(cause))}`
  })

/**
 * Runs in virtual time, which begins at 0 unless a `TestClock` is
 * there, and jitter draws the middle of its range.
 */
export const inVirtualTime = <A, E, R>(
  program: Effect.Effect<A, E, R>
) => Effect.provide(Kit.runToEnd(program), Kit.fixedRandom(0.5))

const format = (millis: number): string =>
  millis < 1000 ? `${millis} ms` : `${millis / 1000} s`

/**
 * Prints when a call was sent, and how it ended. Its sends fail with
 * each of the errors in turn, then answer "ok".
 */
export const show = <E, A, E2, R>(
  title: string,
  errors: ReadonlyArray<E>,
  program: (send: Effect.Effect<string, E>) => Effect.Effect<A, E2, R>
) =>
  Effect.gen(function*() {
    const call = Kit.outcomes([
      ...errors.map((error) => Kit.failure(error)),
      Kit.ok("ok")
    ], { afterwards: "repeat" })
    const timed = Effect.all([
      Clock.currentTimeMillis,
      Effect.exit(program(call.send))
    ])
    const [startMillis, exit] = yield* inVirtualTime(timed)
    const times = call.timeline.at("attempt").map((atMillis) =>
      format(atMillis - startMillis)
    )
    yield* print(
      `${title}: ${
        times.length === 0 ? "not sent" : `sent at ${times.join(", ")}`
      }; ${ended(exit)}`
    )
  })

/**
 * Prints how many calls ended in which way, and how often they were
 * sent. They begin at intervals.
 */
export const showMany = <E, A, E2, R>(
  title: string,
  { calls, everyMillis = 0 }: {
    readonly calls: number
    readonly everyMillis?: number
  },
  send: Effect.Effect<string, E>,
  program: (send: Effect.Effect<string, E>) => Effect.Effect<A, E2, R>
) =>
  Effect.gen(function*() {
    let sends = 0
    const counted = Effect.suspend(() => {
      sends++
      return send
    })
    const call = (n: number) =>
      Effect.delay(Effect.exit(program(counted)), everyMillis * n)
    const exits = yield* inVirtualTime(
      Effect.forEach(Array.from({ length: calls }, (_, n) => n), call, {
        concurrency: "unbounded"
      })
    )
    const ends = exits.map(ended)
    const counts = [...new Set(ends)].map((end) =>
      `${ends.filter((other) => other === end).length} ${end}`
    )
    yield* print(
      `${title}: ${calls} calls, ${sends} sends; ${counts.join(", ")}`
    )
  })
