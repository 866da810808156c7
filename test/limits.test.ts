/** A test has no time limit of its own: `vitest.config.ts` has the one that finds what hangs. */
import { assert, it } from "@effect/vitest"
import * as fs from "node:fs"

const begins = /^ *(?:it|test|describe|(?:before|after)(?:All|Each))\b/
const limit = /^ *\d[\d_]*$/
const lastArgument = /, \d[\d_]*\)$/

/** The line in which a call begins that ends with a line of `)`. */
const beginning = (lines: ReadonlyArray<string>, end: number): string | undefined => {
  const indent = lines[end]!.length - 1
  return lines.slice(0, end).filter((line) => line.search(/\S/) === indent).at(-1)
}

/** The lines with a limit of a test, a suite or a hook, as dprint formats them. */
const limitsIn = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n")
  return lines.filter((line, at) =>
    /^ *[})]/.test(line) && lastArgument.test(line) ||
    begins.test(line) && (lastArgument.test(line) || /\{[^}]*\btimeout:/.test(line)) ||
    limit.test(line) && lines[at + 1]?.trim() === ")" && begins.test(beginning(lines, at + 1) ?? "")
  )
}

const root = new URL("../", import.meta.url)

const filesIn = (folder: string): ReadonlyArray<string> =>
  fs.readdirSync(new URL(folder, root), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.includes("node_modules")).map((name) => `${folder}/${name}`)

it("no test, no suite and no hook has a time limit of its own", () => {
  const files = ["test", "lab/test"].flatMap(filesIn)
  assert.isAbove(files.length, 300)
  const found = files.flatMap((path) =>
    limitsIn(fs.readFileSync(new URL(path, root), "utf8")).map((line) => `${path}: ${line}`)
  )
  assert.deepStrictEqual(found, [])
})

it("a limit is found", () => {
  const lines = [
    "it('a', () => {})",
    "it('a', () => f(1, 2))",
    "it('a', { timeout: 5000 }, () => {",
    "  }).pipe(Effect.scoped), 60_000)",
    "beforeAll(() => begin(), 100)",
    "it(",
    "  'a',",
    "  60_000",
    ")",
    "closeTo(",
    "  60_000",
    ")"
  ]
  assert.deepStrictEqual(limitsIn(lines.join("\n")), [2, 3, 4, 7].map((line) => lines[line]!))
})
