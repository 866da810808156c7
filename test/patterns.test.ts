/** Patterns see only the beginning of a text from outside, and take linear time whatever they see. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { type Node, statementsOf, visit } from "./utils/ast.ts"
import { threadSeconds } from "./utils/cpu.ts"

const root = new URL("../", import.meta.url)

interface Use {
  /** What the pattern is used on, as code. */
  readonly text: string
  readonly at: string
}

interface Found {
  readonly uses: Array<Use>
  readonly patterns: Array<RegExp>
}

const methods = ["match", "matchAll", "replace", "replaceAll", "search", "split"]

/** What a call uses a pattern on, if it does. */
const usedOn = ({ arguments: [first, second], callee }: Node): Node | undefined => {
  const name = callee.property?.name
  if (name === "test" || name === "exec") return second === undefined ? first : undefined
  const isPattern = first?.regex !== undefined || first?.type === "NewExpression"
  return methods.includes(name) && isPattern ? callee.object : undefined
}

/** The patterns of the files below a folder, and what they are used on. */
const foundIn = (folder: string): Found => {
  const found: Found = { uses: [], patterns: [] }
  for (const path of fs.readdirSync(new URL(folder, root), { encoding: "utf8", recursive: true })) {
    if (!/\.tsx?$/.test(path) || path.includes("node_modules")) continue
    const file = `${folder}/${path}`.replaceAll("\\", "/")
    const code = fs.readFileSync(new URL(file, root), "utf8")
    visit(statementsOf(code, path.endsWith("x") ? "tsx" : "ts"), (node) => {
      if (node["regex"] !== undefined) found.patterns.push(new RegExp(node["regex"].pattern, node["regex"].flags))
      const on = node.type === "CallExpression" ? usedOn(node) : undefined
      if (on !== undefined) found.uses.push({ text: code.slice(on.start, on.end), at: file })
    })
  }
  return found
}

/** Files whose patterns see texts that are not cut, how many, and why they may. */
const whole: { readonly [file: string]: readonly [uses: number, why: string] } = {
  "src/internal/format.ts": [1, "cut by what shows it"],
  "src/RetryClassifier.ts": [1, "the name of a class of Effect"],
  "src/RetryPolicy.ts": [1, "the key of a service in code"],
  "src/aws/AwsRetryConfig.ts": [1, "the name of a service in code"],
  "src/aws/AwsSdk.ts": [1, "the name of a class of the SDK"],
  "src/aws/Operations.ts": [3, "names of services and operations in code"],
  "src/aws/RequestHeaders.ts": [1, "a date that the library wrote"],
  "src/aws/SharedConfig.ts": [1, "a path of the environment"],
  "src/aws/internal/configFiles.ts": [4, "lines of a file of at most 1 MiB"],
  "src/aws/internal/sdk/clientStrategy.ts": [1, "the code of a function"],
  "src/engine/frames.ts": [1, "the code of Effect"],
  "src/engine/policy/policy.ts": [1, "the name of a step"],
  "src/grpc/RetryGrpc.ts": [1, "an option"],
  "src/http/internal/serverPropagation.ts": [1, "an option"],
  "src/config/internal/configDocument.ts": [1, "a document, for two words"],
  "src/config/internal/importedDocument.ts": [1, "names of fields in code"],
  "src/internal/classification/errorBodies.ts": [1, "64 KiB at most"],
  "src/internal/classification/hint.ts": [14, "headers that are too long are not read"],
  "src/internal/classification/resource.ts": [1, "names of headers in code"],
  "src/internal/invalidField.ts": [1, "a key of a document, cut before"],
  "src/config/internal/environmentVariables.ts": [2, "names of resources in code"],
  "src/redis/internal/fleet.ts": [1, "an option, one class of characters"],
  "src/testing/internal/timeline.ts": [6, "texts of tests"]
}

const library = foundIn("src")

describe("patterns", () => {
  it("of the library see what `short` has cut, but for the listed ones", () => {
    const open = library.uses.filter(({ text }) => !text.startsWith("short("))
    const counts: { [file: string]: number } = {}
    for (const { at } of open) counts[at] = (counts[at] ?? 0) + 1
    assert.deepStrictEqual(counts, Object.fromEntries(Object.entries(whole).map(([file, [uses]]) => [file, uses])))
  })

  /** Texts made of what the pattern itself is made of: its literal pieces, each alone and over and over. */
  const attacks = ({ source }: RegExp, length: number): ReadonlyArray<string> => {
    const literal = source.replaceAll(/\\(\W)|\(\?[:=!]|\\.|\[[^\]]*\]|[()|*+?{}^$]/g, (_, char = "\n") => char)
    const pieces = literal.split("\n").filter((piece) => piece !== "")
    const pumps = new Set(["0", " ", "a", "A", "\t", "1.", ...pieces, ...pieces.map((piece) => `${piece}w`)])
    return ["", ...pieces].flatMap((beginning) =>
      Array.from(pumps, (pump) => `${beginning}${pump.repeat(Math.ceil(length / pump.length))}\n!`)
    )
  }

  const isLinear = (pattern: RegExp): boolean =>
    attacks(pattern, 16_000).every((text) => {
      const secondsOf = (given: string) => {
        const before = threadSeconds()
        for (const _ of given.matchAll(new RegExp(pattern, "g"))) break
        return threadSeconds() - before
      }
      // A quadratic pattern needs half a second for what takes a linear one a millisecond.
      return secondsOf(text) < 0.1 || secondsOf(text) < 0.1
    })

  it("take linear time, those of the lab and the playground too", () => {
    const all = [library, foundIn("lab/src"), foundIn("lab/playground")].flatMap(({ patterns }) => patterns)
    assert.isAbove(all.length, 130)
    const slow = all.filter((pattern) => /[*+]|,\}/.test(pattern.source) && !isLinear(pattern))
    // Only digits that the lab has written itself.
    assert.deepStrictEqual(slow.map(String), [String(/\B(?=(\d{3})+$)/g)])
  })
})
