import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { llms } from "../docs/llms.ts"

const root = new URL("../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")
const pages = [
  ...fs.readdirSync(root).filter((name) => name.endsWith(".md")),
  ".github/CONTRIBUTING.md",
  ".github/SECURITY.md",
  "lab/README.md",
  "examples/README.md",
  ...["docs", "docs/evidence"].flatMap((folder) =>
    fs.readdirSync(new URL(folder, root)).filter((name) => name.endsWith(".md")).map((name) => `${folder}/${name}`)
  )
]

/** A block with a comment before its end is found too: fences stand at the beginning of a line. */
const blocksOf = (page: string) =>
  Array.from(page.matchAll(/^```ts(.*)\n([^]*?)^```$/gm), ([, info, code]) => ({ info: info!.trim(), code: code! }))

describe.each(pages)("%s", (path) => {
  const page = read(path)

  it("has no TypeScript but exact excerpts of examples", () => {
    const blocks = blocksOf(page)
    assert.strictEqual(blocks.length, page.split("```ts").length - 1)
    for (const { code, info } of blocks) {
      const [, file] = /^excerpt=(examples\/\S+)$/.exec(info) ?? []
      assert.isDefined(file, code)
      assert.include(read(file), code)
    }
  })

  it("links to files that exist", () => {
    const links = Array.from(page.matchAll(/\]\((?!\w+:|#)([^)#\s]+)[^)]*\)/g), ([, link]) => link!)
    const missing = links.filter((link) => !fs.existsSync(new URL(link, new URL(path, root))))
    assert.deepStrictEqual(missing, [])
  })
})

it(".github/SECURITY.md names a test in each row of its table", () => {
  const rows = read(".github/SECURITY.md").split("\n").filter((line) => line.startsWith("| ")).slice(2)
  assert.isAbove(rows.length, 12)
  for (const row of rows) {
    const cells = row.split(" | ")
    assert.strictEqual(cells.length, 4, row)
    assert.match(cells[3]!, /\]\(\.\.\/(?:lab\/)?test\/[\w/.-]+\.test\.ts\)/, row)
  }
})

/** Pages about modules outside the core. */
const optional = ["durable", "fleet", "grpc", "live", "llm", "observing"]

it.each(optional)("docs/%s.md begins with a program that runs, and its command", (page) => {
  const [beginning] = read(`docs/${page}.md`).split("\n## ")
  const [, example] = /\bnpx tsx (examples\/\S+\.ts)\b/.exec(beginning!) ?? []
  assert.isDefined(example)
  assert.match(read(example!), /^main\(|^if \(isStarted\(/m)
})

it("docs/modules.md names every module of the package", () => {
  const { exports } = JSON.parse(read("package.json"))
  const page = read("docs/modules.md")
  const modules = Object.keys(exports).filter((path) => /\/[A-Za-z/]+$/.test(path)).map((path) => path.slice(2))
  const missing = modules.filter((module) =>
    !page.includes(`\`${module}\``) && !page.includes(`\`${module.replace("aws/", "")}\``)
  )
  assert.deepStrictEqual(missing, [])
})

it("some pages have excerpts", () => {
  assert.isAtLeast(pages.filter((path) => blocksOf(read(path)).length > 0).length, 8)
})

it("examples have lines of at most 72 columns, but for an import that cannot be broken", () => {
  const wide = fs.readdirSync(new URL("examples", root), { encoding: "utf8", recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) =>
      read(`examples/${name}`).split("\n").map((line, index) => ({ at: `${name}:${index + 1}`, line }))
    )
    .filter(({ line }) => line.length > 72 && !/^import \* as \w+ from "/.test(line))
  assert.deepStrictEqual(wide, [])
})

it("docs/llms.txt lists all pages and examples: npm run llms", () => {
  assert.strictEqual(read("docs/llms.txt"), llms)
  for (const [, link] of llms.matchAll(/\]\((\S+?)\): (?=\S)/g)) {
    assert.isTrue(fs.existsSync(new URL(link!, new URL("docs/", root))), link)
  }
  assert.notMatch(llms, /: $/m)
})
