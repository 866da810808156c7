/**
 * Streams: `Stream.retry` resets its count with every element, so a
 * stream that emits one and fails is retried forever.
 *
 * `untilFirst` retries until there is an element, or one that counts,
 * and then no more; `resume` reopens the stream where it broke off.
 */
import { Stream } from "effect"
import { awsStandard } from "effect-retry"
import * as RetryStream from "effect-retry/RetryStream"

/** A feed of changes sends heartbeats while nothing changes. */
export interface Message {
  readonly kind: "heartbeat" | "change"
}

/** Retried until the first change: a heartbeat is none. */
export const changes = <E>(feed: Stream.Stream<Message, E>) =>
  feed.pipe(
    RetryStream.untilFirst(awsStandard, {
      begins: ({ kind }: Message) => kind === "change"
    }),
    Stream.filter(({ kind }) => kind === "change")
  )

import { withRetry } from "effect-retry/Attempt"
import type * as RetryQuota from "effect-retry/RetryQuota"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  ended,
  inVirtualTime,
  main,
  print,
  Unavailable
} from "./support/program.ts"

export interface Line {
  readonly offset: number
  readonly text: string
}

/** A log that can be read from an offset. */
export interface Log<E> {
  readonly read: (offset: number) => Stream.Stream<Line, E>
}

/**
 * Once opened, a log is read to its end or fails: no line is repeated.
 */
export const firstLines = <E>(log: Log<E>) =>
  log.read(0).pipe(RetryStream.untilFirst(awsStandard))

/**
 * After a failure the log is read from the next line. Three runs in a
 * row that fail within ten seconds end it.
 */
export const follow = <E>(log: Log<E>) =>
  RetryStream.resume(
    awsStandard,
    (last: Option.Option<Line>) =>
      log.read(Option.isSome(last) ? last.value.offset + 1 : 0)
  )

/**
 * Pages need no such stream: each page is a call, and retried as one.
 */
export const pages = <E>(
  page: (number: number) => Effect.Effect<ReadonlyArray<Line>, E>
) =>
  Stream.paginate(0, (number) =>
    page(number).pipe(
      withRetry(awsStandard),
      Effect.map((lines) =>
        [
          lines,
          lines.length === 0 ? Option.none() : Option.some(number + 1)
        ] as const
      )
    ))

/**
 * A log of ten lines, which breaks after three of them when it is read
 * the first time.
 */
const breaking = () => {
  const offsets: Array<number> = []
  const read = (offset: number) =>
    Stream.range(offset, 9).pipe(
      Stream.map((offset): Line => ({
        offset,
        text: `line ${offset}`
      })),
      (lines) =>
        offsets.push(offset) === 1
          ? Stream.concat(
            Stream.take(lines, 3),
            Stream.fail(new Unavailable())
          )
          : lines
    )
  return { offsets, log: { read } }
}

const read = (
  title: string,
  open: (
    log: Log<Unavailable>
  ) => Stream.Stream<Line, unknown, RetryQuota.RetryQuota>
) =>
  Effect.gen(function*() {
    const { log, offsets } = breaking()
    const exit = yield* inVirtualTime(
      Effect.exit(Stream.runCount(open(log)))
    )
    yield* print(
      `${title}: read from ${offsets.join(", then from ")}; ${
        ended(exit)
      }`
    )
  })

main(
  import.meta.url,
  read("untilFirst", firstLines),
  read("resume", follow)
)
