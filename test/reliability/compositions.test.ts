import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { budget } from "../utils/budget.ts"
import { play, type Played } from "./utils/compositions.ts"

// SEED=123 npx vitest run test/reliability/compositions.test.ts replays one; COMPOSITIONS=10000 plays more.
const given = process.env["SEED"]
const count = Number(process.env["COMPOSITIONS"] ?? budget(600, 300))
const seeds = given === undefined ? Array.from({ length: count }, (_, n) => n + 1) : [Number(given)]

const played = (seed: number) => Effect.runPromise(Effect.provide(play(seed), TestClock.layer()))

describe("random compositions of drivers, gates, stores and observers, interrupted at random steps", () => {
  const all: Array<Played> = []
  beforeAll(async () => {
    for (const seed of seeds) all.push(await played(seed))
  })

  it(`conserve all tokens, settle each pass once and leave no fiber behind, over ${seeds.length} seeds`, () => {
    for (const [n, { faults, text }] of all.entries()) assert.deepStrictEqual(faults, [], `SEED=${seeds[n]}: ${text}`)
  })

  it("play the same for the same seed", async () => {
    for (const seed of seeds.slice(0, 20)) assert.deepStrictEqual(await played(seed), all[seeds.indexOf(seed)])
  })

  it.skipIf(given !== undefined)("send, retry and are interrupted in plenty", () => {
    const sum = (of: (one: Played) => number) => all.reduce((total, one) => total + of(one), 0)
    assert.isAtLeast(sum(({ sends }) => sends), 2 * count)
    assert.isAbove(sum(({ retries }) => retries), count / 2)
    assert.isAbove(all.filter(({ wasInterrupted }) => wasInterrupted).length, count / 10)
  })
})
