/** How long an answer asks to wait, by each header and form. */
import { assert, describe, it } from "@effect/vitest"
import { hintMillis, retryAfterMillis } from "../../src/internal/classification/hint.ts"

const nowMillis = Date.UTC(2026, 2, 17, 17, 37, 54)
const minute = 60_000

type Headers = Readonly<Record<string, unknown>>
type Row = readonly [headers: Headers, millis: number | undefined]

const hintOf = (headers: Headers, status?: number) =>
  hintMillis({ header: (name) => headers[name], status, bodies: () => [] }, () => nowMillis)

const table = (name: string, status: number | undefined, rows: ReadonlyArray<Row>) =>
  describe(name, () => {
    for (const [headers, millis] of rows) {
      const shown = Object.entries(headers).map(([key, value]) => `${key}: ${String(value).slice(0, 60)}`).join(", ")
      it(`${shown} is ${millis === undefined ? "no wait" : `${millis} ms`}`, () => {
        assert.strictEqual(hintOf(headers, status), millis)
      })
    }
  })

const windowEnd = (value: string, millis: number | undefined): Row => [{ "x-ratelimit-reset": value }, millis]

describe("hints", () => {
  it("come from headers, and only from headers", () => {
    assert.isUndefined(hintMillis({ header: () => undefined, status: 429, bodies: () => [] }, () => nowMillis))
    assert.isUndefined(hintOf({}, 429))
  })

  table(
    "the end of a window",
    429,
    [
      ["6m0s", 6 * minute],
      ["17ms", 17],
      ["1h2m3s", 3_723_000],
      ["1.5s", 1500],
      ["0.25s", 250],
      ["12.75s", 12_750],
      ["2d", 172_800_000],
      ["10ms20s", 20_010],
      ["in 6m", undefined],
      ["6m later", undefined],
      ["6", 6000],
      ["6w", undefined],
      ["1.s", undefined],
      [".5s", undefined],
      ["1.xs", undefined],
      ["2026-03-17T17:38:54Z", minute],
      ["2026-03-17t17:38:54z", minute],
      ["2026-03-17T17:38:54.500Z", 60_500],
      ["2026-03-17T18:38:54+01:00", minute],
      ["2026-03-17T12:08:54-05:30", minute],
      ["2026-03-17T17:36:54Z", undefined],
      ["2026-03-17T17:37:54Z", undefined],
      ["2026-03-17", undefined],
      ["2026-03-17T17:38:54", undefined],
      ["x2026-03-17T17:38:54Z", undefined],
      ["2026-03-17T17:38:54Zx", undefined],
      ["2026-03-17T17:38:54+01", undefined],
      ["2027", 2_027_000],
      ["Mar 17 2027", undefined],
      [`${nowMillis / 1000 + 1}`, 1000],
      [`${nowMillis + 1}`, 1],
      ["999999999", 999_999_999_000],
      ["1000000000", undefined],
      ["6m0s, 7m0s", 7 * minute],
      ["6m0s, soon", 6 * minute]
    ].map(([value, millis]) => windowEnd(value as string, millis as number | undefined))
  )

  table("windows count if nothing remains", 503, [
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": "0" }, 3000],
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": " 0 " }, 3000],
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": "5, 0" }, 3000],
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": "0 , 5" }, 3000],
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": "10" }, undefined],
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": "01" }, undefined],
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": "0.5" }, undefined],
    [{ "x-ratelimit-reset": "3", "x-ratelimit-remaining": "-0" }, undefined],
    [{ "x-ratelimit-reset": "3", "ratelimit-remaining": "0" }, 3000],
    [{ "ratelimit-reset": "3", "x-ratelimit-remaining": "0" }, 3000],
    [{ "x-ratelimit-remaining": "0" }, undefined],
    [{
      "x-ratelimit-reset-requests": "3",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-tokens": "9",
      "x-ratelimit-remaining-tokens": "5"
    }, 3000],
    [{
      "anthropic-ratelimit-input-tokens-reset": "2026-03-17T17:38:54Z",
      "anthropic-ratelimit-input-tokens-remaining": "0",
      "anthropic-ratelimit-requests-reset": "2026-03-17T18:38:54Z",
      "anthropic-ratelimit-requests-remaining": "1"
    }, minute]
  ])

  table("after a 429 the longest window counts, if none is used up", 429, [
    [{ "x-ratelimit-reset-requests": "3s", "x-ratelimit-reset-tokens": "9s" }, 9000],
    [{
      "x-ratelimit-reset-requests": "3s",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-tokens": "9s",
      "x-ratelimit-remaining-tokens": "5"
    }, 3000]
  ])

  table("RateLimit, after a 429", 429, [
    [{ ratelimit: `"a";r=0;t=30` }, 30_000],
    [{ ratelimit: `"a";r=5;t=30` }, 30_000],
    [{ ratelimit: `"a";r=0;t=30, "b";r=0;t=60` }, minute],
    [{ ratelimit: `"a";r=0;t=30, "b";r=1;t=60` }, 30_000],
    [{ ratelimit: `  "a" ; r=0; t=30  ` }, undefined],
    [{ ratelimit: ` "a"; r=0; t=30 ` }, 30_000],
    [{ ratelimit: `"a";r=0` }, undefined],
    [{ ratelimit: `"a";t=30` }, undefined],
    [{ ratelimit: `"a";r=x;t=30` }, undefined],
    [{ ratelimit: `"a";r=0;t=30 and more` }, undefined],
    [{ ratelimit: `a;r=0;t=30` }, undefined],
    [{ ratelimit: `"a\\"b";r=0;t=30` }, 30_000],
    [{ ratelimit: `"a";pk=:x:;r=0;t=30` }, 30_000],
    [{ ratelimit: 5 }, undefined],
    [{ ratelimit: `"${"a".repeat(1010)}";r=0;t=30` }, 30_000],
    [{ ratelimit: `"${"a".repeat(1020)}";r=0;t=30` }, undefined]
  ])

  table("RateLimit, else", 503, [
    [{ ratelimit: `"a";r=0;t=30` }, 30_000],
    [{ ratelimit: `"a";r=1;t=30` }, undefined],
    [{ ratelimit: `"a";r=0;t=30`, "ratelimit-policy": `"a";q=5;qu="content-bytes"` }, undefined],
    [{ ratelimit: `"a";r=0;t=30`, "ratelimit-policy": `"a";q=5;qu="concurrent-requests"` }, undefined],
    [{ ratelimit: `"a";r=0;t=30`, "ratelimit-policy": `"a";q=5;qu="requests"` }, 30_000],
    [{ ratelimit: `"a";r=0;t=30`, "ratelimit-policy": `"a";q=5` }, 30_000],
    [{ ratelimit: `"a";r=0;t=30`, "ratelimit-policy": `"b";q=5;qu="content-bytes"` }, 30_000]
  ])

  table(
    "dates of HTTP",
    undefined,
    [
      ["Tue, 17 Mar 2026 17:38:54 GMT", minute],
      ["Tue, 17 Mar 2026 17:38:54 gmt", minute],
      ["Tuesday, 17-Mar-26 17:38:54 GMT", minute],
      ["Tue Mar 17 17:38:54 2026", minute],
      ["Tue, 17 Mar 2026 17:38:54 GMT GMT", undefined],
      ["Tue, 17 Mar 2026 17:38:54 PST", undefined],
      ["Sun, 31 Feb 2027 17:38:54 GMT", undefined],
      ["Tue, 17 Mar 2026", undefined]
    ].map(([value, millis]): Row => [{ "retry-after": value }, millis as number | undefined])
  )

  table("the clock of the answer counts", undefined, [
    [{ "retry-after": "Tue, 17 Mar 2026 17:38:54 GMT", date: "Tue, 17 Mar 2026 17:38:44 GMT" }, 10_000],
    [{ "retry-after": "Tue, 17 Mar 2026 17:38:54 GMT", date: "yesterday" }, minute]
  ])

  it("of an error have one value, in the headers of an SDK's response", () => {
    const of = (headers: Headers) => retryAfterMillis({ $response: { headers } }, () => nowMillis)
    assert.deepStrictEqual(
      [
        of({ "x-amz-retry-after": "1500", "retry-after": "7" }),
        of({ "Retry-After": "7" }),
        of({ "retry-after": "7, 9" }),
        of({ "retry-after": "Tue, 17 Mar 2026 17:38:54 GMT" }),
        of({ "retry-after": 7 }),
        of({}),
        retryAfterMillis(new Error("none"), () => nowMillis)
      ],
      [1500, 7000, undefined, minute, undefined, undefined, undefined]
    )
  })
})
