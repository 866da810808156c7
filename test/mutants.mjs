// Mutation testing, with the mutants of Stryker: docs/evidence/reliability.md. Node 22 or later; not part of the package.
//
//   npm install --no-save @stryker-mutator/instrumenter@10
//   node test/mutants.mjs                                             # the engine and what calls share
//   node test/mutants.mjs src/engine/run.ts                           # these files or folders
//   node test/mutants.mjs src/gates -- test/gates test/core           # with these tests
//
// Stryker loads the tests again for each mutant, which takes hours. Here each file of tests is loaded once, in a process of
// its own, and its tests are run again for each mutant that they reach and that no earlier file has killed
// (`test/utils/mutants.ts`). What is found is kept in coverage/mutants until the sources change: to go on, or with new
// tests, run it again.
import { Instrumenter } from "@stryker-mutator/instrumenter"
import { execFileSync, spawn } from "node:child_process"
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join, resolve } from "node:path"

const longestTestMillis = 3000
const say = (line) => process.stdout.write(`${line}\n`)
const given = process.argv.slice(2)
const split = given.includes("--") ? given.indexOf("--") : given.length
const sources = split === 0 ? ["src/engine", "src/gates/internal", "src/quota/internal", "src/hedge/internal", "src/internal"] : given.slice(0, split)
const tests = split < given.length - 1 ?
  given.slice(split + 1) :
  ["test/engine", "test/gates", "test/quota", "test/hedge", "test/internal", "test/core", "test/reliability", "test"]

const room = resolve("coverage/mutants")
const copy = join(room, "copy")
const at = (name) => join(room, name)
const linesOf = (name) =>
  existsSync(at(name)) ? readFileSync(at(name), "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)) : []

/** The files that are these paths, or in them. */
const filesOf = (paths, suffix) => [
  ...new Set(paths.flatMap((path) => path.endsWith(suffix) ? [path] : globSync(`${path}/**/*${suffix}`).sort()))
]

const config = `export default {
  resolve: { tsconfigPaths: true },
  cacheDir: ${JSON.stringify(at("cache"))},
  test: {
    include: ["{test,lab/test}/**/*.test.ts"],
    setupFiles: ["./test/utils/mutants.ts"],
    pool: "forks",
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    silent: true,
    execArgv: ["--max-old-space-size=3000"]
  }
}`

/** Copies the repository, and puts all mutants into the sources of the copy. */
const instrumented = async (files) => {
  const contents = files.map((name) => ({ name, content: readFileSync(name, "utf8"), mutate: true }))
  const sourcesNow = JSON.stringify(contents)
  const isKnown = existsSync(at("sources.json")) && readFileSync(at("sources.json"), "utf8") === sourcesNow
  if (!isKnown) rmSync(room, { recursive: true, force: true })
  mkdirSync(copy, { recursive: true })
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" })
  for (const name of listed.trim().split("\n")) {
    if (existsSync(name) && !(isKnown && files.includes(name))) cpSync(name, join(copy, name))
  }
  if (isKnown) return JSON.parse(readFileSync(at("mutants.json"), "utf8"))
  symlinkSync(resolve("node_modules"), join(copy, "node_modules"))
  const logger = new Proxy({}, { get: () => () => false })
  const options = { plugins: null, excludedMutations: [], ignorers: [] }
  const made = await new Instrumenter(logger).instrument(contents, options)
  for (const { content, name } of made.files) writeFileSync(join(copy, name), content)
  const mutants = made.mutants.map(({ fileName, id, location: { start }, mutatorName, replacement }) => ({
    id,
    where: `${fileName}:${start.line + 1}:${start.column + 1}`,
    change: `${mutatorName}: ${replacement}`
  }))
  writeFileSync(at("mutants.json"), JSON.stringify(mutants))
  writeFileSync(join(copy, "mutants.config.ts"), config)
  writeFileSync(at("sources.json"), sourcesNow)
  return mutants
}

/** The CPU seconds that a group of processes has used: a busy machine is not an endless loop. */
const secondsOf = (group) => {
  let ticks = 0
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ")
      if (Number(fields[2]) === group) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // It has ended.
    }
  }
  return ticks / 100
}

/** Runs a file of tests until it ends, or loops without end. Returns its exit code, or "loops". */
const vitest = async (file, env, secondsPerMutant) => {
  writeFileSync(at("report.jsonl"), "")
  const args = ["node_modules/vitest/vitest.mjs", "run", "--config", "mutants.config.ts", file]
  const child = spawn(process.execPath, args, {
    cwd: copy,
    detached: true,
    stdio: "ignore",
    env: { ...process.env, MUTANTS_REPORT: at("report.jsonl"), MUTANTS_TASK: at("task.json"), ...env }
  })
  const stop = () => {
    try {
      process.kill(-child.pid, "SIGKILL")
    } catch {
      // It has ended.
    }
  }
  let length = 0
  let seconds = 0
  let loops = false
  const watch = setInterval(() => {
    const report = readFileSync(at("report.jsonl"), "utf8")
    const now = secondsOf(child.pid)
    if (report.length !== length) [length, seconds] = [report.length, now]
    const isTrying = env.MUTANTS_TASK !== undefined || report.includes("\"trying\"")
    if (now - seconds <= (isTrying ? secondsPerMutant : 120)) return
    loops = true
    stop()
  }, 500)
  const code = await new Promise((done) => child.on("exit", done))
  clearInterval(watch)
  stop()
  return loops ? "loops" : code
}

/** What a process with a file of tests found out, and which mutants are left for the next. */
const roundOf = async (file, rest) => {
  writeFileSync(at("task.json"), JSON.stringify({ mutants: rest, longestTestMillis }))
  const code = await vitest(file, {}, 5)
  const lines = linesOf("report.jsonl")
  const loaded = lines.find((line) => line.loaded !== undefined)?.loaded
  if (loaded === undefined) throw new Error(`${file} does not run in the copy: ${copy}`)
  const seen = lines.filter(({ mutant }) => mutant !== undefined)
  const unsure = seen.filter(({ status }) => status === "unsure").map(({ mutant }) => mutant)
  const found = seen.filter(({ status }) => status !== "unsure")
  const trying = lines.findLast((line) => line.trying !== undefined)?.trying
  if (trying !== undefined && seen.every(({ mutant }) => mutant !== trying)) {
    found.push({ mutant: trying, status: "timed out", by: code === "loops" ? "loops" : "crashes" })
  }
  const tried = new Set([...unsure, ...found.map(({ mutant }) => mutant)])
  const left = [...unsure, ...rest.filter((mutant) => !tried.has(mutant))]
  return { loaded, found, left, isDone: tried.size === 0 || lines.some(({ done }) => done) }
}

/** Runs a file of tests for the mutants that it reaches, and records what becomes of each. */
const tryIn = async (file, mutants, record) => {
  let round = await roundOf(file, mutants)
  while (true) {
    for (const { by, mutant, status } of round.found) record(mutant, status, by)
    if (round.isDone) return round.loaded
    round = await roundOf(file, round.left)
  }
}

const files = filesOf(sources, ".ts")
const mutants = await instrumented(files)
const killed = new Map()
const reached = new Set()
for (const { by, mutant, status } of linesOf("results.jsonl")) {
  reached.add(mutant)
  if (status !== "survived") killed.set(mutant, { by, status })
}
const recordFor = (file) => (mutant, status, by) => {
  reached.add(mutant)
  if (status !== "survived") killed.set(mutant, { by, status })
  appendFileSync(at("results.jsonl"), `${JSON.stringify({ mutant, status, by, file })}\n`)
}
const open = () => mutants.map(({ id }) => id).filter((id) => !killed.has(id))

const testFiles = filesOf(tests, ".test.ts").filter((name) => !name.startsWith("test/peers/"))
const loadedBy = new Map()
for (const file of testFiles) {
  for (const mutant of await tryIn(file, open(), recordFor(file))) {
    loadedBy.set(mutant, [...(loadedBy.get(mutant) ?? []), file])
  }
  say(`${file}: ${open().length} of ${mutants.length} left`)
}

// What runs while a module is loaded runs before any test: these mutants are active from the start of the process.
for (const mutant of open()) {
  for (const file of (loadedBy.get(mutant) ?? []).slice(0, 20)) {
    const code = await vitest(file, { __STRYKER_ACTIVE_MUTANT__: mutant, MUTANTS_TASK: "" }, 60)
    recordFor(file)(mutant, code === 0 ? "survived" : code === "loops" ? "timed out" : "killed", "module")
    if (code !== 0) break
  }
}

const count = (status) => [...killed.values()].filter((one) => one.status === status).length
for (const { change, id, where } of mutants) {
  if (!killed.has(id)) say(`${reached.has(id) ? "survived" : "not reached"} ${where} ${change}`)
}
say(
  `${mutants.length} mutants: ${count("killed")} killed, ${count("timed out")} timed out, ${
    open().filter((id) => reached.has(id)).length
  } survived, ${open().filter((id) => !reached.has(id)).length} not reached`
)
