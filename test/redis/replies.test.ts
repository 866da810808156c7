/** What counts as an answer of Redis: anything else is a failure, after which the process decides alone. */
import { assert, describe, it } from "@effect/vitest"
import { coolDownReplyOf } from "../../src/redis/internal/coolDown.ts"
import { limiterReplyOf } from "../../src/redis/internal/limiter.ts"
import { quotaReplyOf } from "../../src/redis/internal/quotaClient.ts"

const readers = {
  "a cool-down": [coolDownReplyOf, [1, 250, "name"], [
    [4, 250, "name"],
    [1, -1, "name"],
    [1, "x", "name"],
    [1, Infinity, "name"],
    [1, 250, 7],
    [1, 250]
  ]],
  "a limiter": [limiterReplyOf, [0, "0", "0", "1", "0"], [
    [0, "0", "0", "0", "0"],
    [0, "-1", "0", "1", "0"],
    [0, "", "0", "1", "0"],
    [0, "0", Infinity, "1", "0"],
    [0, "0"]
  ]],
  "a quota": [(answer: unknown) => quotaReplyOf(answer, 1), ["5", 3, -1], [
    ["-1", 3, 0],
    ["", 3, 0],
    ["5", -1, 0],
    ["5", 3, -2],
    ["5", 3, Infinity],
    ["5", 3],
    ["5", 3, 0, 0]
  ]]
} as const

describe.each(Object.entries(readers))("an answer for %s", (_, [read, valid, invalid]) => {
  it("is read if each of its parts is possible", () => {
    assert.isDefined(read(valid))
    assert.deepStrictEqual([...invalid, "garbage"].filter((answer) => read(answer) !== undefined), [])
  })
})
