import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { resolve } from "../../src/simulator/policy.ts"
import { PolicySettings } from "../../src/simulator/policySchema.ts"
import { folder, run } from "./commandLine.ts"

const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")

/** What is in code in the first column of the table under these words. */
const firstColumn = (heading: string): ReadonlyArray<string> => {
  const [, table = ""] = page.split(`| ${heading} | what it is |\n| --- | --- |\n`)
  const rows = table.split("\n\n")[0]!.split("\n").map((row) => row.split("|")[1]!)
  return rows.flatMap((cell) => Array.from(cell.matchAll(/`(\w+)`/g), ([, name]) => name!))
}

describe("docs/cli.md", () => {
  it("lists the policies that have a name", () => {
    assert.deepStrictEqual([...firstColumn("name")].sort(), [...Simulator.policies].sort())
  })

  it("says how many attempts they make", () => {
    const four = ["awsDynamoDB2026", "awsJavaV1", "awsJavaScriptV2", "awsGeneralReference"]
    for (const name of Simulator.policies) {
      const { policy } = resolve(name)
      const attempts = policy === undefined ? 1 : RetryPolicy.limits(policy).maxAttempts
      assert.strictEqual(attempts, name === "none" ? 1 : four.includes(name) ? 4 : 3, name)
    }
  })

  it("lists the keys of a policy in JSON", () => {
    assert.deepStrictEqual([...firstColumn("key")].sort(), Object.keys(PolicySettings.fields).sort())
  })

  const here = folder()
  it("shows pictures that the library draws", async () => {
    const pictures = [...page.matchAll(/`npx (effect-retry explain [^`]* --svg (\S+))`/g)]
    assert.isAbove(pictures.length, 0)
    for (const [, command = "", file = ""] of pictures) {
      const drawn = join(here, file)
      const { code, err } = await run(command.replace(file, drawn).split(" ").slice(1))
      assert.strictEqual(code, 0, err)
      assert.include(page, `](${file})`)
      const committed = readFileSync(new URL(`../../../docs/${file}`, import.meta.url), "utf8")
      assert.strictEqual(readFileSync(drawn, "utf8"), committed, command)
    }
  })
})
