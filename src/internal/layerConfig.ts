import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type { InvalidOption } from "../InvalidOption.ts"
import { isObject } from "./invalidField.ts"

/**
 * Like `Config.unwrap`, without importing `Config`, which loads all of `Schema`: a user of configuration has already
 * loaded it.
 */
const unwrapped = <A>(wrapped: Config.Wrap<A>): Effect.Effect<A, Config.ConfigError> => {
  if (Effect.isEffect(wrapped)) return wrapped as Config.Config<A>
  // The constructor rejects it.
  if (!isObject(wrapped)) return Effect.succeed(wrapped as A)
  const fields = Object.entries<Config.Wrap<unknown>>(wrapped as {}).map(([name, field]) => [name, unwrapped(field)])
  return Effect.all(Object.fromEntries(fields)) as any
}

/** Makes something from options that come from configuration. An exception of its constructor becomes a typed error. */
export const configured = <Options, A, R>(
  options: Config.Wrap<Options>,
  make: (options: Options) => Effect.Effect<A, never, R>
): Effect.Effect<A, Config.ConfigError | InvalidOption, R> =>
  Effect.flatMap(
    unwrapped(options),
    (read) => Effect.flatten(Effect.try({ try: () => make(read), catch: (error) => error as InvalidOption }))
  )
