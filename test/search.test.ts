/** What the search of the site finds first. */
import { assert, describe, it } from "@effect/vitest"
import MiniSearch from "minisearch"
import * as fs from "node:fs"
import { groups, placeOf } from "../docs/site/pages.js"
import { indexed, searchOptions } from "../docs/site/search.js"

const root = new URL("../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")
const pages = groups.flatMap(({ pages }) => pages.map(([path]) => path))

describe("search", () => {
  /** The sections of a page, as VitePress makes them of its headings. */
  const sectionsOf = (id: string, page: string) => {
    const titles: Array<string> = []
    return page.replace(/^```.*$/gm, "").split(/^(?=#{1,6} )/m).flatMap((part, index) => {
      const [, marks, title] = /^(#+) (.*)$/m.exec(part) ?? []
      if (marks === undefined) return []
      titles.splice(marks.length - 1, Infinity, title!.replaceAll("`", ""))
      const text = part.slice(part.indexOf("\n") + 1).replace(/\]\([^)]*\)/g, "]")
      return { id: `${id}#${index}`, title: titles.at(-1), titles: titles.slice(0, -1), text }
    })
  }

  /** The reference as TypeDoc writes it: a heading for each export, and below it what it takes. */
  const referenceOf = (source: string) =>
    Array.from(
      source.matchAll(
        /\/\*\*\n([^]*?)\n? \*\/\nexport (?:const|interface|class|type|function) (\w+)([^;]*?)(?==>|\n\n|$)/g
      ),
      ([, comment, name, code]) =>
        `## ${name}\n\n${comment!.replace(/^ \* ?/gm, "")}\n\n### Parameters\n\n${
          Array.from(code!.matchAll(/(\w+)\??:/g), ([, parameter]) => `#### ${parameter}\n\n`).join("")
        }`
    ).join("\n")

  const index = new MiniSearch<{ id: string }>({ fields: ["title", "titles", "text"], searchOptions })
  for (const path of pages) index.addAll(sectionsOf(`/${placeOf(path)}`, read(path)))
  const sources = fs.readdirSync(new URL("src", root), { encoding: "utf8", recursive: true })
    .filter((name) => name.endsWith(".ts") && !/internal|engine/.test(name))
  for (const name of sources) {
    const place = `reference/${name.slice(0, -3)}`
    const page = `# ${name.slice(0, -3)}\n\n${referenceOf(read(`src/${name}`))}`
    index.addAll(sectionsOf(`/${place}`, indexed(`${place}.md`, page)))
  }

  it("has the reference in it", () => {
    assert.match(String(index.search("quotaGated")[0]?.id), /^\/(?:reference\/RetryPolicy|policies)#/)
    assert.isAbove(index.documentCount, 600)
  })

  it.each([
    ["POST", ["http", "promises"]],
    ["retry-after", ["http", "overload"]],
    ["per host", ["http", "what-comes-from-where"]],
    ["pg", ["promises"]],
    ["429", ["http", "llm"]],
    ["timeout", ["promises", "overload"]],
    ["jitter", ["policies", "choosing-a-policy", "aws-modes"]],
    ["test", ["testing", "extending"]],
    ["circuit breaker", ["limits"]],
    ["rate limit", ["limits", "choosing-a-policy"]],
    ["fetch", ["promises", "http", "start"]]
  ])("%s is found first in a guide", (query, expected) => {
    const [, place] = /^\/(.*)#/.exec(String(index.search(query)[0]?.id))!
    assert.include(expected, place)
  })

  it("leaves out headings of the reference that name parameters, and those below them", () => {
    const page = "# A\n## f\n### Call Signature\n#### Parameters\n##### timeout\n\ntext\n### Gotchas\n## g"
    assert.strictEqual(indexed("reference/A.md", page), "# A\n## f\n\nParameters\ntimeout\n\ntext\n### Gotchas\n## g")
    assert.strictEqual(indexed("http.md", page), page)
    assert.strictEqual(indexed("http.md", "a\n<details class=\"whole\">\nb\n</details>\nc\n"), "a\nc\n")
  })
})
