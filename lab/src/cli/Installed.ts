import * as Context from "effect/Context"

/** The package that runs. */
export class Installed extends Context.Service<Installed, {
  readonly version: string
  /** Where it lies: the folder of its `package.json`. */
  readonly folder: string
}>()("@effect-retry/lab/cli/Installed") {}
