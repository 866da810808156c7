/** "Your first gate in ten minutes" of docs/maintaining.md: its steps, made in a copy of the repository. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (file: string) => fs.readFileSync(path.join(root, file), "utf8")

const [, section] = read("docs/maintaining.md").split("\n## Your first gate in ten minutes\n")

/** The files that the steps name first, in their order. */
const named = Array.from(section!.split("\n## ")[0]!.matchAll(/^\d\. `(.+?)`/gm), ([, file]) => file!)

/** The tests that the page says to run. */
const [, tests] = /^npx vitest run (.+)$/m.exec(section!)!

/** The gate of the example, on the sources: its class, its error and its options, up to the service. */
const gate = () => {
  const [, code] = /^import [^]*?program\.ts"\n([^]*?)\/\*\* The service of the gate/m.exec(
    read("examples/own-gate.ts")
  )!
  return `/** A maximum number of sends at the same time. */

import { Data, Effect, Layer } from "effect"
import { checksOf } from "../internal/checks.ts"
import { count, validOptions } from "../internal/options.ts"
import * as SendGate from "../SendGate.ts"
${code}
const bulkheadOptions = { sends: count(1), waiting: count(0) }

/** Makes a bulkhead. */
export const make = (options: Options): Effect.Effect<SendGate.SendGate<BulkheadFull>> => {
  const valid = validOptions(checksOf("Bulkhead.make", options), bulkheadOptions, options)
  return Effect.sync(() => new Gate(valid))
}

/** The bulkhead of a resource. */
export class Bulkhead extends SendGate.Service<Bulkhead, BulkheadFull>()("effect-retry/Bulkhead") {}

/** A layer with its own bulkhead. */
export const layer = (options: Options): Layer.Layer<Bulkhead> => Layer.effect(Bulkhead, make(options))
`.replace("export class Bulkhead implements", "class Gate implements")
}

const imported = `import * as Bulkhead from "effect-retry/${"Bulkhead"}"\n`

const ownTest = `import { describe, it } from "@effect/vitest"
import { attempt } from "effect-retry"
${imported}import { SendGateSuite, sweep } from "effect-retry/testing"
import * as Effect from "effect/Effect"
import { thinned } from "../utils/sweep.ts"

describe("the contract", () => {
  for (const { name, run } of SendGateSuite.laws(Bulkhead.make({ sends: 3, waiting: 10 }))) {
    it.effect(name, () => thinned(5)(run))
  }
})

it.effect("whatever interrupts it, a call leaves its place free", () =>
  sweep(
    Effect.provide(attempt(Effect.sleep(10)), Bulkhead.layer({ sends: 1, waiting: 1 })),
    () => Effect.void
  ))
`

const after = (text: string, anchor: string, added: string): string => {
  assert.include(text, anchor)
  return text.replace(anchor, () => anchor + added)
}

/** What a stranger writes in each file. */
const steps: Readonly<Record<string, (text: string) => string>> = {
  "src/gates/Bulkhead.ts": gate,
  "package.json": (text) => after(text, `  "exports": {\n`, `    "./Bulkhead": "./dist/gates/Bulkhead.js",\n`),
  "test/gates/Bulkhead.test.ts": () => ownTest,
  "test/core/OptionNames.test.ts": (text) =>
    after(
      after(text, `import * as AwsSdk from "effect-retry/AwsSdk"\n`, imported),
      `const rows: ReadonlyArray<Row> = [\n`,
      `  row<Bulkhead.Options>("Bulkhead.make", Bulkhead.make, { sends: 1, waiting: 0 }),\n`
    ),
  "src/config/schemas.ts": (text) =>
    `${text.replace(`import * as ClientThrottle`, `import * as Bulkhead from "../gates/Bulkhead.ts"\n$&`)}
/** BulkheadFull of effect-retry/Bulkhead. */
export const BulkheadFull = errorOf(Bulkhead.BulkheadFull, { sends: Schema.Number })
`,
  "test/config/errors.test.ts": (text) =>
    after(
      after(
        text,
        `import * as AwsSdk from "effect-retry/AwsSdk"\n`,
        imported
      ),
      "const samples: { readonly [Name in keyof typeof Schemas]: ReadonlyArray<Error> } = {\n",
      "  BulkheadFull: [new Bulkhead.BulkheadFull({ sends: 1 })],\n"
    ),
  "docs/modules.md": (text) => after(text, "| --- | --- |\n", "| * `Bulkhead` | a maximum of sends |\n"),
  "test/snapshots/exports.txt": (text) => text
}

describe("your first gate", () => {
  let copy = ""
  beforeAll(() => {
    copy = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
    const left = new Set([".git", "node_modules", "coverage", "dist"])
    fs.cpSync(root, copy, { recursive: true, filter: (name) => !left.has(path.basename(name)) })
    fs.symlinkSync(path.join(root, "node_modules"), path.join(copy, "node_modules"))
    fs.mkdirSync(path.join(copy, "lab/node_modules"), { recursive: true })
  })
  afterAll(() => fs.rmSync(copy, { recursive: true }))

  const make = (file: string) => {
    const target = path.join(copy, file)
    fs.writeFileSync(target, steps[file]!(fs.existsSync(target) ? fs.readFileSync(target, "utf8") : ""))
  }

  const run = (...more: ReadonlyArray<string>) => {
    const { status, stderr, stdout } = spawnSync("npx", ["vitest", "run", ...tests!.split(" "), ...more], {
      cwd: copy,
      encoding: "utf8",
      env: { ...process.env, CI: "true", NO_COLOR: "1" }
    })
    return { status, text: stdout + stderr }
  }

  it("touches at most eight files, and the page names them", () => {
    assert.deepStrictEqual(named, Object.keys(steps))
    assert.isAtMost(named.length, 8)
  })

  it("is red in a file for each step that is left out, and green with all", () => {
    const [source, exported, ...others] = named
    make(source!)
    make(exported!)
    const red = run()
    for (const test of ["Package", "Registries", "core/OptionNames", "interruption-coverage", "config/errors"]) {
      assert.match(red.text, new RegExp(`FAIL .*test/\\S*${test}\\.test\\.ts`), red.text)
    }
    for (const file of others) make(file)
    const green = run("-u")
    assert.strictEqual(green.status, 0, green.text)
    assert.include(fs.readFileSync(path.join(copy, "test/snapshots/exports.txt"), "utf8"), "effect-retry/Bulkhead: ")
  })
})
