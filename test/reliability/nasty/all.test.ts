import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"

const folder = new URL("./", import.meta.url)

describe("the 77 nasty inputs", () => {
  it("each have a test of their name, or a line in docs/reliability.md that says why not", () => {
    const tests = fs.readdirSync(folder).filter((name) => name !== "all.test.ts").map((name) =>
      fs.readFileSync(new URL(name, folder), "utf8")
    ).join("\n")
    const docs = fs.readFileSync(new URL("../../../docs/reliability.md", folder), "utf8")
    const missing = Array.from({ length: 77 }, (_, index) => index + 1).filter((number) =>
      !new RegExp(`["\`]nasty ${number}: `).test(tests) && !docs.includes(`**nasty ${number}** has no test`)
    )
    assert.deepStrictEqual(missing, [])
  })
})
