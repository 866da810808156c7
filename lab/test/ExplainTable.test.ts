import * as Explain from "@effect-retry/lab/Explain"
import { assert, describe, it } from "@effect/vitest"
import { awsDynamoDB2026, AwsModes, awsStandard, Backoff, RetryInfo, RetryPolicy } from "effect-retry"
import { patient } from "../../examples/own-policy.ts"

describe("Explain.toTable", () => {
  it("prints what a policy does", () => {
    const table = Explain.toTable(Explain.explain(awsStandard, { name: "awsStandard", failureRates: [0, 0.3, 0.5, 1] }))
    assert.strictEqual(
      table,
      `awsStandard: at most 3 attempts, every attempt fails (transient) after 0 ms

retry   min     p50     p99  max  tokens a/b/c  left  sent by   made  then ends
1      0 ms  500 ms  990 ms  1 s        5/10/5   495      1 s  100 %  -
2      0 ms     1 s  1.98 s  2 s        5/10/5   490      3 s  100 %  max-attempts 100 %
tokens: a after a transient failure, b after a timeout, c after a throttle

A failing call ends after at least 0 ms, p50 ~1.5 s, p99 ~2.8 s, at most 3 s.
~: from 1000 sampled calls, two digits.
The quota (500 of 500 tokens) pays for 100 retries while nothing succeeds, and kicks in at a failure rate of 32.1 %.

attempts fail  without quota  sends per call  calls succeed
0 %                     1.00            1.00          100 %
30 %                    1.39            1.39         97.3 %
50 %                    1.75            1.20           60 %
100 %                   3.00            1.00            0 %`
    )
  })

  it("prints what a policy without a quota does, with a deadline and delays of samples", () => {
    const policy = Backoff.decorrelated(100, { cap: 5000 }).pipe(RetryPolicy.deadline("700 millis"))
    const table = Explain.toTable(Explain.explain(policy, { attempt: "150 millis", failureRates: [] }))
    assert.match(table, /^no attempt limit, deadline 700 ms, every attempt fails \(transient\) after 150 ms\n/)
    assert.match(table, /\nretry +min +p50 +p99 +max +sent by +made +then ends\n/)
    assert.match(table, /\n2 +100 ms +~\d+ ms +~\d+0 ms +\d+ ms .* +~\d\d %/)
    assert.include(table, "\n~: from 5000 sampled calls, two digits.\n")
    assert.notInclude(table, "token")
    assert.include(table, "at most 850 ms.")
  })

  for (
    const [text, explanation] of [
      ["no known latency", Explain.explain(AwsModes.standard({ maxAttempts: Infinity }), { samples: 5 })],
      ["Only the first 10 retries", Explain.explain(AwsModes.standard({ maxAttempts: Infinity }), { samples: 5 })],
      ["no bound", Explain.explain(AwsModes.standard({ maxAttempts: Infinity }), { samples: 5 })],
      ["(not retryable)", Explain.explain(awsStandard, { failure: RetryInfo.notRetryable, samples: 5 })],
      ["Without a retry: final 100 %.", Explain.explain(awsStandard, { failure: RetryInfo.notRetryable, samples: 5 })],
      [
        "(throttling, asking for 3 s)",
        Explain.explain(awsStandard, { failure: RetryInfo.throttled("3 seconds"), samples: 5 })
      ],
      ["> 99.9 %", Explain.explain(awsDynamoDB2026, { failureRates: [0.01], samples: 5 })],
      ["asking for 1 h)", Explain.explain(awsStandard, { failure: RetryInfo.throttled("1 hour"), samples: 5 })],
      [
        "pays for every retry, and never kicks in",
        Explain.explain(RetryPolicy.withQuota({ cost: 0 })(awsStandard), { samples: 5 })
      ],
      [
        "ends after at most 30 s: not all were followed to the end.",
        Explain.explain(RetryPolicy.deadline("30 seconds")(Backoff.fixed(100)), { samples: 5 })
      ],
      [
        "     7   493 ",
        Explain.explain(
          RetryPolicy.fromDelay(({ error }) => error === "busy" ? 100 : undefined).pipe(
            RetryPolicy.maxAttempts(3),
            RetryPolicy.quotaGated({ cost: 7 })
          ),
          { error: "busy", samples: 5 }
        )
      ],
      ["at most 90.05 min", Explain.explain(awsStandard, { attempt: "30 minutes", samples: 5 })],
      ["at most 3 h", Explain.explain(awsStandard, { attempt: "1 hour", samples: 5 })],
      ["at most 3 d", Explain.explain(awsStandard, { attempt: "1 day", samples: 5 })]
    ] as const
  ) {
    it(`says "${text}"`, () => {
      const table = Explain.toTable(explanation)
      assert.include(table, text)
    })
  }

  it("leaves out the retries that a quota pays for if none is made", () => {
    const table = Explain.toTable(Explain.explain(awsStandard, { failure: RetryInfo.notRetryable, samples: 20 }))
    assert.notInclude(table, "pays for")
  })

  it("marks nothing where nothing is random", () => {
    const table = Explain.toTable(
      Explain.explain(RetryPolicy.maxAttempts(3)(Backoff.fixed(100)), { samples: 20 })
    )
    assert.notInclude(table, "~")
    assert.include(table, "A failing call ends after 200 ms.")
  })

  it("fits into the columns that there are", () => {
    const explanation = Explain.explain(awsStandard, { samples: 50 })
    for (const columns of [40, 60, 80]) {
      const lines = Explain.toTable(explanation, { columns }).split("\n")
      assert.isAtMost(Math.max(...lines.map(({ length }) => length)), columns)
    }
    assert.include(Explain.toTable(explanation, { columns: 40 }), "not shown in 40 columns: ")
  })

  it("law: columns but the last end where their heads end, and no line ends with a space", () => {
    for (const policy of [awsStandard, patient, awsDynamoDB2026]) {
      const lines = Explain.toTable(Explain.explain(policy, { samples: 50 })).split("\n")
      assert.isTrue(lines.every((line) => line === line.trimEnd()))
      const head = lines.findIndex((line) => line.startsWith("retry"))
      const ends = (line: string) => [...line.matchAll(/\S(?= {2}|$)/g)].map(({ index }) => index)
      for (const row of lines.slice(head + 1).filter((line) => /^\d+ {2}/.test(line))) {
        assert.deepStrictEqual(ends(row).slice(1, -1), ends(lines[head]!).slice(1, -1), row)
      }
    }
  })
})
