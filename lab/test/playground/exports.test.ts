import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import { policyOf } from "../../playground/policy.ts"
import { labelOf, scenarioOf } from "../../playground/scenario.ts"
import { begin, choices, type Kind, kinds } from "../../playground/setup.ts"
import { playground } from "../../scripts/playground.mjs"
import * as Simulator from "../../src/Simulator.ts"
import { resolve } from "../../src/simulator/policy.ts"
import { everyChoice } from "./choices.ts"

describe("what the playground exports", () => {
  it.live("is a valid scenario, whatever is chosen", () =>
    Effect.gen(function*() {
      for (const choice of everyChoice) yield* Simulator.decode(scenarioOf(begin, policyOf(choice)))
      for (const kind of Object.keys(kinds) as Array<Kind>) {
        yield* Simulator.decode(scenarioOf({ ...begin, kind, limit: 100 }, "naive"))
      }
    }))

  it("names a built-in policy, and lists the changed settings of another", () => {
    for (const name of choices) assert.strictEqual(policyOf({ name }), name)
    for (const choice of everyChoice) assert.strictEqual(resolve(policyOf(choice)).label, labelOf(choice))
    const changed = policyOf({ name: "awsStandard", attempts: 5, quota: 100, concurrency: 20 }) as Exclude<
      Simulator.Policy,
      string
    >
    assert.deepStrictEqual(
      [
        changed.steps.find((step) => typeof step === "object" && "maxAttempts" in step),
        changed.quota,
        changed.concurrency
      ],
      [{ maxAttempts: 5 }, { capacity: 100 }, { limit: 20 }]
    )
  })
})

describe("the page of the playground", () => {
  it("is one file of less than 400 KB, compressed, that requests nothing", async () => {
    const page = await playground()
    assert.isBelow(gzipSync(page).length, 400_000)
    assert.notMatch(page, /<(?:script|link|img)[^>]* (?:src|href)="(?!data:)/)
    assert.notMatch(page, /\bimport\("|importScripts\(/)
    assert.match(page, /^effect 4\./m)
  })

  it("allows its one program and its one style, by hash, and workers of its own", async () => {
    const page = await playground()
    const hashOf = (text: string | undefined) => `'sha256-${createHash("sha256").update(text!).digest("base64")}'`
    const [, ...programs] = page.split(/<script>|<\/script>\n<!--/)
    const [, ...styles] = page.split(/<style>|<\/style>/)
    assert.deepStrictEqual([programs.length, styles.length], [2, 2])
    const policy = `default-src 'none'; script-src ${hashOf(programs[0])}; worker-src blob:; style-src ${
      hashOf(styles[0])
    }; img-src data:; base-uri 'none'; form-action 'none'`
    assert.include(page, `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
    assert.isBelow(page.indexOf("Content-Security-Policy"), page.indexOf("<style>"))
  })
})
