import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"

const read = (path: string) => fs.readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

it("both packages have one version, the last that the changelog lists", () => {
  const [version, lab, locked, lockedLab] = [
    JSON.parse(read("package.json")).version,
    JSON.parse(read("lab/package.json")).version,
    JSON.parse(read("package-lock.json")).packages[""].version,
    JSON.parse(read("package-lock.json")).packages.lab.version
  ]
  const [, listed] = /^## (\d\S*)$/m.exec(read("CHANGELOG.md"))!
  assert.deepStrictEqual([lab, locked, lockedLab, listed], [version, version, version, version])
})

const workflows = ["ci", "release"].map((name) => read(`.github/workflows/${name}.yml`))

it("workflows use actions by commit, and keep no token of a checkout, as the one of the examples", () => {
  const all = [...workflows, read("examples/check/pull-request.yml")]
  const used = all.flatMap((text) => Array.from(text.matchAll(/uses: (.*)/g), ([, action]) => action!))
  assert.isAbove(used.length, 5)
  for (const action of used) assert.match(action, /^actions\/[\w-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/)
  const count = (pattern: RegExp) => all.join("").match(pattern)?.length
  assert.strictEqual(count(/persist-credentials: false/g), count(/actions\/checkout@/g))
})

it("what runs development packages can only read, and what publishes runs none", () => {
  const release = workflows[1]!
  const [head, pack, publish] = release.split(/^ {2}(?:pack|publish):$/m) as [string, string, string]
  assert.include(head, "permissions: {}")
  const permissionsOf = (job: string) => /permissions:\n((?: {6}.*\n)+)/.exec(job)![1]!.trim()
  assert.strictEqual(permissionsOf(pack), "contents: read")
  assert.strictEqual(permissionsOf(publish), "id-token: write")
  assert.notMatch(pack, /secrets/)
  assert.notMatch(publish, /checkout|npm (?:ci|install|run)|npx/)
  assert.match(publish, /sha512sum --check --strict[^]*npm publish .* --ignore-scripts --provenance/)
})

it("no install of the gate and the workflows runs scripts of packages", () => {
  const files = [".ci/gate.mjs", ".ci/peers", ".github/workflows/ci.yml", ".github/workflows/release.yml"]
  const installs = files.flatMap((file) => read(file).match(/^.*npm"?,? "?ci\b.*$/gm) ?? [])
  assert.strictEqual(installs.length, 5)
  for (const line of installs) assert.include(line, "--ignore-scripts")
})

it("a release without an address is refused, before anything is built, and says why", () => {
  const { status, stderr } = spawnSync(process.execPath, [".ci/release.mjs"], {
    cwd: new URL("../", import.meta.url),
    encoding: "utf8"
  })
  // Delete this test when there is an address.
  assert.deepStrictEqual(JSON.parse(read(".config/addresses.json")), { repository: "", site: "" })
  assert.strictEqual(status, 1)
  assert.match(stderr, /^\.config\/addresses\.json has no "repository"[^]*cannot be released/)
})
