import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { resolve } from "../../src/simulator/policy.ts"
import { folder, run } from "./commandLine.ts"

const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")

describe("docs/cli.md", () => {
  it("says how many attempts the policies make, and names those that make four", () => {
    const [, most] = /most three attempts; ([^]*?) make four\./.exec(page)!
    const four = Array.from(most!.matchAll(/`(\w+)`/g), ([, name]) => name!)
    for (const name of Simulator.policies) {
      const { policy } = resolve(name)
      const attempts = policy === undefined ? 1 : RetryPolicy.limits(policy).maxAttempts
      assert.strictEqual(attempts, name === "none" ? 1 : four.includes(name) ? 4 : 3, name)
    }
  })

  it("links to each of its sections from the table of questions", () => {
    const links = Array.from(page.matchAll(/\]\(#([\w-]+)\)/g), ([, anchor]) => anchor!)
    const headings = Array.from(
      page.matchAll(/^## (.*)$/gm),
      ([, heading]) => heading!.toLowerCase().replaceAll(" ", "-")
    )
    assert.deepStrictEqual(headings.filter((heading) => !links.includes(heading)), ["when-something-is-wrong"])
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

describe("what pages show of the terminal", () => {
  it("has at most 72 columns, commands too", () => {
    const docs = new URL("../../../docs/", import.meta.url)
    const wide = readdirSync(docs).filter((name) => name.endsWith(".md")).flatMap((name) =>
      [...readFileSync(new URL(name, docs), "utf8").matchAll(/^```console\n([^]*?)^```$/gm)]
        .flatMap(([, block]) => block!.split("\n"))
        .filter((line) => line.length > 72)
        .map((line) => `${name}: ${line}`)
    )
    assert.deepStrictEqual(wide, [])
  })
})
