/** How long the pages are: docs/words.ts has the limits, and prints all. */
import { assert, it } from "@effect/vitest"
import * as fs from "node:fs"
import { wordsOf } from "../docs/site/pages.js"
import { counted, limits, longer, sum } from "../docs/words.ts"

const guides = counted.filter(({ kind }) => kind === "guide")

it("a guide has at most a thousand words, but for those that are named, which do not grow", () => {
  assert.deepStrictEqual(guides.filter(({ path, words }) => words > (longer[path] ?? limits.guide)), [])
})

it("a guide that has become short is no longer named", () => {
  const stale = Object.keys(longer).filter((name) =>
    !guides.some(({ path, words }) => path === name && words > limits.guide)
  )
  assert.deepStrictEqual(stale, [])
})

it("the guides together, and all pages together, are within their limits", () => {
  assert.isAbove(guides.length, 15)
  assert.isAtMost(sum(guides), limits.guides)
  assert.isAtMost(sum(counted), limits.all)
})

it("README has at most 400 words", () => {
  assert.isAtMost(wordsOf(fs.readFileSync(new URL("../README.md", import.meta.url), "utf8")), 400)
})

it("words are those of sentences and tables: no code, no comment, nothing that a program wrote, no address", () => {
  const page = [
    "---\ntitle: no\n---\n# One two",
    "[three](no-no.md) `four`, five: 6 | - |",
    "<!-- no no -->",
    "<!-- generated: test/no.test.ts -->\n| no | no |\n<!-- end of the table -->",
    "```ts\nno\n```\nseven"
  ].join("\n")
  assert.strictEqual(wordsOf(page), 7)
})

it("the first page of the site has a box of twelve words", () => {
  const home = fs.readFileSync(new URL("../docs/site/home.md", import.meta.url), "utf8")
  const [, box] = home.split("| word | meaning |\n")
  assert.strictEqual(box!.match(/^\| (?!---)/gm)!.length, 12)
})
