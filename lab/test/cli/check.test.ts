import { assert, describe, it } from "@effect/vitest"
import { marked } from "marked"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SaxesParser } from "saxes"
import * as yaml from "yaml"
import { folder, root, run } from "./commandLine.ts"
import { hostile } from "./scenarios.ts"

const here = folder()
const inHere = (name: string): string => join(here, name)
const text = (path: string): string => readFileSync(path, "utf8")

const scenario = (changes: object = {}) => ({
  name: "small",
  duration: "10 seconds",
  drain: "5 seconds",
  fleets: [{ name: "app", to: "db", rate: 20, timeout: "1 second", policy: "naive" }],
  services: [{ name: "db", workers: 50, latency: "10 millis", outages: [{ kind: "fail", from: "2s", to: "4s" }] }],
  expect: { succeed: ">= 75 %", recoveredWithin: "2s" },
  ...changes
})

const written = (name: string, changes?: object): string => {
  writeFileSync(inHere(name), JSON.stringify(scenario(changes)))
  return inHere(name)
}

const good = written("good.json")
const bad = written("bad.json", { name: "bad", expect: { succeed: 0.75, sendsPerCall: "<= 1.2", p99: "1ms" } })

/** An element of XML: what a parser that accepts nothing but well-formed documents makes of it. */
interface Element {
  readonly name: string
  readonly attributes: Record<string, string>
  readonly children: Array<Element>
  text: string
}

const parsed = (xml: string): Element => {
  const parser = new SaxesParser()
  const stack: Array<Element> = [{ name: "", attributes: {}, children: [], text: "" }]
  parser.on("error", (error) => {
    throw error
  })
  parser.on("opentag", ({ attributes, name }) => {
    const element: Element = { name, attributes: attributes as Record<string, string>, children: [], text: "" }
    stack.at(-1)!.children.push(element)
    stack.push(element)
  })
  parser.on("text", (text) => void (stack.at(-1)!.text += text))
  parser.on("closetag", () => void stack.pop())
  parser.write(xml).close()
  return stack[0]!.children[0]!
}

describe("check", () => {
  it("exits with 0 if every expectation holds, and prints the figures", async () => {
    const { code, err, out } = await run(["check", good, "--runs", "3"])
    assert.deepStrictEqual([code, err], [0, ""])
    assert.match(out, /^small \(.*good\.json\): 3 runs, seeds 1 to 3\n/)
    assert.match(out, /\nsucceed >= 75 % +ok +\d\d(\.\d)? %/)
    assert.match(out, /\n2 of 2 expectations hold\n$/)
  })

  it("exits with 3 if one does not, and reports all", async () => {
    const { code, err, out } = await run(["check", good, bad, "--runs", "2"])
    assert.strictEqual(code, 3)
    assert.strictEqual(err, "effect-retry: 2 of 5 expectations failed\n")
    assert.match(out, /\nsendsPerCall <= 1\.2 +FAILED +1\.\d/)
    assert.match(out, /\np99 <= 1 ms +FAILED +\d/)
  })

  it("makes as many runs as recoversInRuns says, or as --runs says", async () => {
    const path = written("seven.json", { expect: { recoversInRuns: "5 of 7" } })
    assert.include((await run(["check", path])).out, "7 runs, seeds 1 to 7")
    assert.include((await run(["check", path, "--runs", "2", "--seed", "5"])).out, "2 runs, seeds 5 to 6")
  })

  it("prints the data", async () => {
    const { code, out } = await run(["check", bad, "--runs", "1", "--json"])
    const { failed, of, scenarios } = JSON.parse(out)
    assert.deepStrictEqual([code, failed, of], [3, 2, 3])
    assert.deepInclude(scenarios[0].judgments[1], { name: "sendsPerCall", comparison: "<=", bound: 1.2, holds: false })
    assert.deepStrictEqual([scenarios[0].source, scenarios[0].warnings], [bad, []])
  })

  it("reports the mistakes of all files before it runs any, and exits with 2", async () => {
    const nothing = written("nothing.json", { expect: undefined })
    const wrong = written("wrong.json", { expect: { succeeds: 1 } })
    const { code, err, out } = await run(["check", good, nothing, wrong, "nowhere.json"])
    assert.deepStrictEqual([code, out], [2, ""])
    assert.deepStrictEqual(err.trim().split("\n").map((line) => line.replaceAll(here, "")), [
      `effect-retry: "/nothing.json" has no expectations: add "expect", such as { "succeed": ">= 99 %", "sendsPerCall": "<= 1.2" }`,
      "effect-retry: /wrong.json: expect.succeeds: is not a key here: did you mean succeed?",
      `effect-retry: cannot read "nowhere.json": no such file or folder`
    ])
    assert.strictEqual((await run(["check", good, "--junit", inHere("no/such.xml")])).code, 2)
  })

  it("prints warnings with their file", async () => {
    const path = written("late.json", {
      services: [{ name: "db", workers: 50, outages: [{ kind: "fail", from: "1h", to: "2h" }] }]
    })
    const { code, err } = await run(["check", path, "--runs", "1"])
    assert.strictEqual(code, 0)
    assert.match(err, /^effect-retry: warning: .*late\.json: services\[0\]\.outages\[0\]\.from: is outside the run/)
  })

  it("writes neither file when it is interrupted, and exits with 130", async () => {
    const long = written("long.json", { duration: "10000s", drain: "0s", bucket: "10s" })
    const { code } = await run(["check", long, "--junit", inHere("never.xml")], {
      onProgress: (interrupt) => interrupt()
    })
    assert.strictEqual(code, 130)
    assert.throws(() => text(inHere("never.xml")), /ENOENT/)
  })
})

describe("warnings", () => {
  const late = written("warned.json", {
    services: [{ name: "db", workers: 50, outages: [{ kind: "fail", from: "9s", to: "10s" }] }]
  })
  const warning = "services[0].outages[0].to: is not before the end of the run, 10 s: no recovery can be seen"

  it("are on the standard error of simulate, compare and map, each once", async () => {
    for (
      const args of [
        ["simulate", late, "--runs", "1"],
        ["compare", late, "--policy", "none", "--runs", "2"],
        ["map", late, "--x", "fleets.0.rate=5..10/2", "--runs", "1"]
      ]
    ) {
      const { code, err, out } = await run(args)
      assert.deepStrictEqual([code, err], [0, `effect-retry: warning: ${late}: ${warning}\n`])
      assert.notInclude(out, "warning")
    }
  })

  it("are in the data", async () => {
    const dataOf = async (...args: ReadonlyArray<string>) => JSON.parse((await run([...args, "--json"])).out)
    assert.deepStrictEqual((await dataOf("simulate", late, "--runs", "1")).warnings, [warning])
    assert.deepStrictEqual((await dataOf("simulate", late, "--runs", "2")).warnings, [warning])
    const { runs } = await dataOf("compare", late, "--policy", "none", "--runs", "2")
    assert.deepStrictEqual(runs.map(({ warnings }: { warnings: unknown }) => warnings), [[warning], [warning]])
  })

  it("name the policy that recovers in only some of the runs", async () => {
    const { err } = await run(["compare", "spike", "--policy", "none", "--runs", "8"])
    assert.match(
      err,
      /^effect-retry: warning: spike: naive: recovers in \d of 8 runs: it is on the edge, where a small change decides\n$/
    )
  })
})

const hostileNames = [hostile.fleet, hostile.name, `]]>&amp;<!--`, `a|b\`c\`\`d`]

/** A report of scenarios with such names. */
const reportOfHostile = async (format: "junit" | "markdown"): Promise<string> => {
  const paths = hostileNames.map((name, n) =>
    written(`hostile${n}.json`, {
      name,
      fleets: [{ ...scenario().fleets[0], name: hostile.fleet, timeout: "5ms" }]
    })
  )
  await run(["check", ...paths, "--runs", "1", `--${format}`, inHere(`hostile.${format}`)])
  return text(inHere(`hostile.${format}`))
}

describe("JUnit XML", () => {
  it("has a suite for each scenario, and a test for each expectation", async () => {
    const { err } = await run(["check", good, bad, "--runs", "2", "--junit", inHere("all.xml")])
    assert.include(err, `wrote ${inHere("all.xml")}`)
    const suites = parsed(text(inHere("all.xml")))
    assert.deepInclude(suites.attributes, { tests: "5", failures: "2", errors: "0" })
    const found = suites.children.filter(({ name }) => name === "testsuite")
    assert.deepStrictEqual(
      found.map(({ attributes }) => [attributes["name"], attributes["tests"], attributes["failures"]]),
      [
        ["small", "2", "0"],
        ["bad", "3", "2"]
      ]
    )
    const [, second] = found[1]!.children
    assert.deepStrictEqual(second!.attributes["name"], "sendsPerCall <= 1.2")
    assert.match(second!.children[0]!.attributes["message"]!, /^expected sendsPerCall <= 1\.2, found 1\.\d+/)
    assert.match(second!.children[0]!.text, /; 2 runs, seeds 1 to 2$/)
  })

  it("is well-formed whatever the scenario's name, and contains the name", async () => {
    const suites = parsed(await reportOfHostile("junit"))
    assert.deepStrictEqual(suites.children.map(({ attributes }) => attributes["name"]), hostileNames)
  })
})

describe("Markdown", () => {
  it("is a heading, and a table for each scenario, those that fail first", async () => {
    await run(["check", good, bad, "--runs", "2", "--markdown", inHere("all.md")])
    const markdown = text(inHere("all.md"))
    assert.match(markdown, /^<!-- effect-retry check -->\n### ❌ Retries: 2 of 5 expectations failed\n/)
    assert.isBelow(markdown.indexOf("`bad`"), markdown.indexOf("`small`"))
    const html = String(marked(markdown))
    assert.strictEqual(html.split("<table>").length - 1, 2)
    assert.strictEqual(html.split("<tr>").length - 1, 2 + 5)
  })

  it("shows hostile names as code, and nothing else", async () => {
    const html = String(marked(await reportOfHostile("markdown")))
    assert.notMatch(html.replaceAll(/<code>[^<]*<\/code>/g, "").replace(/^<!--.*-->/, ""), /alert|onload|script|a\|b/)
    assert.include(html, "<code>a|b`c``d</code>")
  })

  it("fits into a comment, however many scenarios there are", async () => {
    const paths = Array.from(
      { length: 40 },
      (_, n) =>
        written(`many${n}.json`, {
          name: `${n} ${"x".repeat(70)}`,
          duration: "1s",
          drain: "0s",
          services: [{ name: "db", workers: 50 }]
        })
    )
    const deep = paths.flatMap((path) => Array.from({ length: 10 }, () => path))
    await run(["check", ...deep, "--runs", "1", "--markdown", inHere("many.md")])
    const markdown = text(inHere("many.md"))
    assert.isBelow(markdown.length, 65_536)
    const left = Number(/_(\d+) more scenarios are left out here\._\n$/.exec(markdown)?.[1])
    assert.strictEqual(left + markdown.split("| --- | --- | --- |").length - 1, 400)
  })
})

describe("examples/check", () => {
  it("holds what payments.json expects", async () => {
    const { code, out } = await run(["check", join(root, "examples/check/payments.json")])
    assert.strictEqual(code, 0, out)
  })

  it("has a workflow whose command is one of this command line", async () => {
    const workflow = yaml.parse(text(join(root, "examples/check/pull-request.yml")))
    const steps: ReadonlyArray<{ readonly name?: string; readonly run?: string }> = workflow.jobs.check.steps
    const command = steps.find(({ name }) => name === "Check")!.run!
    const [, ...args] = command.split(" ").slice(1)
    const asked = args.flatMap((arg) =>
      arg === "retries/*.json" ? [good, bad] : arg.startsWith("retries.") ? [inHere(arg)] : [arg]
    )
    assert.strictEqual((await run([...asked, "--runs", "1"])).code, 3)
    const files = ["retries.xml", "retries.md"]
    for (const file of files) {
      assert.isAbove(text(inHere(file)).length, 100)
      assert.isTrue(JSON.stringify(steps).includes(`hashFiles('${file}')`))
    }
    assert.deepStrictEqual(workflow.permissions, { contents: "read", "pull-requests": "write" })
  })
})
