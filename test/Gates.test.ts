import { assert, beforeAll, describe, it } from "@effect/vitest"
import { build, type BuildOptions, transform } from "esbuild"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { rolldown } from "rolldown"
import { counts } from "./bench/children.ts"
import type { Counts } from "./bench/counted.ts"
import * as effects from "./bench/effects.ts"
import * as gates from "./bench/gates.ts"
import { addedBy, type Bundle, bundleOf, type Sizes, sizes, tsconfigRaw } from "./bench/size.ts"
import { publicModules } from "./utils/modules.ts"

const execute = promisify(execFile)
const root = fileURLToPath(new URL("..", import.meta.url))

/** The modules of the library, from their sources. */
const sources = Object.fromEntries(publicModules.map(({ name, source }) => [name, `./${source}`]))

/** Bundles a program with the library, and runs it. */
const bundled = async <A>(
  program: Pick<BuildOptions, "entryPoints" | "stdin">,
  run: (file: string) => Promise<A>
): Promise<A> => {
  const directory = await mkdtemp(join(tmpdir(), "effect-retry-gates-"))
  try {
    const outfile = join(directory, "program.mjs")
    await build({
      ...program,
      absWorkingDir: root,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "es2022",
      outfile,
      logLevel: "silent",
      tsconfigRaw,
      alias: sources
    })
    return await run(outfile)
  } finally {
    await rm(directory, { recursive: true })
  }
}

/**
 * Counts in a process of its own, where nothing else allocates and nothing is collected: as many calls as the compiler
 * of Node 24 needs to be done.
 */
const counted = (): Promise<Counts> =>
  bundled({ entryPoints: [join(root, "test/bench/counted.ts")] }, (file) => counts(file, 5000))

describe("what a call costs, counted", () => {
  let found: Counts
  beforeAll(async () => {
    found = await counted()
  })

  const added = (of: "operations" | "bytes") => found.success[effects.ours]![of] - found.success[effects.bare]![of]

  it("adds at most 3.1 operations of the run loop to a success", () => {
    assert.isAtLeast(added("operations"), 2, "two hooks are the least: the count is wrong")
    assert.isAtMost(added("operations"), 3.1)
  })

  it("allocates at most 40 bytes more for a success", () => {
    assert.isAtMost(added("bytes"), 40)
  })

  it("takes at most 15.1 operations for two failures and a success", () => {
    assert.isAtLeast(found.twice[effects.ours]!.operations, found.twice[effects.floorName]!.operations)
    assert.isAtMost(found.twice[effects.ours]!.operations, 15.1)
  })

  it("allocates at most 3,600 bytes for two failures and a success", () => {
    assert.isAtLeast(found.twice[effects.ours]!.bytes, found.twice[effects.floorName]!.bytes)
    assert.isAtMost(found.twice[effects.ours]!.bytes, 3600)
  })

  it("sets up no schedule for a success: Effect.retry takes three times the operations", () => {
    assert.isAtLeast(found.success[effects.timesWhile]!.operations, 3 * found.success[effects.ours]!.operations)
    assert.isAtLeast(found.success[effects.timesWhile]!.bytes, 1000)
  })

  it("costs a policy under Effect.retry less than Effect.retry({ times, while }), on success and after failures", () => {
    for (const script of [found.success, found.twice, found.invalid]) {
      assert.isBelow(script[effects.plain]!.operations, script[effects.timesWhile]!.operations)
      assert.isBelow(script[effects.plain]!.bytes, script[effects.timesWhile]!.bytes)
    }
  })

  it("takes at most 9.1 operations and 3,100 bytes for a success under Effect.retry", () => {
    assert.isAtMost(found.success[effects.plain]!.operations, 9.1)
    assert.isAtMost(found.success[effects.plain]!.bytes, 3100)
  })

  it("takes at most 39.1 operations for two failures and a success under Effect.retry", () => {
    assert.isAtMost(found.twice[effects.plain]!.operations, 39.1)
  })

  const gated = (name: string) => found.gated[name]!

  it("adds two operations to a success with gates, however many: a frame, and what it passes on", () => {
    for (const name of [gates.oneGate, gates.allGates, ...gates.furtherGates.map((further) => further.name)]) {
      assert.isAtMost(gated(name).operations - found.success[effects.bare]!.operations, 2.1, name)
    }
  })

  it("allocates at most 720 bytes for a success with one gate", () => {
    assert.isAtMost(gated(gates.oneGate).bytes, 720)
  })

  it.each(gates.furtherGates)(
    "allocates at most $atMostBytes bytes more with a further gate: $gate",
    ({ atMostBytes, first, name }) => {
      assert.isAtMost(Math.round(gated(name).bytes - gated(first).bytes), atMostBytes)
    }
  )

  it("reads the clock at most once before and once after a send: 88 bytes each", () => {
    for (const name of gates.clockReads) assert.isAtMost(gated(name).bytes - gated(gates.oneGate).bytes, 90)
  })

  it("allocates at most 300 bytes for a failure that is not retryable", () => {
    assert.isAtMost(found.invalid[effects.ours]!.bytes, 300)
  })
})

describe("a program that uses no gate", () => {
  it("registers none for its attempts to look up", async () => {
    const program = `
      import * as library from "effect-retry"
      import { ConcurrencyLimiter } from "./src/gates/ConcurrencyLimiter.ts"
      const { gates } = globalThis[Symbol.for("effect-retry/shared/1")]
      const before = gates.length
      ConcurrencyLimiter.key
      console.log(JSON.stringify(["RetryQuota" in library, before, gates.map(({ tag }) => tag.key)]))
    `
    const stdin = { contents: program, resolveDir: root }
    const { stdout } = await bundled({ stdin }, (file) => execute(process.execPath, [file]))
    assert.deepStrictEqual(JSON.parse(stdout), [true, 0, ["effect-retry/ConcurrencyLimiter"]])
  })
})

describe("what awsStandard adds to an app that bundles Effect", () => {
  let found: Sizes
  let modules: ReadonlyArray<string>
  beforeAll(async () => {
    found = await sizes(root, sources)
    modules = Object.keys(found.with.modules)
  })

  // It was 16.9 before policies were exact under Effect's own loops: the file about these, with its probe, and the fallback are
  // 2.1; the Ref of the quota, a module of Effect, and the resizing of reservations 0.3; setting and restoring its tokens 0.2;
  // what errors show of their requests and causes, and all forms of Retry-After 0.5; errors of databases 0.3, bodies of language
  // models 0.3, guards around code of the user 0.2; what redirects, lost connections of databases, aborts and what only looks like
  // a Cause say 0.4; names that are forgotten while in use, and refused retries that keep the error of their call, 0.3.
  it("is at most 22.1 KiB, minified and compressed", () => {
    const added = addedBy(found.with, found)
    assert.isAbove(added, 1, "the library is not in the bundle")
    assert.isAtMost(added, 22.1)
  })

  // The default classifier is 6.2 of it: a bundler cannot see that the app has its own.
  it("is at most 18.7 KiB with a custom policy and classifier in its place, imported by module", () => {
    const own = Object.keys(found.withOwn.modules).filter((path) => path.startsWith("src/"))
    assert.deepStrictEqual(own.filter((path) => /^src\/(aws|index)/.test(path)), [])
    assert.isAtMost(addedBy(found.withOwn, found), 18.7)
  })

  it("is what docs/evidence/compared.md says, next to others", async () => {
    const page = await readFile(join(root, "docs/evidence/compared.md"), "utf8")
    const kibOf = (bytes: number) => `${Number((bytes / 1024).toPrecision(2))} KiB`
    const cockatiel = `import { ExponentialBackoff, handleAll, retry } from "cockatiel"
      export const policy = retry(handleAll, { maxAttempts: 2, backoff: new ExponentialBackoff() })`
    const cells = [
      "Size, minified and compressed",
      `${kibOf(found.with.bytes - found.without.bytes)} on top of Effect, with \`awsStandard\``,
      "part of Effect",
      "part of the SDK",
      kibOf((await bundleOf(cockatiel, root)).bytes),
      kibOf((await bundleOf(`export { default } from "p-retry"`, root)).bytes)
    ]
    assert.include(page, `| ${cells.join(" | ")} |`)
  })

  it("contains nothing from adapters, other modes, simulation or testing", () => {
    const own = modules.filter((path) => path.startsWith("src/"))
    assert.include(own, "src/Attempt.ts")
    assert.deepStrictEqual(own.filter((path) => path.startsWith("src/aws/")), ["src/aws/AwsModes.ts"])
    const rooms = /^(src\/(breaker|http|grpc|importers|json|llm|redis|schemas|testing|workflow)|lab)\//
    assert.deepStrictEqual(own.filter((path) => rooms.test(path)), [])
  })

  it("contains nothing from modules that the index does not export", async () => {
    const { exports } = JSON.parse(await readFile(join(root, "package.json"), "utf8"))
    const index = await readFile(join(root, "src/index.ts"), "utf8")
    const opted = Object.values<string>(exports)
      .map((file) => file.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts"))
      .filter((file) =>
        file.startsWith("src/") && file !== "src/index.ts" && !index.includes(file.replace("src/", "./"))
      )
    assert.include(opted, "src/gates/TokenLimiter.ts")
    assert.deepStrictEqual(opted.filter((file) => modules.includes(file)), [])
  })

  it("contains nothing from other packages, and no HTTP, persistence or schemas from Effect", () => {
    const others = modules.filter((path) => path.includes("node_modules/") && !path.includes("node_modules/effect/"))
    assert.deepStrictEqual(others, [])
    const before = new Set(Object.keys(found.without.modules))
    const heavy = modules.filter((path) =>
      !before.has(path) && /effect\/dist\/(http|persistence|workflow|cluster|unstable|Schema)/.test(path)
    )
    assert.deepStrictEqual(heavy, [])
  })
})

describe("retryFetch, as the whole of a program", () => {
  const program = `import { retryFetch } from "effect-retry/fetch"
    export const fetch = retryFetch()`
  let found: Bundle
  beforeAll(async () => {
    found = await bundleOf(program, root, sources)
  })

  it("is as large as docs/evidence/performance.md says, Effect included, next to p-retry", async () => {
    const page = await readFile(join(root, "docs/evidence/performance.md"), "utf8")
    const peer = await bundleOf(`export { default } from "p-retry"`, root)
    const [own, other] = [found.bytes / 1024, (peer.bytes / 1024).toFixed(1)]
    const [, limit] = /^\| `retryFetch\(\)` .* p-retry is (?:[\d.]+) \| ([\d.]+) \|$/m.exec(page) ?? []
    assert.include(page, `p-retry is ${other} |`)
    assert.isAtMost(own, Number(limit))
    assert.isAbove(own, Number(limit) - 2)
  })

  it("contains nothing of Node, of Effect's HTTP, of schemas, or of other packages", () => {
    const modules = Object.keys(found.modules)
    assert.deepStrictEqual(modules.filter((path) => !/^(?:src|node_modules\/effect)\//.test(path)), ["<stdin>"])
    assert.deepStrictEqual(
      modules.filter((path) => /effect\/dist\/(http|persistence|workflow|unstable|Schema)/.test(path)),
      []
    )
  })
})

it("a program with a document bundles nothing of Redis unless it shares a section", async () => {
  const modules = async (files: ReadonlyArray<string>) => {
    const { metafile } = await build({
      stdin: {
        contents: files.map((file, index) => `export * as module${index} from "./src/${file}"`).join("\n"),
        resolveDir: root
      },
      absWorkingDir: root,
      bundle: true,
      format: "esm",
      platform: "node",
      write: false,
      metafile: true,
      logLevel: "silent",
      tsconfigRaw: "{}"
    })
    return Object.keys(metafile.inputs).filter((path) => /^src\/redis\/|effect\/dist\/persistence\/Redis/.test(path))
  }
  assert.deepStrictEqual(await modules(["config/RetryConfig.ts", "config/RetryConfigSchema.ts"]), [])
  assert.isAbove((await modules(["config/RetryConfig.ts", "redis/RetryConfigRedis.ts"])).length, 5)
})

describe("a part of a module, without the rest of it", () => {
  const require = createRequire(import.meta.url)
  const babel = require("@babel/core")
  const options = { babelrc: false, configFile: false, plugins: [require("babel-plugin-annotate-pure-calls")] }

  /** Marks calls at the top of a file as pure, as the build does. */
  const annotated = {
    name: "annotated",
    load: async (path: string) => {
      if (!/\/src\/.*\.ts$/.test(path)) return undefined
      const { code } = await transform(await readFile(path, "utf8"), { loader: "ts", tsconfigRaw, target: "es2022" })
      return { code: babel.transformSync(code, options).code, moduleType: "js" } as const
    }
  }

  it.each([
    { name: "hostOf", file: "http/RetryHttp", atMostBytes: 700 },
    { name: "set", file: "config/RetryConfig", atMostBytes: 2000 }
  ])("is small: $name of $file", async ({ atMostBytes, file, name }) => {
    const program = {
      name: "program",
      resolveId: (id: string) => id === "program" ? id : undefined,
      load: (id: string) => id === "program" ? `export { ${name} } from "${root}src/${file}.ts"` : undefined
    }
    const bundle = await rolldown({ input: "program", external: /^effect\//, plugins: [program, annotated] })
    const { output: [{ code }] } = await bundle.generate({ minify: true })
    await bundle.close()
    assert.isAtMost(code.length, atMostBytes, code.slice(0, 1000))
  })
})
