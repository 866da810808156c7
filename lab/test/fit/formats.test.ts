import { assert, describe, it } from "@effect/vitest"
import type { Entry } from "../../src/fit/entry.ts"
import { choose, type Format } from "../../src/fit/formats.ts"
import { nginx } from "../../src/fit/nginx.ts"

const read = (format: Format | undefined, lines: ReadonlyArray<string>, names = {}) => {
  const chosen = choose(lines, format, names)
  const entries: Array<Entry> = []
  const well = lines.slice(chosen?.skip ?? 0).map((line) =>
    chosen?.reader.read(line, (entry) => entries.push(entry) > 0)
  )
  return { format: chosen?.format, entries, well, unclear: chosen?.fields?.unclear, problem: chosen?.fields?.problem }
}

const entry = (endMillis: number, durationMillis: number | undefined, status: number, rest: Partial<Entry> = {}) => ({
  endMillis,
  durationMillis,
  status,
  attempt: undefined,
  call: undefined,
  upstream: undefined,
  ...rest
})

const at = (text: string) => Date.parse(text)

// The lines of Elastic Load Balancing and Envoy are those of their manuals.
const cases: ReadonlyArray<readonly [string, Format, ReadonlyArray<string>, ReturnType<typeof entry>]> = [
  [
    "nginx, the time bare at the end",
    "nginx",
    ["203.0.113.7 - bob [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 2326 \"http://x/\" \"Mozilla/4.08 [en]\" 0.250"],
    entry(at("2000-10-10T20:55:36Z"), 250, 200)
  ],
  [
    "nginx, headers of a client that look like its fields",
    "nginx",
    [
      "::1 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.0\" 200 0 \"-\" \"rt=1.000\" \"rt=30.000\" \"30.000\" \"attempt=2\" rid=\"01234567 rt=9.000\" attempt=1 rt=0.250 ua=\"10.0.0.1:80, 10.0.0.2:80\""
    ],
    entry(at("2000-10-10T13:55:36Z"), 250, 200, {
      attempt: 1,
      call: "01234567 GET / HTTP/1.0",
      upstream: "10.0.0.2:80"
    })
  ],
  [
    "nginx, the time by its name, with an attempt and an id",
    "nginx",
    [
      "::1 - - [10/Oct/2000:13:55:36 +0000] \"POST / HTTP/1.1\" 502 0 \"-\" \"a \\\"b\\\" 1.234\" \"10.0.0.1\" uct=0.001 rt=1.5 attempt=2 rid=0123456789ab"
    ],
    entry(at("2000-10-10T13:55:36Z"), 1500, 502, { attempt: 2, call: "0123456789ab POST / HTTP/1.1" })
  ],
  [
    "nginx, an agent that ends in a backslash, escaped",
    "nginx",
    [
      "::1 - - [10/Oct/2000:13:55:36 +0000] \"GET /a\\\\\\\" HTTP/1.0\" 200 0 \"-\" \"C:\\\\\" 0.250"
    ],
    entry(at("2000-10-10T13:55:36Z"), 250, 200)
  ],
  [
    "nginx, the shortest line: request, status, size",
    "nginx",
    ["::1 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.0\" 200 0"],
    entry(at("2000-10-10T13:55:36Z"), undefined, 200)
  ],
  [
    "nginx, combined without a time",
    "nginx",
    ["127.0.0.1 - - [10/Oct/2000:13:55:36 +0000] \"\\x16\\x03\" 400 157 \"-\" \"-\""],
    entry(at("2000-10-10T13:55:36Z"), undefined, 400)
  ],
  [
    "an ALB",
    "alb",
    [
      "https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 \"GET https://www.example.com:443/ HTTP/1.1\" \"curl/7.46.0\" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 \"Root=1-58337281-1d84f3d73c47ec4e58577259\" \"www.example.com\" \"arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012\" 1 2018-07-02T22:22:48.364000Z \"authenticate,forward\" \"-\" \"-\" \"10.0.0.1:80\" \"200\" \"-\" \"-\""
    ],
    entry(at("2018-07-02T22:23:00.186Z"), 171, 200, {
      call: "Root=1-58337281-1d84f3d73c47ec4e58577259 GET https://www.example.com:443/ HTTP/1.1",
      upstream: "10.0.0.1:80"
    })
  ],
  [
    "an ALB whose target did not answer",
    "alb",
    [
      "http 2018-11-30T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 - 0.000 -1 -1 502 - 34 366 \"GET http://www.example.com:80/ HTTP/1.1\" \"curl/7.46.0\" - - arn:tg \"-\" \"-\" \"-\" 0 2018-11-30T22:22:48.364000Z \"forward\""
    ],
    entry(at("2018-11-30T22:23:00.186Z"), undefined, 502, { upstream: "" })
  ],
  [
    "Envoy",
    "envoy",
    [
      "[2016-04-15T20:17:00.310Z] \"POST /api/v1/locations HTTP/2\" 204 - 154 0 226 100 \"10.0.35.28\" \"nsq2http\" \"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2\" \"locations\" \"tcp://10.0.2.1:80\""
    ],
    entry(at("2016-04-15T20:17:00.536Z"), 226.5, 204, {
      call: "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2 POST /api/v1/locations HTTP/2",
      upstream: "tcp://10.0.2.1:80"
    })
  ],
  [
    "Envoy in Istio",
    "envoy",
    [
      "[2020-11-25T21:26:18.409Z] \"GET /status/418 HTTP/1.1\" 418 - via_upstream - \"-\" 0 135 3 1 \"-\" \"curl/7.73.0-DEV\" \"84961386-6d84-929d-98bd-c5aee93b5c88\" \"httpbin:8000\" \"127.0.0.1:80\" inbound|8000|| - - - - default"
    ],
    entry(at("2020-11-25T21:26:18.412Z"), 3.5, 418, {
      call: "84961386-6d84-929d-98bd-c5aee93b5c88 GET /status/418 HTTP/1.1",
      upstream: "127.0.0.1:80"
    })
  ],
  [
    "JSON of nginx",
    "json",
    ["{\"time_iso8601\":\"2026-03-03T12:00:00+01:00\",\"status\":\"200\",\"request_time\":\"0.020\",\"request_id\":\"a1\",\"uri\":\"/x\"}"],
    entry(at("2026-03-03T11:00:00Z"), 20, 200, { call: "a1 /x" })
  ],
  [
    "JSON of pino",
    "json",
    ["{\"level\":30,\"time\":1772539200000,\"req\":{\"id\":7,\"url\":\"/x\"},\"res\":{\"statusCode\":503},\"responseTime\":12.5}"],
    entry(1772539200000, 12.5, 503, { call: "7 /x" })
  ],
  [
    "JSON with a beginning, a unit in the value, and retries",
    "json",
    ["{\"start_time\":1772539200.5,\"duration\":\"20ms\",\"status_code\":200,\"retry_count\":1}"],
    entry(1772539200520, 20, 200, { attempt: 2 })
  ],
  [
    "CSV with semicolons and quotes",
    "csv",
    ["time;path;status;latency_ms", "2026-03-03 12:00:00;\"/a;\"\"b\"\"\";200;7"],
    entry(at("2026-03-03T12:00:00Z"), 7, 200)
  ],
  [
    "OTLP, without a status of HTTP",
    "otlp",
    [
      JSON.stringify({
        resourceSpans: [{
          scopeSpans: [{
            spans: [{
              kind: "SPAN_KIND_CLIENT",
              startTimeUnixNano: "1772539200000000000",
              endTimeUnixNano: "1772539200020000000",
              status: { code: 2 },
              attributes: [{ key: "http.request.resend_count", value: { intValue: 2 } }]
            }]
          }]
        }]
      })
    ],
    entry(1772539200020, 20, 500, { attempt: 3 })
  ]
]

describe("a line", () => {
  it.each(cases)("of %s", (_, format, lines, expected) => {
    const found = read(undefined, lines)
    assert.strictEqual(found.format, format)
    assert.isTrue(found.well.every((well) => well))
    assert.deepStrictEqual(found.entries, [expected])
  })

  it.each(cases)("of %s, cut anywhere, is read or counted, and never throws", (_, format, lines) => {
    const chosen = choose(lines, format, {})!
    const line = lines.at(-1)!
    for (let length = 0; length < line.length; length++) {
      chosen.reader.read(line.slice(0, length), ({ endMillis, status }) => {
        assert.isTrue(Number.isFinite(endMillis) && Number.isInteger(status))
        return true
      })
    }
  })

  it("of nginx has a time, a request, a status and a size, or is none", () => {
    const time = "[10/Oct/2000:13:55:36 +0000]"
    const rows = [
      [`::1 - - ${time} "GET / HTTP/1.1" 200 1`, true],
      [` ${time} "" - -`, true],
      [`${time} "GET / HTTP/1.1" 200 1`, false],
      [`::1 - - ${time} GET / HTTP/1.1 200 1`, false],
      [`::1 - - [10/Oct/2000:13:55:36 +0000 "GET / HTTP/1.1" 200 1`, false],
      [`::1 - - [] "GET / HTTP/1.1" 200 1`, false],
      [`::1 - - ${time} "GET / HTTP/1.1" 200`, false],
      [`::1 - - ${time} "GET / HTTP/1.1"`, false],
      [`::1 - - ${time} "GET / HTTP/1.1" 2000 1`, false],
      ["", false]
    ] as const
    for (const [line, isRead] of rows) {
      let count = 0
      assert.strictEqual(nginx.read(line, () => ++count > 0), isRead, line)
      assert.strictEqual(count, isRead ? 1 : 0, line)
    }
  })

  it("is rejected if it only looks like a line of a format", () => {
    for (
      const line of [
        "hello",
        "{}",
        "{\"time\":1}",
        "[1,2]",
        "null",
        "x - - [99/Foo/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1",
        "x - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" abc 1",
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"kind\":2}]}]}]}"
      ]
    ) {
      assert.isUndefined(choose([line], undefined, {}), line)
    }
  })
})

describe("fields", () => {
  const lines = ["{\"at\":\"2026-03-03T12:00:00Z\",\"m\":{\"took\":\"3\"},\"code\":201,\"try\":2}"]
  const names = { time: "at", duration: "m.took", status: "code", attempt: "try", unit: "s" } as const

  it("are found by given names", () => {
    assert.deepStrictEqual(read("json", lines, names).entries, [
      entry(at("2026-03-03T12:00:00Z"), 3000, 201, { attempt: 2 })
    ])
  })

  it.each(["\"timeout\"", "\"ETIMEDOUT\"", "\"ESOCKETTIMEDOUT\"", "\"aborted\"", "null"])(
    "with the status %s are of a request without an answer",
    (status) => {
      const line = `{"time":"2026-03-03T12:00:00Z","duration_ms":1000,"status":${status}}`
      assert.deepStrictEqual(read("json", [line]).entries, [entry(at("2026-03-03T12:00:00Z"), 1000, 0)])
      const cell = status === "null" ? "" : JSON.parse(status)
      assert.deepStrictEqual(
        read("csv", ["time,duration_ms,status", `2026-03-03T12:00:00Z,1000,${cell}`]).entries,
        [entry(at("2026-03-03T12:00:00Z"), 1000, 0)]
      )
    }
  )

  it("that are empty leave the value to another name", () => {
    const line = `{"time":null,"ts":"2026-03-03T12:00:00Z","duration_ms":null,"status":null,"code":503}`
    assert.deepStrictEqual(read("json", [line]).entries, [entry(at("2026-03-03T12:00:00Z"), undefined, 503)])
  })

  it("say what is wrong with a line", () => {
    const good = `{"time":"2026-03-03T12:00:00Z","status":200}`
    for (
      const [line, problem] of [
        [`{"time":"2026-03-03T12:00:00Z","status":"ECONNREFUSED"}`, "status is \"ECONNREFUSED\""],
        [`{"time":"2026-03-03T12:00:00Z","res":{"statusCode":9999}}`, "res.statusCode is 9999"],
        [`{"ts":"noon","status":200}`, "ts is \"noon\""],
        [`{"status":200}`, "no time"],
        [`{"time":"2026-03-03T12:00:00Z"}`, "no status"]
      ] as const
    ) {
      assert.strictEqual(read("json", [good, line]).problem, problem)
    }
  })

  it("whose unit is unknown are reported", () => {
    const line = "{\"time\":\"2026-03-03T12:00:00Z\",\"latency\":3,\"status\":200}"
    assert.strictEqual(read("json", [line]).unclear, "latency")
    assert.strictEqual(read("json", lines, { ...names, unit: undefined }).unclear, "m.took")
    const known = read("json", [line], { unit: "us" })
    assert.deepStrictEqual([known.unclear, known.entries[0]?.durationMillis], [undefined, 0.003])
  })
})
