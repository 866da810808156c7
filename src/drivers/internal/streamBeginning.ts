import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constTrue } from "effect/Function"
import * as Pull from "effect/Pull"
import type * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { withRetry } from "../../Attempt.ts"
import { guarded } from "../../internal/tryGet.ts"
import * as RetryInfo from "../../RetryInfo.ts"

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

/** A running stream: pulls its elements, and knows whether it has ended. */
export type Pulled<A, E, R> = Pull.Pull<Elements<A>, E, void, R>

/** Emits what was held back, then the rest. */
const replayed = <A, E, R>(held: Array<Elements<A>>, rest: Pulled<A, E, R>): Pulled<A, E, R> =>
  Effect.suspend((): Pulled<A, E, R> => {
    const first = held.shift()
    return first === undefined ? rest : Effect.succeed(first)
  })

/** What a stream emits before it begins. */
export interface Beginning<A> {
  /** Whether the stream has begun with this element. */
  readonly begins: (element: A) => boolean
  /** The error that an element reports instead. Then a stream that ends before it begins has failed too. */
  readonly failure?: ((element: A) => { readonly cause: unknown } | undefined) | undefined
}

/** Closes what a failed attempt opened. Its failure remains what it is, even if that throws. */
export const closed = (scope: Scope.Closeable, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.ignoreCause(Scope.close(scope, Exit.failCause(cause)), { log: "Debug" })

/** What a stream emits before it begins is held back, as far as this number of elements. */
const mostHeld = 100

/** A stream that was cut without an error. */
const cutOff = { [RetryInfo.TypeId]: RetryInfo.transient }

/** Opens a stream until it has begun, or ends. If it fails before, it is closed. */
const opened = <A, E, R>(
  self: Stream.Stream<A, E, R>,
  { begins, failure }: Beginning<A>,
  around: Scope.Scope
): Effect.Effect<Pulled<A, E, R>, E | Unbegun, R> => {
  const held: Array<Elements<A>> = []
  const isFirst = guarded(begins, constTrue)
  let count = 0
  const begun = (pull: Pulled<A, E, R>): Pull.Pull<Pulled<A, E, R>, E | Unbegun, void, R> =>
    Effect.flatMap(pull, (elements) => {
      held.push(elements)
      for (const element of elements) {
        const failed = failure?.(element)
        if (failed !== undefined) return Effect.fail(new Unbegun({ ...failed, held }))
        if (isFirst(element) || ++count === mostHeld) return Effect.succeed(replayed(held, pull))
      }
      return begun(pull)
    })
  return Effect.flatMap(Scope.fork(around), (scope) =>
    Channel.toPullScoped(self.channel, scope).pipe(
      Effect.flatMap((pull) =>
        Pull.catchDone(
          begun(pull),
          () =>
            failure === undefined
              ? Effect.succeed(replayed(held, Cause.done()))
              : Effect.fail(new Unbegun({ cause: cutOff, held }))
        )
      ),
      Effect.onError((cause) => closed(scope, cause))
    )) as Effect.Effect<Pulled<A, E, R>, E | Unbegun, R>
}

/** Retries a stream until it has begun. */
export const untilBegun = <A, E, R, Err, R2>(
  self: Stream.Stream<A, E, R>,
  policy: Schedule.Schedule<unknown, unknown, Err, R2>,
  beginning: Beginning<A>
): Stream.Stream<A, E | Err, R | R2> =>
  Stream.unwrap(
    Effect.flatMap(Effect.scope, (scope) =>
      withRetry(Effect.suspend(() => opened(self, beginning, scope)), policy).pipe(
        Effect.catchIf(
          (error) => error instanceof Unbegun,
          ({ held }) => Effect.succeed(replayed<A, E, R>(held, Cause.done()))
        ),
        Effect.map((pull) => Stream.fromPull(Effect.succeed(pull)))
      ))
  )
