/** Code that only the compiler judges: one run of it for all, and one that writes the published declarations. */
import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as testing from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll } from "vitest"
import { policyOf } from "../lab/playground/policy.ts"
import { codeOf } from "../lab/src/policyCode.ts"
import { everyChoice } from "../lab/test/playground/choices.ts"
import { retrying } from "../lab/test/utils/simulate.ts"
import { type Example, examples, moduleOf } from "./utils/docExamples.ts"
import * as world from "./utils/exampleWorld.ts"
import { publicModules } from "./utils/modules.ts"

const root = fileURLToPath(new URL("../", import.meta.url))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "compiled-"))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/** Writes a file into the folder, and returns its path. */
const write = (name: string, text: string): string => {
  const file = path.join(folder, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
  return file
}

fs.symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"))
write("package.json", `{ "type": "module" }`)
write(
  "tsconfig.json",
  JSON.stringify({
    extends: path.join(root, "tsconfig.json"),
    compilerOptions: { allowImportingTsExtensions: true, rewriteRelativeImportExtensions: false },
    include: ["."]
  })
)

/** What the compiler prints. Nothing of so short a run is worth collecting. */
const compiled = (...options: ReadonlyArray<string>): string =>
  spawnSync(
    process.execPath,
    [path.join(root, "node_modules/typescript/bin/tsc"), "--pretty", "false", "--singleThreaded", ...options],
    { cwd: folder, encoding: "utf8", env: { ...process.env, GOGC: "off" } }
  ).stdout

/** Errors of the files in the folder, each of which begins with the path of its file. */
let errors: ReadonlyArray<string>
beforeAll(() => {
  errors = compiled().split(/^(?=\S)/m).filter((error) => error !== "")
})

/** Runs what an example exports, if it can be run. */
const run = (value: unknown): Effect.Effect<unknown, unknown, any> => {
  if (typeof value === "function") return Effect.void
  if (Effect.isEffect(value)) return testing.runToEnd(value)
  if (Layer.isLayer(value)) return Effect.scoped(Layer.build(value as Layer.Layer<unknown, unknown, unknown>))
  return value instanceof Promise ? Effect.promise(() => value) : Effect.void
}

describe("the examples in doc comments", () => {
  const written = new Map(examples.map((example): [Example, string] => [
    example,
    write(`examples/${example.file.replace(/ts$/, `${example.line}.ts`)}`, moduleOf(example))
  ]))

  it("have a title", () => {
    assert.deepStrictEqual(examples.filter(({ title }) => title === ""), [])
    assert.isAtLeast(examples.length, 40)
  })

  it("compile, and so does what they import", () => {
    assert.deepStrictEqual(errors.filter((error) => !/^policies\/\d+\.ts\(/.test(error)), [])
  })

  for (const [example, file] of written) {
    describe(`${example.file}:${example.line}`, async () => {
      const [module, error] = await import(file).then((module) => [module], (error) => [{}, error])
      it.effect(`runs: ${example.title}`, () =>
        Effect.gen(function*() {
          if (error !== undefined) throw error
          for (const value of Object.values(module)) yield* run(value)
        }).pipe(Effect.provide(world.services)))
    })
  }
})

describe("the code of a policy", () => {
  const decoded = (policy: object) => Effect.runSync(Simulator.decodePolicy({ ...retrying(), ...policy }))
  const settings = decoded({
    ...retrying({ cost: 5, quota: { capacity: 40 }, coolDown: { maxWait: "1s" }, throttle: {} }),
    label: "*/ own"
  })
  const hedging = decoded({ hedge: { quantile: 0.99, first: "1s", atMost: 2, share: 0.1, shareWindow: "20s" } })
  const others = [{ after: "200ms" }, { first: "1s" }, { share: 0.01 }].map((hedge) => decoded({ hedge }))
  const policies = [...Simulator.policies, settings, hedging, ...others]
  const codes = [...new Set([...policies, ...everyChoice.map(policyOf)].map(codeOf))]
  const files = codes.map((code, n) => write(`policies/${n}.ts`, code))

  it("compiles: of every name, of settings, and of whatever the playground lets choose", () => {
    assert.isAbove(codes.length, policies.length)
    assert.deepStrictEqual(errors.filter((error) => error.startsWith("policies/")), [])
  })

  it("is the policy: of every name, and of settings", async () => {
    for (const policy of policies) {
      const code = codeOf(policy)
      const made = await import(files[codes.indexOf(code)]!)
      assert.isTrue(RetryPolicy.isRetryPolicy(made.policy))
      if (policy !== "none") assert.include(code.replaceAll(/\s/g, ""), String(made.policy).replaceAll(/\s/g, ""))
      assert.strictEqual("layer" in made, /\.layer(Store)?\(/.test(code))
    }
  })

  it("has a layer for each setting, and says what the library lacks", () => {
    assert.include(codeOf(settings), `CoolDown.layer({ maxWait: 1000 })`)
    assert.include(codeOf("awsAdaptive"), "RetryQuota.layer(),\n  AdaptiveRateLimiter.layer()")
    assert.include(codeOf("finagle"), "RetryBudget.share(")
    assert.include(codeOf("tokenBucket"), `// Not in the library, so not in this code: the budget "bucket".`)
    assert.include(codeOf("limited"), "ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.adaptive() })")
    assert.include(codeOf(hedging), `Hedge.layer({ share: 0.1, shareWindow: 20000 })`)
    assert.include(
      codeOf(hedging),
      `withRetry(Hedge.hedged(call, { atMost: 2, after: Hedge.quantile(0.99, { first: 1000 }) }), policy)`
    )
    const adaptive = decoded({ concurrency: { initial: 5, maxWait: "1s" } })
    assert.include(codeOf(adaptive), `rule: ConcurrencyLimiter.adaptive({ initial: 5 }), maxWait: "1s" }`)
  })
})

describe("a policy is a schedule for the compiler", () => {
  const lines = [
    "Effect.retry(call, awsStandard)",
    "call.pipe(Effect.retry(awsStandard))",
    "Effect.retry(call, awsAdaptive)",
    "Effect.retry(attempt(call), awsStandard)",
    "Effect.retry(call, Backoff.fixed({ delay: 1 }).pipe(RetryPolicy.quotaGated({ cost: 5 })))",
    "Effect.retry(call, Backoff.fixed({ delay: 1 }).pipe(RetryPolicy.honorRetryAfter))",
    "Effect.retry(Effect.fail(\"text\"), awsStandard)",
    "Effect.retry(call, { schedule: awsStandard, times: 2 })",
    "Effect.retry(call, Schedule.max([awsStandard, Schedule.recurs(5)]))",
    "Effect.retryOrElse(call, awsStandard, () => Effect.void)",
    "Stream.fromEffect(call).pipe(Stream.retry(awsStandard))",
    "withRetry(call, awsStandard)"
  ]
  const declared = `
import { attempt, awsAdaptive, awsStandard, RetryPolicy, Backoff, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"

class NotFound { readonly _tag = "NotFound" }
declare const call: Effect.Effect<number, NotFound>
`.split("\n")
  write("plain.ts", [...declared, ...lines].join("\n"))

  lines.forEach((line, at) => {
    it(line, () => {
      const place = `plain.ts(${declared.length + at + 1},`
      assert.deepStrictEqual(errors.filter((error) => error.startsWith(place)), [])
    })
  })
})

describe("the published declarations", () => {
  /** The comment that a file begins with. */
  const moduleComment = (file: string): string | undefined =>
    /^\/\*\*\n(?: \*.*\n)*? \*\/\n/.exec(fs.readFileSync(file, "utf8"))?.[0]

  it("begin with the comment of their module", () => {
    const [library, lab] = [".config", "lab"].map((home) => path.join(root, home, "tsconfig.build.json"))
    const { files } = JSON.parse(fs.readFileSync(lab!, "utf8"))
    const project = write(
      "declarations.json",
      JSON.stringify({
        extends: [library, lab],
        compilerOptions: { rootDir: root, outDir: path.join(folder, "declarations") },
        include: [path.join(root, "src")],
        files: files.map((file: string) => path.join(root, "lab", file))
      })
    )
    assert.strictEqual(compiled("-p", project, "--noCheck"), "")
    const without = publicModules.filter(({ source }) => moduleComment(path.join(root, source)) === undefined)
    // An import that no declaration uses is left out, with its comments. A comment before an empty line is not the import's.
    const lost = publicModules.filter(({ source }) =>
      moduleComment(path.join(root, source)) !==
        moduleComment(path.join(folder, "declarations", source.replace(/\.ts$/, ".d.ts")))
    )
    assert.deepStrictEqual({ without, lost }, { without: [], lost: [] })
    assert.isAbove(publicModules.length, 30)
  })
})
