/** What names all of something names each, and nothing else: modules, pages, examples, metrics, reasons. */
import { assert, describe, it } from "@effect/vitest"
import { stopReasons } from "effect-retry/RetryDecision"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as fs from "node:fs"
import { importOf, publicModules } from "./utils/modules.ts"
import { drawing, drawn } from "./utils/rooms.ts"

const root = new URL("../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")
const listed = (folder: string, ending: RegExp) =>
  fs.readdirSync(new URL(folder, root), { encoding: "utf8", recursive: true }).filter((name) => ending.test(name))
    .map((name) => `${folder}/${name}`)

interface Group {
  readonly pages: ReadonlyArray<readonly [path: string, title: string]>
}

/** A conformance table, as far as it names where its figures come from. */
interface Table {
  readonly sdks?: ReadonlyArray<{ readonly sources: ReadonlyArray<string> }>
  readonly sources?: ReadonlyArray<string>
}

const missing = (names: Iterable<string>, there: ReadonlySet<string>) => [...names].filter((name) => !there.has(name))

describe("docs/modules.md", () => {
  const rows = [...read("docs/modules.md").split("\n## ")[0]!.matchAll(/^\| (\* )?(`.*?) \|/gm)].flatMap(
    ([, star, cell]) =>
      [...cell!.replace(/\(.*?\)/g, "").matchAll(/`(.+?)`/g)].map(([, name]) => ({
        name: name!,
        isApart: star !== undefined
      }))
  )
  const nameOf = (path: string) => path.replace(/^effect-retry\//, "").replace(/^testing\/.*/, "testing")
  const modules = publicModules.filter(({ name }) => name !== "effect-retry")

  it("has a row for each public module, and for no other", () => {
    const there = new Set(
      rows.map(({ name }) => (modules.some((one) => nameOf(one.name) === `aws/${name}`) ? `aws/${name}` : name))
    )
    const expected = new Set(modules.map(({ name }) => nameOf(name)).filter((name) => name !== "InvalidOption"))
    assert.deepStrictEqual([missing(expected, there), missing(there, expected)], [[], []])
  })

  it("has a star for what is not in the index", async () => {
    const index = await importOf("src/index.ts")
    for (const { isApart, name } of rows.filter(({ name }) => /^\w+$/.test(name))) {
      const { source } = modules.find((one) => nameOf(one.name).split("/").at(-1) === name)!
      const own = Object.entries(await importOf(source))
      assert.strictEqual(name in index || own.some(([key, value]) => index[key] === value), !isApart, name)
    }
  })
})

it("the README and docs/modules.md name the versions of Node that CI runs", () => {
  const [, versions] = /^\s+node: \[(.+)\]$/m.exec(read(".github/workflows/ci.yml"))!
  assert.include(read("docs/modules.md"), `| Node ${versions} | `)
  assert.include(read("README.md"), `Node ${versions!.replace(/, (\d+)$/, " and $1")} (`)
})

it("the sidebar of the site has each page, and no other", async () => {
  const { groups } = await importOf("docs/site/pages.js") as { readonly groups: ReadonlyArray<Group> }
  const there = new Set(groups.flatMap(({ pages }) => pages.map(([path]) => path)))
  assert.deepStrictEqual(missing(listed("docs", /^(?:evidence\/)?[^/]*\.md$/), there), [])
  assert.deepStrictEqual([...there].filter((path) => !fs.existsSync(new URL(path, root))), [])
})

/** Files, and folders of several, but for the one that they share. */
const exampleNames = fs.readdirSync(new URL("examples/", root), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() ? entry.name !== "support" : entry.name.endsWith(".ts")).map(({ name }) =>
    name
  )

it("examples/README.md has a row for each example, and for no other", () => {
  const links = read("examples/README.md").matchAll(/\]\(([\w-]+(?:\.ts)?)[/)]/g)
  const named = new Set(Array.from(links, ([, name]) => name!))
  assert.deepStrictEqual([missing(exampleNames, named), missing(named, new Set(exampleNames))], [[], []])
})

it("each example stands on a page", () => {
  const pages = ["README.md", "AGENTS.md", "lab/README.md", ...listed("docs", /^[^/]*\.md$/)].map(read).join("\n")
  const named = new Set(Array.from(pages.matchAll(/\bexamples\/([\w-]+(?:\.ts)?)/g), ([, name]) => name!))
  assert.deepStrictEqual(missing(exampleNames, named), [])
})

it("each example, or a file of its folder, is imported or started by a test", () => {
  const tests = [...listed("test", /\.ts$/), ...listed("lab/test", /\.ts$/)].map(read).join("\n")
  const names = exampleNames.map((name) => name.replace(/\.ts$/, ""))
  const named = new Set(
    names.filter((name) => new RegExp(`["/\`]${name}(\\.ts)?["\`]|examples/${name}/`).test(tests))
  )
  assert.deepStrictEqual(missing(names, named), [])
})

/** A module, with the files of its folder that it makes something by. */
const withMakers = (source: string): string => {
  const text = read(source)
  const makers = text.matchAll(
    /^import (?:[^"]*(?:\bover|Kind|\* as Gate)\b[^"]* from "(?=\.\/internal)|[^"]* from "(?=\.\/internal\/\w+Options))(\.\/internal\/\w+\.ts)"$/gm
  )
  return [text, ...Array.from(makers, ([, path]) => read(new URL(path!, `file:///${source}`).pathname.slice(1)))].join(
    "\n"
  )
}

/** Public modules that make stores and gates only as other modules make them. */
const ofOthers: Readonly<Record<string, string>> = {
  ResourceLimiters: "has those of the modules that it is configured by, one for each key",
  RetryConfigRedis: "has those of RetryQuotaRedis, CoolDownRedis and AdaptiveRateLimiterRedis"
}

it.each([["SendGate", "SendGateSuite"], ["RetryQuotaStore", "RetryQuotaStoreSuite"]])(
  "each module that makes a %s has a test that runs the %s",
  (contract, suite) => {
    const sources = listed("src", /\.ts$/).map(read).join("\n")
    const classes = (relation: string) =>
      Array.from(sources.matchAll(new RegExp(`class (\\w+).* ${relation}\\b`, "g")), ([, name]) => name!)
    const own = classes(`implements (?:\\w+\\.)?${contract}`)
    const all = [...own, ...own.flatMap((name) => classes(`extends (?:\\w+\\.)?${name}`))].join("|")
    const makes = new RegExp(`^(?! \\*).*(?:\\bnew (?:\\w+\\.)?(?:${all})\\b|extends ${contract}\\.\\w)`, "m")
    const runs = new RegExp(`${suite}\\.\\w*laws\\([^]*thinned\\(`, "i")
    const tests = listed("test", /\.test\.ts$/).map(read).filter((text) => runs.test(text))
    const makers = publicModules.filter(({ source }) => makes.test(withMakers(source))).map(({ name }) =>
      name.split("/").at(-1)!
    )
    assert.isAbove(makers.length, contract === "SendGate" ? 8 : 4)
    const tested = makers.filter((name) => tests.some((text) => new RegExp(`\\b${name}\\b`).test(text)))
    assert.deepStrictEqual(missing(makers, new Set([...tested, ...Object.keys(ofOthers)])), [])
  }
)

describe("metrics", async () => {
  const exported = (await Promise.all(
    publicModules.map(async ({ name, source }) =>
      Object.values(await importOf(source)).filter(Metric.isMetric).map((metric) => ({
        id: metric.id,
        module: name,
        metric
      }))
    )
  )).flat()
  /** A gate brings its gauges. */
  const ofGates = listed("src/gates", /\.ts$/).flatMap((path) =>
    Array.from(read(path).matchAll(/"(retry_\w+)"/g), ([, name]) => name!)
  )
  const ids = new Set([...exported.map(({ id }) => id), ...ofGates])
  const own = exported.filter(({ module }) => module === "effect-retry/RetryMetrics").map(({ id }) => id).concat(
    ofGates
  )
  const isCounter = (metric: Metric.Metric<never, unknown>): metric is Metric.Counter<number> =>
    metric.type === "Counter"
  const namedIn = (text: string) =>
    new Set(Array.from(text.matchAll(/\bretry_\w+/g), ([name]) => name.replace(/_(bucket|count|sum)$/, "")))

  it("have their row in docs/observing.md, and those of other modules are on a page", () => {
    assert.isAbove(own.length, 10)
    const rows = read("docs/observing.md").match(/^\| `retry_.*$/gm)!.join("\n")
    const there = namedIn(rows)
    assert.deepStrictEqual([missing(own, there), missing(there, new Set(own))], [[], []])
    assert.deepStrictEqual(missing(ids, namedIn(listed("docs", /\.md$/).map(read).join("\n"))), [])
  })

  it("have a description, and their counters never go down", async () => {
    for (const { id, metric } of exported) {
      assert.isNotEmpty(metric.description, id)
      if (!isCounter(metric)) continue
      const counted = Metric.update(metric, 2).pipe(
        Effect.andThen(Metric.update(metric, -1)),
        Effect.andThen(Metric.value(metric)),
        Effect.provideService(Metric.MetricRegistry, new Map())
      )
      assert.strictEqual((await Effect.runPromise(counted)).count, 2, id)
    }
  })

  it("are all on the dashboard, which like the alerts shows no other", () => {
    const there = namedIn(read("examples/grafana/effect-retry.json"))
    // retry_quota_fallback is what these decisions come to.
    assert.deepStrictEqual([missing(ids, there), missing(there, ids)], [["retry_quota_decisions"], []])
    assert.deepStrictEqual(missing(namedIn(read("examples/grafana/alerts.yml")), ids), [])
  })
})

describe("NOTICE", () => {
  const lines = read("NOTICE").split("\n").filter((line) => line.startsWith("  ")).map((line) => line.trim())

  /** A repository, a package or a document, of those that a source names. */
  const namesOf = (source: string): ReadonlyArray<string> => {
    const names = source.match(/(?<=github\.com\/)[\w-]+\/[\w-]+|@(?:aws-sdk|smithy)\/[\w-]+|(?<=npm )[\w-]+/g)
    return names ?? [/^AWS [\w ]*?(?=[\d., ]*,)/.exec(source)?.[0] ?? source]
  }

  it("has a line for each source of a conformance table, and no line of AWS for another", () => {
    const tables = listed("docs/conformance", /\.json$/).filter((path) => !path.endsWith("schema.json"))
    const sources = tables.flatMap((path) => {
      const { sdks = [], sources = [] } = JSON.parse(read(path)) as Table
      return [...sources, ...sdks.flatMap((sdk) => sdk.sources)]
    })
    const names = new Set(sources.flatMap(namesOf))
    assert.isAbove(names.size, 20)
    const there = new Set(lines.map((line) => line.replace(/^npm /, "")))
    assert.deepStrictEqual(missing(names, there), [])
    const ofAws = [...there].filter((line) =>
      /^(?:aws|awslabs|boto|smithy-lang)\/|^@(?:aws-sdk|smithy)\/|^aws-sdk$/.test(line)
    )
    assert.deepStrictEqual(missing(ofAws, names), [])
  })

  it("names each SDK that a comment of src gives as its source", () => {
    const code = listed("src", /\.ts$/).map(read).join("\n")
    const sources = [...code.matchAll(/Source\**:([^]*?)(?=\n \*\n|\*\/)/g)].map(([, text]) => text!)
    const names = new Set(
      sources.flatMap((text) => text.match(/\b(?:aws-sdk|smithy(?!-lang)|grpc)-[a-z]\w*(?:-v2)?|\bbotocore\b/g) ?? [])
    )
    assert.isAbove(names.size, 12)
    assert.deepStrictEqual(
      [...names].filter((name) => !lines.some((line) => new RegExp(`\\b${name}\\b`).test(line))),
      []
    )
  })
})

it("each reason to stop has a row in docs/not-retried.md, and no other", () => {
  const reasons = new Set<string>(stopReasons)
  const rows = new Set(Array.from(read("docs/not-retried.md").matchAll(/^\| `([a-z-]+)` \|/gm), ([, name]) => name!))
  assert.isAbove(reasons.size, 5)
  assert.deepStrictEqual([missing(reasons, rows), missing(rows, reasons)], [[], []])
})

describe("docs/maintaining.md", () => {
  const page = read("docs/maintaining.md")
  const sectionOf = (title: string) => page.split(`\n## ${title}\n`)[1]!.split("\n## ")[0]!

  /** What the first and the last cell of each row of a section name. */
  const rowsOf = (title: string) =>
    Array.from(
      sectionOf(title).matchAll(/^\| (?!---|room|file)(.*?) \|.*\| (.*) \|$/gm),
      ([, first, last]) => [first!, last!].map((cell) => Array.from(cell.matchAll(/`(.*?)`/g), ([, name]) => name!))
    )
  const rows = [...rowsOf("The rooms"), ...rowsOf("The engine")]

  it("begins with the rooms of src, drawn from its imports", () => {
    assert.strictEqual(drawn.exec(page)![0], drawing(), "npm run llms")
  })

  it("has a row for each folder of src that is not private, and for each file of the engine", () => {
    const sources = listed("src", /\.ts$/).map((path) => path.replace(/^src\/|\.ts$/g, ""))
    const folders = sources.map((path) => /^(\w+(?:\/\w+)?)\//.exec(path)?.[1] ?? "the core")
    const isPrivate = (folder: string) => /^(?!internal|engine)\w+\//.test(folder)
    const expected = new Set(folders.filter((folder) => folder !== "the core" && !isPrivate(folder)))
    const engine = sources.flatMap((path) => /^engine\/(\w+)$/.exec(path)?.[1] ?? [])
    const named = new Set(rows.flatMap(([names]) => names!))
    const all = new Set([...expected, ...engine])
    assert.deepStrictEqual([missing(all, named), missing(named, all)], [[], []])
  })

  it("names tests that there are", () => {
    const tests = new Set(listed("test", /\.test\.ts$/).map((path) => path.replace(/^test\/|\.test\.ts$/g, "")))
    assert.isAbove(rows.length, 25)
    assert.deepStrictEqual(missing(rows.flatMap(([, names]) => names!), tests), [])
  })

  it("names files that there are", () => {
    const files = ["src", "test", "lab/src", "docs", ".ci", ".config"].flatMap((folder) => listed(folder, /\.\w+$/))
      .map((path) => `/${path}`)
    const names = Array.from(page.matchAll(/`([\w.-]+\/[\w./-]+)`/g), ([, name]) => name!)
      .filter((name) => !name.includes("Bulkhead"))
    assert.isAbove(names.length, 50)
    const isThere = (name: string) =>
      files.some((file) => file.endsWith(`/${name}`) || `${file}/`.includes(`/${name}/`) || file.includes(`/${name}.`))
    assert.deepStrictEqual(names.filter((name) => !isThere(name)), [])
  })

  it("names the files of a new gate: each of ours is in its own", () => {
    const steps = Array.from(
      sectionOf("Your first gate in ten minutes").matchAll(/^\d\. `(.+?)`/gm),
      ([, path]) => path!
    )
    assert.isAtMost(steps.length, 8)
    const gates = listed("src/gates", /^[A-Z]\w*\.ts$/).map((path) => path.replace(/^.*\/|\.ts$/g, ""))
    assert.isAbove(gates.length, 5)
    // The snapshot is written by its own test.
    const byHand = steps.filter((path) => !path.includes("/snapshots/"))
    const lacking = gates.flatMap((gate) =>
      byHand.map((path) => path.replace("Bulkhead", gate)).filter((path) => !read(path).includes(gate))
    )
    assert.deepStrictEqual(lacking, [])
  })

  it("has at most 1,500 words", () => {
    assert.isAtMost(page.split(/\s+/).length, 1500)
  })
})
