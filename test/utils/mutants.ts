/**
 * Runs the tests of a file again for each mutant that they reach: `test/mutants.mjs`, in whose copy of the sources
 * all mutants are present and `activeMutant` switches one on. The file is loaded once, which is what takes time.
 */
import { appendFileSync, readFileSync } from "node:fs"
import {
  afterAll,
  afterEach,
  beforeEach,
  type RunnerTestCase as Test,
  type RunnerTestFile,
  type RunnerTestSuite,
  TestRunner
} from "vitest"

interface Mutated {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number
  hitLimit?: number
  mutantCoverage?: { readonly static: Hits; readonly perTest: { readonly [testId: string]: Hits } }
}

interface Hits {
  readonly [mutant: string]: number
}

interface Task {
  readonly mutants: ReadonlyArray<string>
  readonly longestTestMillis: number
}

const mutated: Mutated = (globalThis as { __stryker__?: Mutated }).__stryker__ ??= {}
const report = (line: object) => appendFileSync(process.env.MUTANTS_REPORT!, `${JSON.stringify(line)}\n`)

const testsIn = ({ tasks }: RunnerTestSuite): Array<Test> =>
  tasks.flatMap((task) => task.type === "test" ? [task] : testsIn(task))

/** Runs a test once more; resolves to `undefined` if it passes. */
const failureOf = async (test: Test, limitMillis: number): Promise<"failed" | "late" | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), limitMillis)
  })
  const ended = (async () => TestRunner.getTestFn(test)())().then(() => undefined, () => "failed" as const)
  try {
    return await Promise.race([ended, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Ends the process, so that the next mutant starts in a new one. */
const leave = (): Promise<never> => {
  process.kill(process.pid, "SIGKILL")
  return new Promise(() => {})
}

/** A test that passes again when it is repeated, and what it reaches. */
interface Usable {
  readonly test: Test
  readonly hits: Hits
  readonly millis: number
}

/** The fastest first. */
const usableIn = async (file: RunnerTestFile, millisOf: Map<string, number>, longestTestMillis: number) => {
  const { perTest } = mutated.mutantCoverage!
  const usable: Array<Usable> = []
  for (const test of testsIn(file)) {
    const hits = perTest[test.id]
    const millis = millisOf.get(test.id)!
    if (hits === undefined || test.result?.state !== "pass" || test.fails || millis > longestTestMillis) continue
    if (await failureOf(test, 60_000) === undefined) usable.push({ test, hits: { ...hits }, millis })
    else report({ notRepeatable: test.name })
  }
  return usable.sort((a, b) => a.millis - b.millis)
}

/** Runs a test with a mutant. */
const outcomeOf = async (
  mutant: string,
  { hits, millis, test }: Usable
): Promise<"killed" | "loops" | "late" | undefined> => {
  mutated.hitCount = 0
  mutated.hitLimit = 1000 + 100 * hits[mutant]!
  mutated.activeMutant = mutant
  const failure = await failureOf(test, 5000 + 30 * millis)
  const loops = mutated.hitCount > mutated.hitLimit
  mutated.activeMutant = undefined
  if (failure === undefined || failure === "late") return failure
  return loops ? "loops" : "killed"
}

/** Reports what becomes of a mutant. */
const tryOne = async (mutant: string, usable: ReadonlyArray<Usable>, isFirst: boolean): Promise<void> => {
  report({ trying: mutant })
  for (const one of usable) {
    if (one.hits[mutant] === undefined) continue
    report({ beat: mutant })
    const outcome = await outcomeOf(mutant, one)
    if (outcome === undefined) continue
    const told = { mutant, status: outcome === "killed" ? "killed" : "timed out", by: one.test.name }
    if (outcome === "late") {
      report(told)
      return leave()
    }
    // What an earlier mutant left behind kills nothing: the same test passes right after, without the mutant.
    const isLasting = await failureOf(one.test, 60_000) !== undefined
    report(isLasting && !isFirst ? { ...told, status: "unsure" } : told)
    if (isLasting) await leave()
    return
  }
  report({ mutant, status: "survived" })
}

const tryAll = async (file: RunnerTestFile, millisOf: Map<string, number>): Promise<void> => {
  if (mutated.mutantCoverage === undefined) return report({ loaded: [], done: true })
  const { longestTestMillis, mutants }: Task = JSON.parse(readFileSync(process.env.MUTANTS_TASK!, "utf8"))
  const loaded = Object.keys(mutated.mutantCoverage.static)
  const usable = await usableIn(file, millisOf, longestTestMillis)
  report({ loaded })
  const reached = mutants.filter((mutant) => usable.some(({ hits }) => hits[mutant] !== undefined))
  for (const [index, mutant] of reached.entries()) await tryOne(mutant, usable, index === 0)
  report({ done: true })
}

if (process.env.__STRYKER_ACTIVE_MUTANT__ === undefined) {
  const millisOf = new Map<string, number>()
  let startedMillis = 0
  beforeEach(({ task }) => {
    mutated.currentTestId = task.id
    startedMillis = performance.now()
  })
  afterEach(({ task }) => {
    millisOf.set(task.id, performance.now() - startedMillis)
    mutated.currentTestId = undefined
  })
  // eslint-disable-next-line no-empty-pattern
  afterAll(({}, file) => tryAll(file as RunnerTestFile, millisOf), 2 ** 31 - 1)
}
