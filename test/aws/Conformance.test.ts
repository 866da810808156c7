import { assert, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as fs from "node:fs"
import { withSections } from "../../docs/conformance/sections.ts"
import { conformance } from "../utils/conformance.ts"

const folder = new URL("../../docs/conformance/", import.meta.url)

const tables = fs.readdirSync(folder)
  .filter((name) => name.endsWith(".json") && name !== "schema.json")
  .map((name) => name.slice(0, -".json".length))

const read = (path: string) => fs.readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

const loaders = fs.readdirSync(new URL("../vectors/", import.meta.url)).map((file) => read(`test/vectors/${file}`))

/** What a table says about itself, and what its rows are given. */
const about = new Set(["$schema", "table", "title", "note", "sources", "behavior", "sdk", "name", "files", "random"])

/** Where there is a figure without a basis, in its row or around it. */
const unfounded = (value: unknown, path = ""): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return [path]
  if ("basis" in value) return []
  return Object.entries(value).flatMap(([key, inner]) => about.has(key) ? [] : unfounded(inner, `${path}/${key}`))
}

describe("conformance", () => {
  const valid = new Ajv2020({ allErrors: true, strict: true, strictRequired: false }).compile(conformance("schema"))

  it.each(tables)("%s.json follows the schema", (name) => {
    assert.isTrue(valid(conformance(name)), JSON.stringify(valid.errors, null, 1))
  })

  it("the schema refuses an unknown field, and a negative time", () => {
    const [first] = conformance("standard-2.0").cases
    for (const change of [{ delay: 1 }, { delayMs: -1 }, { outcome: "retried" }]) {
      const responses = [{ expected: { ...first.responses[0].expected, ...change } }]
      assert.isFalse(valid({ ...conformance("standard-2.0"), cases: [{ ...first, responses }] }))
    }
  })

  it.each(tables)("every figure of %s.json has a basis", (name) => {
    assert.deepStrictEqual(unfounded(conformance(name)), [])
  })

  it.each(tables)("all of %s.json is run by a test, and it is on the page", (name) => {
    const loader = loaders.find((source) => source.includes(`conformance("${name}")`))
    assert.isDefined(loader)
    const sections = Object.keys(conformance(name)).filter((key) => !about.has(key))
    const [, taken = ""] = /const \{([^}]*)\} = conformance/.exec(loader!) ?? []
    const isTaken = (section: string) => new RegExp(`\\.${section}\\b`).test(loader!) || taken.includes(section)
    assert.deepStrictEqual(sections.filter((section) => !isTaken(section)), [])
    assert.include(read("docs/evidence/conformance.md"), `(../conformance/${name}.json)`)
    for (const section of sections) assert.include(read("docs/evidence/conformance.md"), `\`${section}\``, section)
  })

  it("the sections of the page are those of the schema: npx tsx docs/conformance/sections.ts", () => {
    const page = read("docs/evidence/conformance.md")
    assert.strictEqual(withSections(page), page)
    const changed = page.replace("| the balance |", "| a balance |")
    assert.strictEqual(withSections(changed), page)
    assert.notStrictEqual(changed, page)
  })

  it("the page explains each basis, and no others", () => {
    const { enum: bases } = conformance("schema").$defs.basis
    const named = Array.from(read("docs/evidence/conformance.md").matchAll(/^- `(\w+)`: /gm), ([, basis]) => basis)
    assert.deepStrictEqual(named, bases)
  })
})
