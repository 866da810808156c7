// Every step runs, whatever became of those before it. The last lines say what each came to and how long it took.
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { counted, environmental, failures, merged, reportAt, resultOf } from "./report.mjs"
import { run } from "./step.mjs"

process.chdir(fileURLToPath(new URL("..", import.meta.url)))
const reports = "coverage/ci"
rmSync(reports, { recursive: true, force: true })
mkdirSync(reports, { recursive: true })

/** The limits of steps that have another one than 15 minutes. */
const minutes = { peers: 30, "peers-again": 30 }

const rows = []
const step = (name, ...command) => {
  console.log(`\n=== ${name}`)
  const start = Date.now()
  const result = run(minutes[name] ?? 15, ...command)
  const row = { name, seconds: Math.round((Date.now() - start) / 1000), result }
  rows.push(row)
  return row
}

/** Runs tests, and keeps their report. */
const tests = (name, ...command) => {
  const file = `${reports}/${name}.json`
  process.env.REPORT = file
  const row = step(name, ...command, "--reporter=default", "--reporter=./.ci/reporter.mjs")
  const report = reportAt(file)
  if (row.result === "ok") row.result = resultOf(report)
  return { row, report }
}

// With the step "test" this is the test command of the README, but for the scripts of packages, within a limit of CPU seconds.
step("install", "npm", "ci", "--ignore-scripts")
for (const name of ["check", "lint", "effect"]) step(name, "npm", "run", name)
const unit = tests("test", "npm", "run", "test:limited", "--")

// Laws, simulations and sweeps with all of their seeds, samples, cells and steps: the files that take a budget.
const files = ["test", "lab/test"].flatMap((folder) =>
  readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`)
).filter((name) => name.endsWith(".test.ts") && /utils\/budget\.ts"|\bthinned\b/.test(readFileSync(name, "utf8")))
process.env.LAWS = "full"
const laws = tests("laws", "npm", "test", "--", ...files)
delete process.env.LAWS

for (const name of ["build", "package"]) step(name, "npm", "run", name)
step("versions", "node", ".ci/versions.mjs")

step("install-peers", "bash", ".ci/peers")
const peers = tests("peers", "npm", "run", "test:peers", "--")
const again = environmental(peers.report)
if (again.length > 0) {
  const files = again.map(({ file }) => file)
  peers.report = merged(peers.report, tests("peers-again", "npx", "vitest", "run", "--mode", "peers", ...files).report)
  if (resultOf(peers.report) === "ok") peers.row.result = "ok, but for its environment the first time"
}

// After the peers, which build the site.
step("release", "node", ".ci/release.mjs", "--dry-run")

for (const { error, file } of again) console.log(`\nRan again, because its environment failed: ${file}\n  ${error}`)
console.log(`\n${"step".padEnd(14)} seconds  result`)
for (const { name, result, seconds } of rows) console.log(`${name.padEnd(14)} ${String(seconds).padStart(7)}  ${result}`)
const counts = [unit.report, laws.report, peers.report].map(counted)
const sum = (of) => counts.reduce((all, count) => all + count[of], 0)
for (const report of [unit.report, laws.report, peers.report]) {
  for (const failure of failures(report)) console.log(`\nFAILED: ${failure}`)
}
console.log(`\n${sum("passed")} passed, ${sum("failed")} failed`)
process.exitCode = rows.some(({ result }) => result.startsWith("RED")) ? 1 : 0
