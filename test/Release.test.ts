import { assert, it } from "@effect/vitest"
import * as fs from "node:fs"

const read = (path: string) => fs.readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

it("both packages have one version, the last that the changelog lists", () => {
  const [version, lab, locked, lockedLab] = [
    JSON.parse(read("package.json")).version,
    JSON.parse(read("lab/package.json")).version,
    JSON.parse(read("package-lock.json")).packages[""].version,
    JSON.parse(read("package-lock.json")).packages.lab.version
  ]
  const [, listed] = /^## (\d\S*)$/m.exec(read("CHANGELOG.md"))!
  assert.deepStrictEqual([lab, locked, lockedLab, listed], [version, version, version, version])
})
