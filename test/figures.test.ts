/** Figures and superlatives that a visitor reads first, and what holds each of them. */
import * as fs from "node:fs"
import { assert, describe, it } from "vitest"

const root = new URL("../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")

/** Numbers and words for them, and words that say "without exception" or "more than others". */
const claim =
  /(?<![\w./`-])\d[\d,.]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|sixteen|twenty|hundreds?|thousands?|half|twice|triple|double|every\w*|any|all|only|never|always|none|nothing|exact\w*|linear|faster|fastest|slowest|smallest|largest|cheapest|safest|best|most|least)\b/gi

/** What is held: the words of a page, or the head of a table for all of it; then test files with a name, or commands. */
type Row = readonly [words: string, ...holders: ReadonlyArray<string>]

/** What the picture shows, for those who do not see it. */
const pictured = "After an outage of 10 s, calls with a concurrency limit are back after 1 s, " +
  "with the AWS standard mode after 2 minutes, with one retry not within the run."

const held: Record<string, ReadonlyArray<Row>> = {
  "README.md": [
    ["Effect 4, `fetch`", "test/Package.test.ts: has no run-time dependency but its peer effect"],
    [
      "1,000 calls to a service that is down, at most three attempts each: 1,100 requests, since the quota pays for 100 retries. With p-retry, cockatiel or `Effect.retry` alone: 3,000.",
      "test/examples/comparison.test.ts: Sends for 1,000 calls in a row"
    ],
    ["`Ada, after 3 sends`", "test/peers/examples.test.ts: prints what the index promises, and ends"],
    [
      "at most three attempts, with random waits of up to 1 and then 2 seconds between them",
      "test/core/StandardVectors.test.ts: vector:"
    ],
    ["only errors that can be retried", "test/core/RetryPolicy.test.ts: whileRetryable retries what is safe"],
    ["all modes", "test/aws/Conformance.test.ts: all of %s.json is run by a test, and it is on the page"],
    ["`^4.1.0`", "test/peers/runtimes.test.ts: names the runtimes that are run, and no others"],
    ["part of `effect` 4", "test/Package.test.ts: has no run-time dependency but its peer effect"],
    [
      "Node 20, 22 and 24",
      "test/Registries.test.ts: name the versions of Node that CI runs",
      "test/peers/runtimes.test.ts: names the runtimes that are run, and no others"
    ],
    [
      "The last response is the result, also if it is a 503",
      "test/examples/doors.test.ts: the fetch of the README"
    ],
    [pictured, "lab/test/pictures.test.ts: are what runs of the scenario show"],
    ["any other effect", "test/core/Contracts.test.ts: withRetry"],
    [
      "handles 300 requests per second gets 280 and is down for ten seconds",
      "lab/test/outageLength.test.ts: how long an outage of ten seconds lasts for callers"
    ],
    [
      "lasts 2 minutes if all callers are in one process, 6 minutes with 100 processes and 44 minutes with 1,000",
      "lab/test/outageLength.test.ts: is said by the README in minutes and seconds of the page"
    ],
    [
      "lasts 1 s, 7 s and 20 s.",
      "lab/test/outageLength.test.ts: is said by the README in minutes and seconds of the page"
    ],
    ["in theory it never ends", "lab/test/simulator/map.test.ts: Simulator.recoversBelow"],
    ["every page, every example", "test/docs.test.ts: llms.txt lists all pages and examples"],
    ["every module", "test/docs.test.ts: docs/modules.md names every module of the package"]
  ],
  "docs/site/home.md": [
    ["For Effect 4", "test/Package.test.ts: has no run-time dependency but its peer effect"],
    [
      "1,000 calls with three attempts each make 1,100 requests. With p-retry, cockatiel or `Effect.retry` alone they make 3,000",
      "test/examples/comparison.test.ts: Sends for 1,000 calls in a row"
    ],
    [pictured, "lab/test/pictures.test.ts: are what runs of the scenario show"],
    ["## Twelve words", "test/wordCounts.test.ts: has a box of twelve words"],
    ["| word | meaning |", "test/wordCounts.test.ts: has a box of twelve words"]
  ],
  "docs/aws-modes.md": [
    ["number of the retry, from 1, and `b` is random in `[0, 1)`", "test/core/BackoffVectors.test.ts: vector:"],
    [
      "| system | here | attempts |",
      "test/core/StandardVectors.test.ts: vector:",
      "test/aws/Conformance.test.ts: all of %s.json is run by a test, and it is on the page",
      "test/drivers/Waiter.test.ts: vector:"
    ]
  ],
  "docs/aws-sdk.md": [
    [
      "is tested with `@smithy/core` 3.41",
      "test/aws/ClassificationFuzz.test.ts: is tested with the version that docs/aws-sdk.md names"
    ],
    [
      "a quota of 500 tokens for each client",
      "test/aws/SdkModes.test.ts: next to StandardRetryStrategy of @smithy/core"
    ],
    ["all calls under one layer share a quota", "test/examples/sharing.test.ts: 40 requests in an outage send 40 times"]
  ],
  "docs/evidence/conformance.md": [
    ["every row says what its figures rest on", "test/aws/Conformance.test.ts: every figure of %s.json has a basis"],
    [
      "| file | what it holds |",
      "test/aws/Conformance.test.ts: all of %s.json is run by a test, and it is on the page"
    ],
    ["(2020-12) and describes every field", "test/aws/Conformance.test.ts: the schema refuses an unknown field"]
  ],
  "docs/effect-errors.md": [
    ["is retried only by `withMaybeRetryable`", "test/core/RetryPolicy.test.ts: whileRetryable retries what is safe"],
    ["| error, by its `reason` | retried | why |", "test/core/EffectErrors.test.ts: as Effect makes it"],
    ["is retryable only with the reason `TransportError`", "test/core/EffectErrors.test.ts: AiError"],
    ["| `HttpClientError` | GET and the like |", "test/core/EffectErrors.test.ts: HttpClientError"],
    ["| `PlatformError` | retried | why |", "test/core/EffectPlatformErrors.test.ts: PlatformError"],
    ["| `SocketError` | retried | why |", "test/core/EffectPlatformErrors.test.ts: SocketError and RpcClientError"],
    ["| `RpcClientError` | retried | why |", "test/core/EffectPlatformErrors.test.ts: RPC over anything else"]
  ],
  "docs/extending.md": [
    ["| contract | question | asked | ours |", "test/core/Contracts.test.ts: is asked before every send"],
    ["is settled exactly once", "test/core/Contracts.test.ts: leaves no pass unsettled, at any step"]
  ],
  "docs/limits.md": [
    ["is asked before every send of a call", "test/core/Contracts.test.ts: is asked before every send"],
    ["a quota before every retry", "test/core/Contracts.test.ts: a quota over a store"],
    [
      "| you want | here | Effect's own |",
      "test/core/Contracts.test.ts: is asked before every send",
      "test/examples/doors.test.ts: under the rate limiter and the breaker of Effect"
    ]
  ],
  "docs/llm.md": [
    ["sixteen requests at the same time", "test/llm/RetryLanguageModel.test.ts: seven pass immediately, then eight"],
    ["twenty requests and 4,000 tokens per second", "test/llm/RetryLanguageModel.test.ts: seven pass immediately"],
    ["None is refused", "test/llm/RetryLanguageModel.test.ts: seven pass immediately, then eight per second"]
  ],
  "docs/migrating.md": [
    ["Delays are equal for any settings", "test/examples/migrating.test.ts: law: any settings"],
    ["| from | settings | differs |", "test/examples/migrating.test.ts: law: any settings"],
    ["`retries: 5` is `maxAttempts(6)`", "test/examples/migrating.test.ts: law: any factor and number of retries"],
    ["without `maxAttempts` or `deadline` never ends", "test/core/RetryPolicy.test.ts: limits reads them all"],
    ["without `whileRetryable` retries every error", "test/examples/migrating.test.ts: retries both"]
  ],
  "docs/modules.md": [
    ["| module | what it holds |", "test/docs.test.ts: docs/modules.md names every module of the package"]
  ],
  "docs/evidence/performance.md": [["measures every figure of the table of floors", "npm run bench"]],
  "docs/evidence/reliability.md": [
    ["All tests run with `npm test`, except", "npm test", "npm run seeds", "npm run soak", "npm run test:peers"]
  ],
  "docs/simulator.md": [
    ["decide about every call", "lab/test/Simulator.test.ts: a call with a policy waits as it should"]
  ],
  "docs/what-comes-from-where.md": [
    ["in up to three places", "test/core/ServiceOrigins.test.ts: for each driver and each service"],
    ["all of them apply", "test/core/ServiceOrigins.test.ts: for each driver and each service"],
    ["Any other policy", "test/core/ServiceOrigins.test.ts: for each driver and each service"],
    [
      "only the kinds that are missing there",
      "test/core/ServiceOrigins.test.ts: pays from that, whatever quota is around the call"
    ]
  ],
  "docs/testing.md": [
    ["on the exact millisecond", "test/testing/time.test.ts: moves time by exactly the"]
  ]
}

/** The same of figures further down on a guide, those that decide something. */
const further: Record<string, ReadonlyArray<Row>> = {
  "docs/overload.md": [
    [
      "pays for at most 100 retries in an outage",
      "test/examples/outageNow.test.ts: makes 100 retries in a whole outage"
    ],
    ["| processes | quota alone | recovered after |", "lab/test/outageLength.test.ts: is in four rows on the page"],
    ["recovers within 200 s", "lab/test/outageMap.test.ts: in whole runs"],
    [
      "Retrying once it does up to 135 calls per second, with the AWS standard mode up to 240, with a concurrency limit at every load shown",
      "lab/test/outageMap.test.ts: has the loads up to which, by the page, each policy recovers"
    ],
    [
      "keep the service down: 42 % of the calls succeed",
      "lab/test/simulator/overload.test.ts: cool-down-herd: one hint"
    ]
  ],
  "docs/testing.md": [
    [`Effect.timeout("1 second")`, "test/testing/examples.test.ts: retriesTwice passes"]
  ],
  "docs/promises.md": [
    ["runs any policy", "test/core/Contracts.test.ts: retryPromise", "test/core/StopReasons.test.ts: retryPromise"]
  ],
  "docs/not-retried.md": [
    ["each call that is not retried, once", "test/core/StopReasons.test.ts: and the final reason at Warning, once"]
  ],
  "docs/limits.md": [
    ["a bucket alone pays for 100 retries", "test/examples/budgets.test.ts: the figures of docs/limits.md"],
    ["| ten calls at the same time", "test/core/EffectErrorsComposition.test.ts: the page says so"],
    [
      "Of twenty calls in the same half second, ten reach a service that is up",
      "test/examples/doors.test.ts: under the rate limiter"
    ]
  ],
  "docs/policies.md": [
    [
      "three processes with three attempts each make 27 sends",
      "test/http/RetryPropagationProcesses.test.ts: 27 sends arrive at the last one without propagation"
    ]
  ],
  "docs/modules.md": [
    ["| runtime | how |", "test/peers/runtimes.test.ts: names the runtimes that are run, and no others"]
  ],
  "docs/effect-errors.md": [
    ["restarts its count with every element", "test/drivers/RetryStream.test.ts: Stream.retry never ends"],
    [
      "| | `Stream.retry` | `untilFirst` | `resume` |",
      "test/drivers/RetryStream.test.ts: resets the count when a run lasts"
    ]
  ],
  "docs/evidence/compared.md": [
    [
      "| | effect-retry | `Effect.retry` |",
      "test/examples/comparison.test.ts: docs/evidence/compared.md: the libraries"
    ],
    ["|  | nothing | quota | throttle |", "lab/test/overload.test.ts: the figures of the page are those of runs"],
    [
      "120 random ones",
      "lab/test/randomScenarios.test.ts: at least 95 % of the possible on average and 75 % in the worst"
    ],
    [
      "with a thousand processes, the limit alone serves 81 %",
      "lab/test/simulator/overload.test.ts: thin-fleet: a thousand"
    ],
    ["it refuses 3 % of the calls", "lab/test/simulator/overload.test.ts: near-the-timeout: ordinary latencies"],
    [
      "48 % of its calls succeed during the shortage, and 65 % of the other's",
      "lab/test/simulator/overload.test.ts: two-fleets: one has a limit, the other has none"
    ],
    ["| options | `brownout`", "lab/test/simulator/overload.test.ts: brownout: half of the capacity is gone"],
    [
      "| published | here",
      "test/hedge/HedgeFigures.test.ts: takes a read of 1,000 keys from 1,800 ms to 74 ms",
      "test/hedge/HedgeFigures.test.ts: p99 falls by 74 % or more",
      "test/hedge/HedgeFigures.test.ts: is 32 without hedges"
    ]
  ],
  "docs/evidence/reality.md": [
    ["`npm run test:peers` runs fourteen of the rows", "npm run test:peers"],
    ["| real system | policy | succeed", "npx tsx test/peers/reality/table.ts"]
  ],
  "docs/durable.md": [
    ["at every step of three retries", "test/peers/durable.test.ts: the next one goes on, sends no earlier"],
    ["run two and ten processes side", "test/peers/durable-processes.test.ts: ten make each attempt once"]
  ]
}

/** A guide as far as its first heading or block of code; of the other pages all but code. Links are their words. */
const textOf = (path: string): string => {
  const page = read(path)
  const prose = guides.includes(path)
    ? /^# .*\n([^]*?)(?=^#|^```|(?![^]))/m.exec(page)![1]!
    : page.replace(/^```[^]*?^```$/gm, "\n")
  return prose.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/<img[^>]* alt="([^"]*)"[^>]*>/g, "$1").replace(
    /<\/?(?:picture|source)[^>]*>/g,
    ""
  )
}

const guides = ["docs", "docs/evidence"].flatMap((folder) =>
  fs.readdirSync(new URL(folder, root)).filter((name) => name.endsWith(".md")).map((name) => `${folder}/${name}`)
)
const pages = ["README.md", "docs/site/home.md", ...guides]

/** Paragraphs, each on a line. A table is its head: that goes for all of it. */
const blocksOf = (path: string) =>
  textOf(path).split(/\n\s*\n/).map((block) => {
    const text = block.trim()
    return text.startsWith("|")
      ? { text: text.split("\n")[0]!, claims: text.search(claim) < 0 ? [] : ["a table"] }
      : { text: text.replace(/\s+/g, " "), claims: text.match(claim) ?? [] }
  })

/** What no row holds. */
const unheld = (path: string) =>
  blocksOf(path).flatMap(({ claims, text }) => {
    const rest = rowsOf(path).reduce((rest, [words]) => rest.replaceAll(words, ""), text)
    return claims[0] === "a table"
      ? (rest === text ? [text] : [])
      : (rest.match(claim) ?? []).map((word) => `${word}: ${text}`)
  })

const rowsOf = (path: string) => held[path] ?? []

const { scripts } = JSON.parse(read("package.json"))

/** Whether a test file has a name, or a script exists. */
const exists = (holder: string): boolean => {
  const [, script] = /^npm (?:run )?([\w:]+)$/.exec(holder) ?? []
  if (script !== undefined) return script in scripts
  const [, command] = /^npx tsx (\S+)$/.exec(holder) ?? []
  if (command !== undefined) return fs.existsSync(new URL(command, root))
  const [, file, name] = /^(\S+\.test\.ts): (.+)$/.exec(holder) ?? []
  if (file === undefined || !fs.existsSync(new URL(file, root))) return false
  // A title, not an import or a comment.
  return read(file).split("\n").some((line) =>
    line.includes(name!) && /["`]/.test(line.slice(0, line.indexOf(name!))) && !/^\s*(import|\/\/|\*)/.test(line)
  )
}

describe.each(pages)("%s", (path) => {
  it("has no figure or superlative that is not in the table above", () => assert.deepStrictEqual(unheld(path), []))

  it("has the words of each row, with a figure or superlative in them", () => {
    const blocks = blocksOf(path)
    const stale = rowsOf(path).filter(([words]) =>
      !blocks.some(({ claims, text }) => text.includes(words) && (claims[0] === "a table" || words.search(claim) >= 0))
    )
    assert.deepStrictEqual(stale, [])
  })
})

it.each(Object.entries(further))("%s has the words of each figure further down", (path, rows) => {
  const text = read(path).replace(/\s+/g, " ")
  assert.deepStrictEqual(rows.filter(([words]) => !text.includes(words.replace(/\s+/g, " "))), [])
})

it("the rows name pages that are read, and tests and commands that exist", () => {
  assert.deepStrictEqual(Object.keys(held).filter((path) => !pages.includes(path)), [])
  const holders = [held, further].flatMap((tables) => Object.values(tables)).flatMap((rows) =>
    rows.flatMap(([, ...holders]) => holders)
  )
  assert.deepStrictEqual(holders.filter((holder) => !exists(holder)), [])
})
