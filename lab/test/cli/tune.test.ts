import { assert, describe, it } from "@effect/vitest"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeOf } from "../../src/policyCode.ts"
import { folder, run } from "./commandLine.ts"

const here = folder()
const file = join(here, "short.json")
const short = {
  name: "short",
  duration: "20s",
  drain: "5s",
  fleets: [{ name: "app", to: "db", rate: 30, timeout: "500ms", policy: "none" }],
  services: [{ name: "db", capacity: 60, outages: [{ kind: "fail", from: "5s", to: "7s", share: 0.5 }] }]
}
writeFileSync(file, JSON.stringify(short))

it("says how many policies are left out of the table, if there are any", async () => {
  const textOf = async (...names: ReadonlyArray<string>) =>
    (await run(["tune", file, ...names.flatMap((name) => ["--policy", name]), "--runs", "1"])).out
  const twice = JSON.stringify({
    label: "twice",
    steps: [{ fixed: { delay: 0 } }, { maxAttempts: 9 }, "whileRetryable"]
  })
  assert.include(await textOf("none", "jitter", twice, "naive"), "no better in behind, sends or p99: --json lists")
  assert.notInclude(await textOf("none"), "no better in behind")
})

const args = ["tune", file, "--policy", "none", "--policy", "awsStandard", "--policy", "naive", "--runs", "2"]

describe("tune", () => {
  it("prints the front, what the choice depends on, and its code; and writes a picture and a module", async () => {
    const [svg, code] = [join(here, "tune.svg"), join(here, "policy.ts")]
    const { code: exit, err, out } = await run([...args, "--svg", svg, "--code", code])
    assert.deepStrictEqual([exit, err], [0, `wrote ${svg}\nwrote ${code}\n`])
    assert.match(
      out,
      /^short: 3 policies, 2 runs each, seeds 1 to 2\noutages: as written, half as long, twice as long, /
    )
    assert.match(out, /\npolicy +behind +succeed +sends\/call +p99 +recovers\n/)
    assert.strictEqual(out.split("<- chosen").length, 2)
    assert.match(out, /\nparameter +-10 % +\+10 %\n(\S+ +\S+ +\S+ +#*\|#*\n)+/)
    assert.isTrue(out.endsWith(readFileSync(code, "utf8")), out)
    const drawn = readFileSync(svg, "utf8")
    assert.match(drawn, /^<svg.*<title>Policies for short<\/title><desc>Chosen of 3: /)
    for (const text of [">a tenth less<", ">a tenth more<", ">sends per call<", "prefers-color-scheme:dark"]) {
      assert.include(drawn, text)
    }
  })

  it("prints the data", async () => {
    const data = JSON.parse((await run([...args, "--json"])).out)
    assert.deepStrictEqual(
      [data.scenario, data.runs, data.policies.length, data.outages.length],
      ["short", 2, 3, 4]
    )
    assert.include(data.policies.map(({ label }: { label: string }) => label), data.chosen.label)
    assert.strictEqual(data.code, codeOf(data.chosen.policy))
    assert.isAbove(data.sensitivity.length, 3)
  })

  it("refuses what cannot be tuned for, with 2", async () => {
    writeFileSync(join(here, "calm.json"), JSON.stringify({ ...short, services: [{ name: "db" }] }))
    const { code, err } = await run(["tune", join(here, "calm.json")])
    assert.deepStrictEqual([code, err], [
      2,
      "effect-retry: services: have no outage to tune for: add \"outages\" to one\n"
    ])
  })
})
