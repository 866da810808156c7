/** What the commands write, from what they have found. */
import type * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { apart } from "../../src/cli/charts/svg.ts"
import { checkMarkdown } from "../../src/cli/checkMarkdown.ts"
import { parsed } from "../../src/cli/json.ts"
import { type Checked, expectationText, failedText, foundText, runsText } from "../../src/cli/judgments.ts"
import { recovers } from "../../src/cli/outcome.ts"
import { asJson } from "../../src/cli/output.ts"
import { described, duration, plain, quoted } from "../../src/cli/text.ts"
import { tableWithin } from "../../src/explain/layout.ts"

const judgment = (changes: Partial<Simulator.Judgment> = {}): Simulator.Judgment => ({
  name: "succeed",
  comparison: ">=",
  bound: 0.99,
  found: 0.5,
  spread: undefined,
  runs: 5,
  holds: true,
  ...changes
})

const checked = (name: string, holds: boolean, changes: Partial<Checked> = {}): Checked => ({
  source: name,
  name,
  seeds: [1, 5],
  judgments: [judgment({ holds })],
  warnings: [],
  ...changes
})

describe("a judgment", () => {
  const rows: ReadonlyArray<readonly [changes: Partial<Simulator.Judgment>, expectation: string, found: string]> = [
    [{}, "succeed >= 99 %", "50 %"],
    [{ name: "sendsPerCall", comparison: "<", bound: 1.2, found: 1.23456 }, "sendsPerCall < 1.2", "1.235"],
    [{ name: "p99", comparison: "<=", bound: 250, found: 1500 }, "p99 <= 250 ms", "1.5 s"],
    [{ name: "p99", comparison: "<=", bound: 250, found: null }, "p99 <= 250 ms", "no call succeeded"],
    [
      { name: "recoveredWithin", comparison: "<=", bound: 2000, found: null },
      "recoveredWithin <= 2 s",
      "too few runs recover"
    ],
    [{ name: "recoversInRuns", bound: 4, found: 3 }, "recoversInRuns >= 4 of 5", "3 of 5"],
    [{ name: "recoversInRuns", bound: 4, found: null }, "recoversInRuns >= 4 of 5", "0 of 5"]
  ]
  for (const [changes, expectation, found] of rows) {
    it(`is written as ${expectation}: ${found}`, () => {
      assert.deepStrictEqual([expectationText(judgment(changes)), foundText(judgment(changes))], [expectation, found])
    })
  }

  it("counts what failed, and the runs", () => {
    assert.deepStrictEqual(
      [failedText({ failed: 0, of: 3 }), failedText({ failed: 2, of: 5 }), runsText([7, 7]), runsText([3, 7])],
      ["3 of 3 expectations hold", "2 of 5 expectations failed", "1 run, seed 7", "5 runs, seeds 3 to 7"]
    )
  })
})

describe("check in Markdown", () => {
  it("begins with whether all is well", () => {
    const [well, ill] = [checkMarkdown([checked("a", true)]), checkMarkdown([checked("a", true), checked("b", false)])]
    assert.match(well, /^<!-- effect-retry check -->\n### ✅ Retries: 1 of 1 expectations hold\n/)
    assert.match(ill, /^<!-- effect-retry check -->\n### ❌ Retries: 1 of 2 expectations failed\n/)
  })

  it("has a section for each scenario: those that fail first, else in their order", () => {
    const all = [checked("a", true), checked("b", false), checked("c", true), checked("d", false)]
    const names = Array.from(checkMarkdown(all).matchAll(/^\*\*`(.)`\*\*/gm), ([, name]) => name)
    assert.deepStrictEqual(names, ["b", "d", "a", "c"])
  })

  it("has what was expected and found, and the warnings, as code", () => {
    const section = checkMarkdown([checked("s|m", false, { source: "a.json", warnings: ["`beware`"] })]).split("\n")
      .slice(3)
    assert.deepStrictEqual(section, [
      "**`s|m`**, `a.json`: 5 runs, seeds 1 to 5",
      "",
      "| | expected | found |",
      "| --- | --- | --- |",
      "| ❌ | `succeed >= 99 %` | `50 %` |",
      "",
      "⚠️ `` `beware` ``",
      ""
    ])
    const hostile = checkMarkdown([checked("a``b", true)])
    assert.include(hostile, "**```a``b```**")
  })

  it("leaves out what is too long for a comment, and says how much", () => {
    const all = Array.from({ length: 1000 }, (_, n) => checked(`scenario ${n}`, true))
    const markdown = checkMarkdown(all)
    const shown = markdown.split("| expected |").length - 1
    assert.isAbove(shown, 300)
    assert.isAtMost(markdown.length, 60_100)
    assert.match(markdown, new RegExp(`\n_${1000 - shown} more scenarios are left out here\\._\n$`))
    assert.notInclude(checkMarkdown(all.slice(0, shown - 1)), "left out")
  })
})

describe("text", () => {
  it("cannot move the cursor", () => {
    const rows = [
      ["plain é 漢", "plain é 漢"],
      ["a\u001b[2Jb", "a\\x1b[2Jb"],
      ["a\nb\t", "a\\x0ab\\x09"],
      ["\u009b", "\\x9b"],
      ["\u2028\u2029", "\\u2028\\u2029"],
      ["\u202e\u2066", "\\u202e\\u2066"]
    ] as const
    for (const [text, expected] of rows) assert.strictEqual(plain(text), expected)
  })

  it("of JSON neither, and is the same once read", () => {
    const data = ["a\u001b\u007f\u0080\u009f", "\u2028\u202a\u202e\u2066\u2069", "é 漢"]
    const text = asJson(data)
    assert.notMatch(text, /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/)
    assert.include(text, "é 漢")
    assert.deepStrictEqual(JSON.parse(text), data)
  })

  it("of a user is quoted, and shortened above 60 characters", () => {
    assert.strictEqual(quoted("a\"b"), "\"a\\\"b\"")
    assert.strictEqual(quoted("x".repeat(60)), `"${"x".repeat(60)}"`)
    assert.strictEqual(quoted("x".repeat(61)), `"${"x".repeat(57)}..."`)
  })

  it("has durations in three digits", () => {
    assert.deepStrictEqual([null, -5, 0, 12.345, 1234.5].map(duration), ["-", "0 ms", "0 ms", "12.3 ms", "1.23 s"])
  })

  it("has names that are too wide for a column on lines of their own", () => {
    const [fits, wide] = ["n".repeat(26), "w".repeat(27)]
    const lines = tableWithin(200, { heads: ["name", "x"], rows: [[fits, "1"], [wide, "2"]] })
    assert.deepStrictEqual(lines.map((line) => line.trim().replace(/ +/g, " ")), ["name x", `${fits} 1`, wide, "2"])
  })

  it("wraps descriptions at the width, below each other", () => {
    const [first, second, ...others] = described([["name", "word ".repeat(30).trim()], ["longer", "short"]], 100)
    assert.match(first!, /^name {4}word/)
    assert.isAtMost(first!.length, 100)
    assert.match(second!, /^ {8}word/)
    assert.deepStrictEqual(others, ["longer  short"])
    assert.isAbove(first!.length + 5, 100)
  })
})

describe("where a text stops being JSON", () => {
  for (
    const [text, place] of [
      ["{\n  \"a\": tru }", "line 2, column 8"],
      ["[tru]", "line 1, column 2"],
      ["tru", "line 1, column 1"],
      ["[1 2]", "line 1, column 4"]
    ] as const
  ) {
    it(`is ${place} of ${JSON.stringify(text)}`, () => {
      assert.include(Effect.runSync(Effect.flip(parsed("it", text))).message, place)
    })
  }
})

describe("labels", () => {
  it("move apart in the order of their places, from the top down, and stay above the bottom", () => {
    assert.deepStrictEqual(apart([30, 0, 5], 10, 100), [30, 0, 10])
    assert.deepStrictEqual(apart([100, 98, 0], 10, 100), [100, 90, 0])
    assert.deepStrictEqual(apart([98, 100], 10, 100), [90, 100])
  })
})

describe("how many runs recover", () => {
  const after = (millis: number) => ({ mean: millis, median: millis, low: millis, high: millis, of: 20 })
  it("is followed by the time that they took, if they took any", () => {
    assert.strictEqual(recovers({ runs: 0, of: 20, afterMillis: undefined }), "0 of 20")
    assert.strictEqual(recovers({ runs: 20, of: 20, afterMillis: after(0) }), "20 of 20")
    assert.strictEqual(recovers({ runs: 14, of: 20, afterMillis: after(127_000) }), "14 of 20 in 127 s")
  })
})
