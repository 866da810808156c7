/** The arithmetic of a limit per window, to the last field. */
import { assert, describe, it } from "@effect/vitest"
import * as Allowance from "../../src/internal/math/tokenAllowance.ts"

/** A limit of 1,000 is 1 per millisecond. */
const config: Allowance.AllowanceConfig = { perMillis: 1000, burstMillis: 1000, slackMillis: 0, share: 1 }
const slack: Allowance.AllowanceConfig = { ...config, slackMillis: 100 }
const half: Allowance.AllowanceConfig = { ...config, share: 0.5 }

const fresh = (ceiling = 1000, of = config) => Allowance.at(Allowance.full(ceiling, of), 0)
const of = (tokens: number, given: Partial<Allowance.Allowance> = {}): Allowance.Allowance => ({
  ...fresh(),
  ...given,
  bucket: { tokens, updatedAtMillis: 0 }
})
const figures = ({ bucket, drawn, filling, held }: Allowance.Allowance) => [
  filling?.capacity,
  bucket.tokens,
  held,
  drawn
]

describe("an allowance", () => {
  it("is full at first, except for the slack and the others' share", () => {
    assert.deepStrictEqual(figures(fresh()), [1000, 1000, 0, 0])
    assert.deepStrictEqual(figures(fresh(1000, slack)), [900, 900, 0, 0])
    assert.deepStrictEqual(figures(fresh(1000, half)), [500, 500, 0, 0])
    assert.deepStrictEqual(figures(fresh(Infinity)), [undefined, 0, 0, 0])
  })

  it("says when an amount may be reserved: an amount of 0 always, one above the capacity when it is full", () => {
    const opens = (tokens: number, amount: number) => Allowance.opensInMillis(of(tokens), amount)
    assert.deepStrictEqual([opens(500, 500), opens(500, 501), opens(-500, 0), opens(-500, 500)], [0, 1, 0, 1000])
    assert.deepStrictEqual([opens(999, 5000), opens(1000, 5000), opens(0, 5000)], [1, 0, 1000])
    assert.strictEqual(Allowance.opensInMillis(fresh(Infinity), 1e9), 0)
  })

  it("holds what is reserved, and counts all that was ever drawn", () => {
    const reserved = Allowance.reserve(Allowance.reserve(fresh(), 300), 200)
    assert.deepStrictEqual(figures(reserved), [1000, 500, 500, 500])
    assert.deepStrictEqual(figures(Allowance.settle(reserved, 300, 100)), [1000, 700, 200, 500])
    assert.deepStrictEqual(figures(Allowance.settle(reserved, 300, 300)), [1000, 500, 200, 500])
    assert.deepStrictEqual(figures(Allowance.settle(reserved, 300, 950)), [1000, -150, 200, 1150])
    assert.deepStrictEqual(figures(Allowance.settle(of(900), 300, 0)), [1000, 1000, -300, 0])
  })

  it("without a limit it holds nothing back, but knows what is held", () => {
    const reserved = Allowance.reserve(fresh(Infinity), 300)
    assert.deepStrictEqual(figures(reserved), [undefined, -300, 300, 300])
    assert.strictEqual(Allowance.at(reserved, 500), reserved)
  })

  it("is drained to nothing; a debt stays", () => {
    assert.deepStrictEqual([Allowance.drain(of(300)), Allowance.drain(of(-300))].map(({ bucket }) => bucket.tokens), [
      0,
      -300
    ])
  })

  type Row = readonly [
    what: string,
    before: Allowance.Allowance,
    config: Allowance.AllowanceConfig,
    told: Allowance.StatedLimits,
    mark: Partial<Allowance.Snapshot & { readonly nowMillis: number }>,
    after: ReadonlyArray<number | undefined>
  ]
  const rows: ReadonlyArray<Row> = [
    ["nothing changes nothing", of(300), config, { limit: undefined, remaining: undefined }, {}, [1000, 300, 0, 0]],
    ["the same limit changes nothing", of(300), config, { limit: 1000, remaining: undefined }, {}, [1000, 300, 0, 0]],
    ["a higher limit than the ceiling changes nothing", of(300), config, { limit: 5000, remaining: undefined }, {}, [
      1000,
      300,
      0,
      0
    ]],
    ["a lower limit caps what is left", of(600), config, { limit: 400, remaining: undefined }, {}, [400, 400, 0, 0]],
    ["a lower limit leaves less than that", of(300), config, { limit: 400, remaining: undefined }, {}, [
      400,
      300,
      0,
      0
    ]],
    [
      "the first limit reported is full except for what is held",
      of(0, { ...fresh(Infinity), held: 250 }),
      config,
      {
        limit: 1000,
        remaining: undefined
      },
      { nowMillis: 70 },
      [1000, 750, 250, 0]
    ],
    ["what is left of an unknown limit says nothing", fresh(Infinity), config, { limit: undefined, remaining: 5 }, {}, [
      undefined,
      0,
      0,
      0
    ]],
    ["less is left than was known", of(600), config, { limit: undefined, remaining: 200 }, {}, [1000, 200, 0, 0]],
    ["more is left than was known", of(100), config, { limit: undefined, remaining: 200 }, {}, [1000, 200, 0, 0]],
    ["what has flowed in since the send may be there too", of(600), config, { limit: undefined, remaining: 200 }, {
      sentMillis: 100,
      nowMillis: 250
    }, [1000, 350, 0, 0]],
    [
      "with a share, others may have let more flow in",
      of(500, fresh(1000, half)),
      half,
      {
        limit: undefined,
        remaining: 200
      },
      { sentMillis: 100, nowMillis: 250 },
      [500, 350, 0, 0]
    ],
    ["a clock that went back lets nothing flow in", of(600), config, { limit: undefined, remaining: 200 }, {
      sentMillis: 250,
      nowMillis: 100
    }, [1000, 200, 0, 0]],
    ["the slack is held back from it", of(600, fresh(1000, slack)), slack, { limit: undefined, remaining: 300 }, {}, [
      900,
      200,
      0,
      0
    ]],
    [
      "what others held and what was drawn since may be gone",
      of(50, { drawn: 400 }),
      config,
      {
        limit: undefined,
        remaining: 500
      },
      { held: 120, drawn: 300 },
      [1000, 280, 0, 400]
    ],
    [
      "with a share, what is left for others raises nothing",
      of(50, fresh(1000, half)),
      half,
      {
        limit: undefined,
        remaining: 400
      },
      {},
      [500, 50, 0, 0]
    ]
  ]
  for (const [what, before, config, told, mark, after] of rows) {
    it(`learns: ${what}`, () => {
      const learned = Allowance.learn(before, config, told, {
        sentMillis: 0,
        nowMillis: 0,
        held: 0,
        drawn: 0,
        ...mark
      })
      assert.deepStrictEqual(figures(learned), after)
      if (before.filling === undefined && after[0] !== undefined) {
        assert.strictEqual(learned.bucket.updatedAtMillis, mark.nowMillis)
      }
    })
  }
})
