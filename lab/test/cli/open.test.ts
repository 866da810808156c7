import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { folder, run } from "./commandLine.ts"

const installed = folder()
const page = join(installed, "dist", "playground.html")
mkdirSync(join(installed, "dist"))
writeFileSync(page, "<!DOCTYPE html>")

describe("open", () => {
  it("prints where the page is, and starts nothing unless a terminal shows it", async () => {
    assert.deepStrictEqual(await run(["open"], { folder: installed }), {
      code: 0,
      out: `${page}\n`,
      err: "",
      progress: []
    })
  })

  it("writes the page to a file", async () => {
    const file = join(installed, "mine.html")
    const { code, out } = await run(["open", "--out", file], { folder: installed })
    assert.deepStrictEqual([code, out], [0, `wrote ${file}\n`])
    assert.strictEqual(readFileSync(file, "utf8"), "<!DOCTYPE html>")
  })

  it("overwrites nothing but a page", async () => {
    const file = join(installed, "theirs.json")
    writeFileSync(file, "{}")
    assert.strictEqual((await run(["open", "--out", file], { folder: installed })).code, 2)
    assert.strictEqual(readFileSync(file, "utf8"), "{}")
  })

  it("refuses a file that cannot be written, and a package without the page", async () => {
    const unwritable = await run(["open", "--out", join(installed, "nowhere", "mine.html")], { folder: installed })
    assert.strictEqual(unwritable.code, 2)
    assert.match(unwritable.err, /^effect-retry: cannot write ".*": no such file or folder\n$/)
    const missing = await run(["open"], { folder: join(installed, "other") })
    assert.strictEqual(missing.code, 2)
    assert.match(missing.err, /^effect-retry: the built-in playground is not at ".*"\n$/)
  })
})
