/** What an excerpt of an example needs to be pasted: test/peers/excerpts.test.ts compiles them. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { excerptsOf, wholeOf } from "../docs/site/excerpts.js"
import { groups } from "../docs/site/pages.js"

const root = new URL("../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")
const pages = groups.flatMap(({ pages }) => pages.map(([path]) => path))

describe("an excerpt", () => {
  const files: Record<string, string> = {
    "a/one.ts": `import { Effect, type Layer } from "effect"
import * as Other from "other"
import { two } from "./two.ts"

const unused = Other.a

/** One. */
const one = (n: number) => n + two

export const all = Effect.map(one, (unused) =>
  unused)
`,
    "a/two.ts": `import { three } from "three"

export const two = three
`
  }
  const from = (file: string) => files[file]!

  it("is shown with its imports, what it uses, also of other files, and the statement that it lies in", () => {
    assert.strictEqual(
      wholeOf(from, "a/one.ts", "  unused)\n"),
      `import { Effect } from "effect"
import { three } from "three"

export const two = three

/** One. */
const one = (n: number) => n + two

export const all = Effect.map(one, (unused) =>
  unused)
`
    )
  })

  it("that is all of that is shown as it is", () => {
    assert.strictEqual(wholeOf(from, "a/two.ts", files["a/two.ts"]!), files["a/two.ts"])
  })

  /** Pages that do not name the files of all their excerpts yet. */
  const unnamed = ["docs/fleet.md", "docs/simulator.md"]

  it.each(["README.md", "docs/site/home.md", ...pages.filter((path) => path.startsWith("docs/"))])(
    "of %s can be made whole, and the page names its file if it has to be",
    (path) => {
      const page = read(path)
      for (const { code, file } of excerptsOf(page)) {
        if (wholeOf(read, file, code) === code || unnamed.includes(path)) continue
        assert.include(page.replace(/^```ts excerpt=.*$/gm, ""), file, code)
      }
    }
  )
})
