/** The addresses of the project: none today, one setting when there are any. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { addressOf, baseOf, fieldsOf, linked, withAddresses } from "../.ci/addresses.mjs"
import { groups, placeOf } from "../docs/site/pages.js"

const root = new URL("../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")
const pages = groups.flatMap(({ pages }) => pages.map(([path]) => path))

describe("addresses", () => {
  const none = { repository: "", site: "" }
  const set = { repository: "https://git.example/owner/name", site: "https://docs.example/retry/" }

  it("are none: the packages name none, and the READMEs link to the files next to them", () => {
    for (const [path, text] of Object.entries(withAddresses(none))) assert.strictEqual(text, read(path), path)
    assert.deepStrictEqual([fieldsOf(none), baseOf(none)], [{}, "/"])
    assert.notMatch(read("README.md"), /\]\(https?:/)
    for (const path of ["package.json", "lab/package.json"]) {
      assert.doesNotHaveAnyKeys(JSON.parse(read(path)), ["homepage", "repository", "bugs"])
    }
  })

  it("are in both packages, if there are any", () => {
    assert.deepStrictEqual(fieldsOf(set, "lab/"), {
      homepage: "https://docs.example/retry/",
      repository: { type: "git", url: "git+https://git.example/owner/name.git", directory: "lab" },
      bugs: { url: "https://git.example/owner/name/issues" }
    })
    assert.strictEqual(fieldsOf({ ...set, site: "" }).homepage, "https://git.example/owner/name#readme")
    const written = withAddresses(set)
    assert.deepStrictEqual(Object.keys(written), ["package.json", "README.md", "lab/package.json", "lab/README.md"])
    const { repository, ...manifest } = JSON.parse(written["package.json"]!)
    assert.deepStrictEqual(repository, fieldsOf(set).repository)
    for (const key of Object.keys(JSON.parse(read("package.json")))) assert.property(manifest, key)
  })

  it("lead from each link of the READMEs to a page of the site or a file of the repository, and back to the file", () => {
    for (const [folder, path] of [["", "README.md"], ["lab/", "lab/README.md"]] as const) {
      const links = (page: string) =>
        Array.from(
          page.replace(/^```[^]*?^```$/gm, "").matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"]+)"/g),
          ([, a, b]) => (a ?? b)!
        )
      const before = links(read(path))
      links(linked(read(path), set, folder)).forEach((link, n) => {
        if (before[n]!.startsWith("https:")) return assert.strictEqual(link, before[n])
        const file = new URL(before[n]!, `file:///${folder}`).pathname.slice(1)
        assert.isTrue(fs.existsSync(new URL(file, root)), file)
        const page = link.startsWith(set.site)
          ? pages.find((page) => placeOf(page) === link.slice(set.site.length).replace(/#.*/, ""))
          : undefined
        assert.strictEqual(
          page ?? /^https:\/\/git\.example\/owner\/name\/(?:blob|raw)\/HEAD\/([^#]*)/.exec(link)?.[1],
          file
        )
      })
    }
    assert.strictEqual(baseOf(set), "/retry/")
    assert.strictEqual(addressOf("LICENSE", set), "https://git.example/owner/name/blob/HEAD/LICENSE")
    assert.strictEqual(addressOf("LICENSE", { ...set, repository: "" }), undefined)
    assert.strictEqual(
      linked("![a](a/b.svg) <img src=\"a/c.png\">", set),
      `![a](${set.repository}/raw/HEAD/a/b.svg) <img src="${set.repository}/raw/HEAD/a/c.png">`
    )
  })
})
