/** What the library adds to a bundle: bytes, and which modules are in it. */
import { build } from "esbuild"
import { gzipSync } from "node:zlib"

/** An app, with the whole of Effect in its bundle as the import by name from "effect" leaves it. */
const app = `
import { Context, Effect, Layer } from "effect"

class Orders extends Context.Service()("Orders") {}
const layer = Layer.effect(Orders, Effect.sync(() => ({ get: (id) => Effect.succeed(id) })))
const get = (id) => Effect.gen(function*() {
  const orders = yield* Orders
  return yield* orders.get(id)
})
`

const run = (call: string, layers: string) => `
Effect.runPromise(${call}.pipe(Effect.provide(${layers}))).then(console.log)
`

const without = app + run("get(1)", "layer")

const withStandard = `import { awsStandard, RetryQuota, withRetry } from "effect-retry"\n` + app +
  run("withRetry(get(1), awsStandard)", "Layer.merge(layer, RetryQuota.layer())")

/** The library as its own build compiles it: class fields are assignments. */
export const tsconfigRaw = { compilerOptions: { useDefineForClassFields: false } } as const

const withOwn = `import { withRetry } from "effect-retry/Attempt"
import * as Backoff from "effect-retry/Backoff"
import * as RetryClassifier from "effect-retry/RetryClassifier"
import * as RetryInfo from "effect-retry/RetryInfo"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as Option from "effect/Option"
` + app + `
const policy = Backoff.exponential("100 millis", 2, { jitter: "full" }).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable
)
const classifier = (error) => error === "busy" ? Option.some(RetryInfo.transient) : Option.none()
` + run("withRetry(get(1), policy)", "Layer.merge(layer, RetryClassifier.layer(classifier))")

export interface Bundle {
  /** Minified and compressed. */
  readonly bytes: number
  /** Paths of the modules that left something in the bundle, and how much before it was compressed. */
  readonly modules: Readonly<Record<string, number>>
}

/** Where the modules of the package are, by name. */
type Sources = { readonly [name: string]: string }

/** The bundle of a program. The package is what was built, or the sources that are given. */
export const bundleOf = async (contents: string, root: string, sources: Sources = {}): Promise<Bundle> => {
  const { metafile, outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: "js" },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "node",
    target: "es2022",
    write: false,
    metafile: true,
    logLevel: "silent",
    tsconfigRaw,
    alias: sources
  })
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs))
  const modules = inputs.map(([path, { bytesInOutput }]) => [path, bytesInOutput] as const)
  return {
    bytes: gzipSync(outputFiles[0]!.contents, { level: 9 }).length,
    modules: Object.fromEntries(modules.filter(([, bytes]) => bytes > 0))
  }
}

/**
 * The app without the library, the same app with `awsStandard`, and with a policy and a classifier of its own, imported
 * by module.
 */
export interface Sizes {
  readonly without: Bundle
  readonly with: Bundle
  readonly withOwn: Bundle
}

export const sizes = async (root: string, sources?: Sources): Promise<Sizes> => ({
  without: await bundleOf(without, root, sources),
  with: await bundleOf(withStandard, root, sources),
  withOwn: await bundleOf(withOwn, root, sources)
})

/** KiB that the library adds to the app. */
export const addedBy = (bundle: Bundle, { without }: Sizes): number => (bundle.bytes - without.bytes) / 1024

/** The modules of other packages that the built package imports. */
export const importsOf = async (root: string): Promise<ReadonlyArray<string>> => {
  const { metafile } = await build({
    stdin: { contents: `export * from "effect-retry"`, resolveDir: root, loader: "js" },
    absWorkingDir: root,
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
    metafile: true,
    treeShaking: false,
    external: ["effect/*"],
    tsconfigRaw
  })
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
  return [...new Set(imports.filter(({ external }) => external).map(({ path }) => path))].sort()
}
