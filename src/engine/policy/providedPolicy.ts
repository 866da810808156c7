import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { AnyContext } from "../../internal/shared.ts"
import type { Answer, Compiled, Services, Source } from "../compiled.ts"
import { asDecision } from "../decider.ts"
import { type AnyFiber, environmentOf, Provided } from "../environment.ts"
import { begin, lookUp } from "../frames.ts"
import { CurrentOffers, type Run } from "../run.ts"

type Build = Services["build"]

/** Builds a layer when it is first used, once: its scope is never closed. A build that fails is tried again. */
export const building = (layer: Layer.Layer<any, unknown>): Services => {
  let built: AnyContext | undefined
  let memo = Layer.makeMemoMapUnsafe()
  const scope = Scope.makeUnsafe()
  const build: Build = Effect.suspend(() => Layer.buildWithMemoMap(layer, memo, scope)).pipe(
    Effect.tap((context) => Effect.sync(() => built = context)),
    Effect.onError(() => Effect.sync(() => memo = Layer.makeMemoMapUnsafe())),
    Effect.uninterruptible
  )
  return servicesOf(Effect.suspend(() => built === undefined ? build : Effect.succeed(built)))
}

/** A loop that evaluates a schedule here sends nothing: it fails like this. */
const refusing = (cause: Cause.Cause<unknown>): Effect.Effect<never, unknown> =>
  Effect.withFiber((fiber: AnyFiber) => {
    const failed = Effect.failCause(cause)
    const found = fiber.getRef(CurrentOffers) === undefined ? lookUp(fiber, 0) : undefined
    const nothing = () => undefined
    const run = {
      isSent: false,
      admits: () => failed,
      enters: nothing,
      sent: nothing,
      fails: nothing,
      turns: nothing,
      expires: () => failed,
      ends: nothing
    }
    if (typeof found === "number") begin(run, fiber, found)
    else if (found !== undefined) Object.assign(found, { admits: run.admits, ends: nothing })
    return failed
  })

const servicesOf = (build: Build): Services => ({
  build,
  stepped: (schedule) =>
    Schedule.fromStep(Effect.flatMap(Effect.catchCause(build, refusing), (context) => {
      const within = <A, E, R>(self: Effect.Effect<A, E, R>) =>
        Effect.withFiber<A, E, R>((fiber) => {
          const around = fiber.getRef(CurrentOffers)
          if (around !== undefined) adopted(around.run, context)
          return Effect.provideService(self, Provided, context)
        })
      return Effect.map(
        within(Schedule.toStep(schedule)),
        (step) => (now: number, input: unknown) => within(step(now, input))
      )
    })),
  retried: (orElse, retry) => {
    const alone: typeof orElse = orElse &&
      ((error, stop) => Effect.provideService(orElse(error, stop), Provided, undefined))
    return Effect.flatMap(build, (context) => Effect.provideService(retry(alone), Provided, context))
  }
})

/** The services of both; of two of one kind, the first. */
export const both = (one: Services | undefined, other: Services | undefined): Services | undefined =>
  one === undefined || other === undefined || one === other
    ? one ?? other
    : servicesOf(Effect.zipWith(other.build, one.build, (others, own) => Context.merge(others, own)))

/** A run that has paid nothing takes the quota and the gates of these services, unless it has those of others. */
const adopted = (run: Run, services: AnyContext): void => {
  const isFree = run.permit === undefined && Context.get(run.environment.context, Provided) === undefined
  if (isFree) run.environment = environmentOf(Context.add(run.environment.context, Provided, services))
}

/** Decides once the services are there. */
export const joined = (run: Run, services: Services | undefined, decide: () => Answer): Answer =>
  services === undefined ? decide() : Effect.flatMap(services.build, (context) => {
    adopted(run, context)
    return asDecision(decide())
  })

/** What decides inside a policy, with its services. */
export const sourced = (source: Source, { build }: Services): Source => ({
  ...source,
  begin: (decider) => {
    const decide = source.begin(decider)
    return () => {
      const answer = decide()
      return typeof answer === "boolean"
        ? answer
        : Effect.flatMap(build, (context) => Effect.provideContext(answer, context))
    }
  }
})

/**
 * Makes something of a policy, with the services of the context and its own, and the policy of here if it is looked up.
 * The services' failure to build is a defect.
 */
export const withServices = <A, R>(
  { live, services, ...compiled }: Compiled,
  make: (compiled: Compiled, context: AnyContext) => A
): Effect.Effect<A, never, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.map(
      Effect.orDie(services?.build ?? Effect.succeed(Context.empty())),
      (provided) => {
        const made = (services === undefined ? context : Context.add(context, Provided, provided)) as AnyContext
        const around = environmentOf(made).services
        return make({ ...compiled, services: undefined, live: live && (() => live(around)) }, made)
      }
    )
  )
