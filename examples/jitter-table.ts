/**
 * The jitter table of the AWS Architecture Blog ("Exponential Backoff
 * and Jitter", Brooker, 2015): clients that all want to write the same
 * row, and only one succeeds at a time. A program can do what a JSON
 * scenario cannot: any effect runs in the simulator's virtual time.
 */
import * as Simulator from "@effect-retry/lab/Simulator"
import { Backoff, RetryInfo, withRetry } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { main, print } from "./support/program.ts"

/** The row has changed since it was read. */
class Conflict extends RetryInfo.TaggedError("Conflict") {}

const base = "5 millis"
const cap = "2 seconds"

/**
 * The five of the blog. It counts retries from 1 and so does the
 * exponent, so the first ceiling is twice the base.
 */
export const backoffs = {
  Exponential: Backoff.exponential("10 millis", 2, { cap }),
  Decorr: Backoff.decorrelated(base, { cap }),
  Equal: Backoff.exponential("10 millis", 2, { cap, jitter: "equal" }),
  Full: Backoff.exponential("10 millis", 2, { cap, jitter: "full" }),
  None: Backoff.fixed(0)
}

/**
 * How long a message travels: normal, mean 10 ms, standard deviation 2
 * ms.
 */
const leg = Effect.map(
  Effect.all([Random.next, Random.next]),
  ([a, b]) =>
    Math.abs(
      10 +
        2 * Math.sqrt(-2 * Math.log(1 - a)) * Math.cos(2 * Math.PI * b)
    )
)

/**
 * One trial: this many clients write the row once each. Returns the
 * number of writes it took, and the milliseconds.
 */
export const trial = Effect.fnUntraced(
  function*(name: keyof typeof backoffs, clients: number) {
    let version = 0
    let calls = 0
    const travel = Effect.flatMap(leg, Effect.sleep)
    const write = Effect.gen(function*() {
      yield* travel
      const read = version
      yield* travel
      yield* travel
      calls++
      const isFresh = read === version
      if (isFresh) version++
      yield* travel
      if (!isFresh) return yield* new Conflict()
    })
    yield* Effect.all(
      Array.from(
        { length: clients },
        () => withRetry(write, backoffs[name])
      ),
      {
        concurrency: "unbounded",
        discard: true
      }
    )
    return { calls, millis: yield* Clock.currentTimeMillis }
  }
)

/** The mean of several trials, each with its own seed. */
export const row = Effect.fnUntraced(
  function*(
    name: keyof typeof backoffs,
    clients: number,
    trials: number
  ) {
    let calls = 0
    let millis = 0
    for (let seed = 1; seed <= trials; seed++) {
      const one = yield* Simulator.inVirtualTime(trial(name, clients), {
        seed
      })
      calls += one.calls / trials
      millis += one.millis / trials
    }
    return { calls, millis }
  }
)

const line = (name: keyof typeof backoffs) =>
  Effect.flatMap(
    row(name, 20, 5),
    ({ calls, millis }) =>
      print(
        `${name.padEnd(11)} ${calls.toFixed(0).padStart(6)} ${
          millis.toFixed(0).padStart(13)
        }`
      )
  )

main(
  import.meta.url,
  print("20 clients   calls  milliseconds"),
  ...(Object.keys(backoffs) as Array<keyof typeof backoffs>).map(line)
)
