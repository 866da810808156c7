/**
 * Streams: `Stream.retry` begins to count anew with every element, so a stream that gives one and fails is retried for ever.
 *
 * `untilFirst` retries until there is an element and then no more; `resume` opens the stream again where it broke off.
 */
import { Effect, Option, Stream } from "effect"
import { awsStandard, withRetry } from "effect-retry"
import * as RetryStream from "effect-retry/RetryStream"

export interface Line {
  readonly offset: number
  readonly text: string
}

/** A log that can be read from an offset on. */
export interface Log<E> {
  readonly read: (offset: number) => Stream.Stream<Line, E>
}

/** A log that was opened is read to its end or fails: no line comes twice. */
export const firstLines = <E>(log: Log<E>) => log.read(0).pipe(RetryStream.untilFirst(awsStandard))

/** After a failure the log is read from the line after the last. Three runs in a row that fail within ten seconds end it. */
export const follow = <E>(log: Log<E>) =>
  RetryStream.resume(
    awsStandard,
    (last: Option.Option<Line>) => log.read(Option.isSome(last) ? last.value.offset + 1 : 0)
  )

/** Pages need no such stream: each page is a call, and retried as one. */
export const pages = <E>(page: (number: number) => Effect.Effect<ReadonlyArray<Line>, E>) =>
  Stream.paginate(0, (number) =>
    page(number).pipe(
      withRetry(awsStandard),
      Effect.map((lines) => [lines, lines.length === 0 ? Option.none() : Option.some(number + 1)] as const)
    ))
