import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { firstOf } from "../../test/utils/budget.ts"
import * as call from "../scripts/call.ts"
import { pictures } from "../scripts/picture.ts"

const files = ["docs/outage-picture.svg", "docs/outage-picture-narrow.svg", "docs/site/social-card.svg"]

const committed = (file: string): string => fs.readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")

describe("the pictures of the README", () => {
  for (const made of firstOf([pictures], 0)) {
    it.effect("are what runs of the scenario show: npx tsx lab/scripts/picture.ts", () =>
      Effect.map(made, (pictures) => {
        for (const [file, picture] of Object.entries(pictures)) assert.isTrue(committed(file) === picture, file)
      }))
  }

  it.each(files)("say how long the outage lasts, in light and dark: %s", (file) => {
    for (const words of ["prefers-color-scheme:dark", "back after 1 s", "back after 2 minutes", "not within the run"]) {
      assert.include(committed(file), words)
    }
  })

  it("have letters that can be read on a page and on a phone", () => {
    for (const [file, least] of [["docs/outage-picture.svg", 720], ["docs/outage-picture-narrow.svg", 390]] as const) {
      const picture = committed(file)
      const sizes = [...picture.matchAll(/<text[^>]* font-size="([\d.]+)"/g)].map(([, size]) => Number(size))
      assert.strictEqual(sizes.length, picture.split("<text").length - 1)
      assert.isAtLeast(Math.min(...sizes), 14)
      assert.include(picture, `width="${least}"`)
    }
  })

  it("have the diagram of a call as it is drawn: npx tsx lab/scripts/call.ts", () => {
    assert.isTrue(committed(call.file) === call.drawn())
  })
})
