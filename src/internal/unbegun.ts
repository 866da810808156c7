import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Data from "effect/Data"

export type Elements<A> = NonEmptyReadonlyArray<A>

/** A stream whose elements say that it failed, or that ended too early. If it is not retried, its elements come out. */
export class Unbegun extends Data.TaggedError("Unbegun")<{
  readonly cause: unknown
  readonly held: Array<Elements<any>>
}> {
  override get message(): string {
    return "the stream failed before it began"
  }
}
