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
import { accountOf } from "./utils/account.ts"
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
    assert.deepStrictEqual(
      errors.filter((error) => !/^(?:(?:policies|right|wrong)\/\d+|forgotten|mistakes)\.ts\(/.test(error)),
      []
    )
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
    "Effect.retry(call, Backoff.fixed(1).pipe(RetryPolicy.quotaGated({ cost: 5 })))",
    "Effect.retry(call, Backoff.fixed(1).pipe(RetryPolicy.honorRetryAfter))",
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

const words = `
import { AdaptiveRateLimiter, awsAdaptive, awsStandard, awsStandard2026, Backoff, httpStandard } from "effect-retry"
import { ResourceLimiters, RetryPolicy, RetryQuota, SendGate, withRetry } from "effect-retry"
import * as Operations from "effect-retry/aws/Operations"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as RetryLanguageModel from "effect-retry/RetryLanguageModel"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
type Failure<E> = RetryPolicy.Failure<E>
class Transient extends Data.TaggedError("Transient") {}
type Call = Effect.Effect<string, Transient>
`

describe("what somebody writes who has read one sentence", () => {
  const half = "0 500 1500; 95"
  const rows: ReadonlyArray<readonly [code: string, account: string]> = [
    [
      `Effect.retry(call, Schedule.exponential("100 millis").pipe(RetryPolicy.jittered, RetryPolicy.capped("5 seconds"), RetryPolicy.quotaGated))`,
      "0 50 150; 95"
    ],
    [`Effect.retry(call, awsStandard)`, half],
    [`call.pipe(Effect.retry(awsStandard))`, half],
    [`Effect.retry(call, { schedule: awsStandard, while: (e) => e._tag === "Transient" })`, half],
    [`Effect.retry(call, { schedule: awsStandard, times: 1 })`, "0 500; 95"],
    [`Effect.retry(call, Schedule.max([awsStandard, Schedule.recurs(5)]))`, half],
    [`Effect.retry(call, Schedule.min([awsStandard, Schedule.recurs(1)]))`, "0 0 1000; 95"],
    [`Effect.retry(call, RetryPolicy.max([awsStandard, Schedule.recurs(1)]))`, "0 500; 95"],
    [`withRetry(call, RetryPolicy.max([awsStandard, Schedule.spaced("2 seconds")]))`, "0 2000 4000; 95"],
    [`Effect.retry(call, awsStandard.pipe(Schedule.upTo({ duration: "30 seconds" })))`, half],
    [
      `Effect.retry(call, awsStandard.pipe(Schedule.upTo({ times: 2 }), RetryPolicy.capped("700 millis")))`,
      "0 500 1200; 95"
    ],
    [`Effect.retryOrElse(call, awsStandard, (error, out) => Effect.succeed(error._tag + out._tag))`, half],
    [`Effect.retry(call, awsStandard).pipe(Effect.provide(RetryQuota.layer({ capacity: 500 })))`, "0 500 1500; 100"],
    [
      `Effect.retry(call, awsAdaptive).pipe(Effect.provide(ResourceLimiters.get("s3")), Effect.provide(ResourceLimiters.layer()))`,
      "0 500 1500; 100"
    ],
    [
      `Effect.retry(call, awsStandard.pipe(RetryPolicy.maxAttempts(2), RetryPolicy.concat(Schedule.spaced("1 minute"))))`,
      "0 500 60500; 95"
    ],
    [
      `Effect.retry(call, awsStandard.pipe(Schedule.jittered, Schedule.tap(({ input }) => Effect.logDebug(input))))`,
      half
    ],
    [
      `Effect.forkChild(Effect.retry(call, awsStandard)).pipe(Effect.tap(TestClock.adjust("3 seconds")), Effect.flatMap(Fiber.join))`,
      half
    ],
    [
      `Effect.retry(call, awsStandard.pipe(RetryPolicy.while(({ error }: Failure<Transient>) => error._tag === "Transient")))`,
      half
    ],
    [`Effect.retry(call, RetryPolicy.choose(({ attempt }) => attempt < 3 ? awsStandard : RetryPolicy.never))`, half],
    [`Effect.retry(call, awsStandard.pipe(RetryPolicy.withMaxAttempts(2)))`, "0 500; 95"],
    [`Effect.retry(call, RetryPolicy.capped(Schedule.exponential("100 millis"), "5 seconds"))`, "0 100 300; 100"],
    [
      `withRetry(call, awsStandard.pipe(RetryPolicy.requires(ConcurrencyLimiter.ConcurrencyLimiter))).pipe(
        Effect.catchTag("ConcurrencyLimitExceeded", () => Effect.void), Effect.provide(ConcurrencyLimiter.layer()))`,
      half
    ]
  ]
  const lines = rows.map(([code], index) => `export const line${index} = (call: Call) => ${code}`)
  const file = write("lines.ts", [words, ...lines].join("\n"))

  it.effect.each(rows.map((row, index) => [index, ...row] as const))(
    "%s: %s",
    ([index, , account]) =>
      Effect.gen(function*() {
        const { balance, sentAt } = yield* accountOf((yield* Effect.promise(() => import(file)))[`line${index}`], 2)
        assert.strictEqual(`${sentAt.join(" ")}; ${balance}`, account)
      })
  )

  const text = "Effect.fail(\"text\")"
  const wrong: ReadonlyArray<readonly [code: string, says: string]> = [
    [`const a1: Call = Effect.retry(call, awsStandard)`, "RetryQuota"],
    [`Effect.runPromise(withRetry(call, awsStandard))`, "RetryQuota"],
    [`Effect.runPromise(withRetry(call, awsAdaptive).pipe(Effect.provide(RetryQuota.layer())))`, "AdaptiveRateLimiter"],
    [
      `const a2: Effect.Effect<never, never, RetryQuota.RetryQuota> = Effect.retry(Effect.fail(undefined), awsStandard)`,
      "undefined"
    ],
    [`awsStandard({ maxAttempts: 5 })`, "not callable"],
    [`withRetry(awsStandard, { maxAttempts: 5 })`, "'Effect<unknown, unknown, unknown>'"],
    [`RetryQuota.layer(500)`, "500"],
    [`withRetry(call, awsStandard).pipe(Effect.provide(RetryQuota))`, "RetryQuota"],
    [`withRetry(call, awsStandard).pipe(Effect.provide(RetryQuota.layer))`, "Layer<RetryQuota>"],
    [`withRetry(call, awsStandard).pipe(Effect.catchTag("RateLimitExceeded", () => Effect.void))`, "RateLimitExceeded"],
    [`awsStandard.pipe(RetryPolicy.jittered("half"))`, "half"],
    [`awsStandard.pipe(RetryPolicy.capped)`, "RetryPolicy"],
    [`awsStandard.pipe(RetryPolicy.quotaGated({ costs: 5 }))`, "costs"],
    [`awsStandard.pipe(RetryPolicy.quotaGated({ cost: 5, tiemoutCost: 5 }))`, "tiemoutCost"],
    [`RetryPolicy.quotaGated(awsStandard, { cost: 5, tiemoutCost: 5 })`, "tiemoutCost"],
    [`awsStandard.pipe(RetryPolicy.maxAttempts("5"))`, "number"],
    [`RetryPolicy.max(awsStandard, Schedule.recurs(5))`, "Expected 1 argument"],
    [`RetryPolicy.max([awsStandard, 5])`, "number"],
    [`RetryPolicy.concat(awsStandard, "1 minute")`, "string"],
    [`awsStandard.pipe(RetryPolicy.while((failure) => failure.error.busy))`, "unknown"],
    [`awsStandard.pipe(RetryPolicy.while((failure: Failure<Transient>) => failure.error.busy))`, "busy"],
    [
      `Effect.retry(${text}, awsStandard.pipe(RetryPolicy.while((failure: Failure<Transient>) => failure.attempt < 2)))`,
      "Transient"
    ],
    [
      `Effect.retry(call, RetryPolicy.min([awsStandard, RetryPolicy.fromDelay((failure: Failure<{ wait: number }>) => failure.error.wait)]))`,
      "wait"
    ],
    [
      `Effect.retry(call, Backoff.fixed(1).pipe(RetryPolicy.mapDelay((_, failure: Failure<{ wait: number }>) => failure.error.wait)))`,
      "wait"
    ],
    [
      `Effect.retry(call, RetryPolicy.choose((failure: Failure<{ busy: boolean }>) => failure.error.busy ? awsStandard : RetryPolicy.never))`,
      "busy"
    ],
    [`awsStandard.pipe(RetryPolicy.requires(RetryQuota.RetryQuota))`, "'Gated'"],
    [`const h1: never = awsStandard`, "'RetryPolicy<unknown, never, RetryQuota>'"],
    [`const h2: never = awsAdaptive`, "'RetryPolicy<unknown, RateLimitExceeded, AdaptiveRateLimiter | RetryQuota>'"],
    [
      `const h3: never = Schedule.exponential(1).pipe(RetryPolicy.jittered, RetryPolicy.quotaGated)`,
      "'RetryPolicy<unknown, never, RetryQuota>'"
    ],
    [
      `const h4: never = RetryPolicy.max([awsStandard, Schedule.recurs(5)])`,
      "'RetryPolicy<unknown, never, RetryQuota>'"
    ],
    ...["awsStandard2026", "httpStandard"].map((name, index) =>
      [`const h${index + 5}: never = ${name}`, "'RetryPolicy<unknown, never, RetryQuota>'"] as const
    ),
    [`const h7: never = RetryQuota.layer()`, "'Layer<RetryQuota, never, never>'"],
    [
      `const h8: never = RetryDriver.make`,
      "<R>(policy: RetryPolicy<unknown, unknown, R>)"
    ],
    [
      `const h9: never = Operations.forOperation`,
      "'(operation: Operation) => RetryPolicy<unknown, never, RetryQuota>'"
    ],
    [
      `const h10: never = RetryLanguageModel.withRetry`,
      "(policy: RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>,"
    ],
    [
      `Effect.runPromise(withRetry(call, awsStandard.pipe(RetryPolicy.requires(ConcurrencyLimiter.ConcurrencyLimiter))).pipe(Effect.provide(RetryQuota.layer())))`,
      "ConcurrencyLimiter"
    ],
    [
      `const a3: Effect.Effect<string, Transient, RetryQuota.RetryQuota> = withRetry(call, awsStandard.pipe(RetryPolicy.requires(ConcurrencyLimiter.ConcurrencyLimiter))).pipe(Effect.provide(ConcurrencyLimiter.layer()))`,
      "ConcurrencyLimitExceeded"
    ]
  ]
  const head = `${words}declare const call: Call\n`.split("\n")
  write("mistakes.ts", [...head, ...wrong.map(([code]) => code)].join("\n"))

  it.each(wrong.map((row, index) => [...row, index] as const))(
    "%s does not compile, and the message has %s",
    (_, says, index) => {
      const place = `mistakes.ts(${head.length + index + 1},`
      assert.include(errors.find((error) => error.startsWith(place)) ?? "", says)
    }
  )
})

describe("docs/not-retried.md: what you wrote, and what to write", () => {
  const page = fs.readFileSync(path.join(root, "docs/not-retried.md"), "utf8")
  const [, table] = page.split("| what you wrote | the compiler says | what to write |\n")
  const rows = Array.from(
    table!.split("\n\n")[0]!.matchAll(/^\| `(.+)` \| (?:`(.+)`|([^`|]+)) \| `(.+)` \|$/gm),
    ([, wrote, says, nothing, write]) => ({ wrote: wrote!, says: says ?? "", nothing, write: write! })
  )
  const lineOf = (code: string): string => /^(?:import|const) /.test(code) ? code : `export const _ = () => ${code}`
  const head = `
import { AdaptiveRateLimiter, awsStandard, Backoff, ConcurrencyLimiter, retryPromise } from "effect-retry"
import { RetryPolicy, RetryQuota, SendGate, withRetry, withRetryOrElse } from "effect-retry"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
class Transient extends Data.TaggedError("Transient") {}
interface Busy { readonly busy: boolean }
declare const call: Effect.Effect<string, Transient>
declare const url: string
declare const fetch: (url: string) => Promise<string>
declare const log: (line: string) => Effect.Effect<void>
declare const fallback: () => Effect.Effect<void>
`
  // A file each: a broken import would be an error of all others.
  const places = rows.map(({ write: right, wrote }, index) => {
    write(`wrong/${index}.ts`, head + lineOf(wrote))
    write(`right/${index}.ts`, head + lineOf(right))
    return (kind: string) => errors.filter((error) => error.startsWith(`${kind}/${index}.ts(`))
  })

  it("has a row for each mistake", () => {
    assert.isAtLeast(rows.length, 30)
    assert.strictEqual(rows.length, table!.split("\n\n")[0]!.split("\n").length - 1)
  })

  it.each(rows.map((row, index) => [row.wrote, row, index] as const))("%s", (_, { nothing, says }, index) => {
    const found = places[index]!("wrong")
    if (nothing === undefined) assert.include(found.join("\n"), says)
    else assert.deepStrictEqual(found, [])
    assert.deepStrictEqual(places[index]!("right"), [])
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
