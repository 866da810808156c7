/**
 * The bench. It measures what was built: `npm run build` first.
 *
 * With `--quick` it takes a minute and is less exact. The figures are kept in `test/bench/output`, by version of Node.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import * as adaptive from "./adaptive.ts"
import * as calls from "./calls.ts"
import * as children from "./children.ts"
import * as effects from "./effects.ts"
import * as gates from "./gates.ts"
import { added, type Effort, measure, quotient, ratio, type Samples, type Spread } from "./harness.ts"
import { inFlight } from "./inFlight.ts"
import { sleeping } from "./names.ts"
import type { Script } from "./operations.ts"
import { queued } from "./queue.ts"
import { exactly, type Floor, isHeld, printFloors, printTable, type Table, table, timed } from "./report.ts"
import * as resources from "./resources.ts"
import { addedBy, importsOf, sizes } from "./size.ts"

const quick = process.argv.includes("--quick")
const root = process.cwd()
const effort: Effort = quick
  ? { rounds: 9, warmUpMillis: 150, batchMillis: 5 }
  : { rounds: 31, warmUpMillis: 400, batchMillis: 12 }

const tables: Array<Table> = []
const floors: Array<Floor> = []

const show = (found: Table): void => {
  tables.push(found)
  printTable(found)
}

const hold = (name: string, atMost: number, found: Spread): void => {
  floors.push({ name, atMost, found })
}

const over = (what: string, samples: Samples, ours: string, limits: Readonly<Record<string, number>>): void => {
  for (const [theirs, atMost] of Object.entries(limits)) {
    hold(`${what}: ${ours} / ${theirs}`, atMost, ratio(samples, ours, theirs))
  }
}

const timeCalls = async () => {
  const scripts: ReadonlyArray<[string, Script, Readonly<Record<string, number>>]> = [
    ["first-try success", "success", { [effects.timesWhile]: 0.2, [effects.floorName]: 1.25 }],
    ["two failures, then success", "twice", { [calls.smithy]: 0.78, [effects.timesWhile]: 0.45 }],
    ["not retryable", "invalid", { [calls.smithy]: 0.13, [effects.timesWhile]: 0.18 }]
  ]
  for (const [title, script, limits] of scripts) {
    const samples = await measure(await calls.synchronous(script), effort)
    show(timed(`${title}, CPU time per call`, samples))
    over(title, samples, effects.ours, limits)
    if (script === "success") {
      over(title, samples, effects.plain, { [effects.times]: 1.4 })
      over(title, samples, effects.joined, { [effects.ours]: 1.5 })
    } else if (script === "twice") {
      over(title, samples, effects.plain, { [effects.times]: 1 })
      over(title, samples, effects.refilling, { [effects.ours]: 1.5 })
    }
  }
  show(timed("asynchronous operation, success", await measure(await calls.asynchronous(), effort)))
  show(timed("asynchronous operation, Effect.runPromise per call", await measure(await calls.fromPromises(), effort)))
}

const timeInFlight = async () => {
  const count = quick ? 1000 : 5000
  const samples = await measure(await inFlight(), { ...effort, rounds: quick ? 5 : 15 }, count)
  show(timed(`${count} calls in flight, two waits of 4 ms each, CPU time per call`, samples))
  over("in flight", samples, effects.oursWaiting, { [calls.smithy]: 1.25, [effects.documentedName]: 0.45 })
}

const timeAdaptive = async () => {
  const samples = await measure(await adaptive.adaptive(), effort)
  show(timed("adaptive mode, success", samples))
  over("adaptive", samples, adaptive.bookkeeping, { [adaptive.smithyBookkeeping]: 0.35 })
}

const timeGates = async () => {
  for (const fibers of ["one fiber", "a fiber per call"] as const) {
    const samples = await measure(await gates.gates(fibers), effort)
    show(timed(`gates, success, ${fibers}, CPU time per call`, samples))
    const floors = (over: string, base: string) => added(samples, over, base, effects.floorName)
    hold(`gates, ${fibers}: ${gates.oneGate}, floors`, 1.5, floors(gates.oneGate, effects.ours))
    for (const name of gates.clockReads) hold(`gates, ${fibers}: ${name}, floors more`, 1, floors(name, gates.oneGate))
    for (const { first, name } of gates.furtherGates) {
      hold(`gates, ${fibers}: ${name}, floors more`, 0.5, floors(name, first))
    }
  }
  const samples = await measure(await adaptive.allGates(), effort)
  show(timed("all gates, success, CPU time per call", samples))
  over("success", samples, gates.allGates, { [adaptive.smithyAdaptive]: 1.2 })
}

const countCalls = async () => {
  const counts = await children.counts()
  for (const [script, byName] of Object.entries(counts)) {
    const rows = Object.entries(byName).flatMap(([name, { bytes, operations }]) =>
      [[`${name}: operations`, exactly(operations)], [`${name}: bytes`, exactly(bytes)]] as const
    )
    show(table(`counted, ${script}`, "per call", new Map(rows)))
  }
  const { gated, success, twice } = counts
  for (const { atMostBytes, first, name } of gates.furtherGates) {
    hold(`${name}: bytes more`, atMostBytes, exactly(Math.round(gated[name]!.bytes - gated[first]!.bytes)))
  }
  const over = (of: "operations" | "bytes") => success[effects.ours]![of] - success[effects.bare]![of]
  hold("first-try success: operations over the bare operation", 3.01, exactly(over("operations")))
  hold("first-try success: bytes over the bare operation", 40, exactly(over("bytes")))
  hold("two failures, then success: operations", 19, exactly(twice[effects.ours]!.operations))
  hold("two failures, then success: bytes", 3400, exactly(twice[effects.ours]!.bytes))
}

const weighWaiting = async () => {
  const kept = await children.memory(quick ? 5000 : 20_000, quick ? 1 : 5)
  show(table("a call that waits for its retry", "bytes kept", kept))
  hold(
    `in backoff: bytes, ${effects.oursWaiting} / a fiber that sleeps`,
    1.5,
    exactly(kept.get(effects.oursWaiting)!.median / kept.get(sleeping)!.median)
  )
}

const timeQueue = async () => {
  await queued(100, 5000)
  const rounds = quick ? 1 : 5
  const grants = quick ? 10_000 : 30_000
  const perGrant = new Map<number, Array<number>>()
  let [fires, timersAtOnce] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    for (const waiters of [10, 100, 1000, 3000, 10_000]) {
      const found = await queued(waiters, grants)
      perGrant.set(waiters, [...perGrant.get(waiters) ?? [], found.nanosPerGrant])
      if (waiters === 3000) fires = Math.max(fires, found.fires / found.grants)
      timersAtOnce = Math.max(timersAtOnce, found.timersAtOnce)
    }
  }
  show(
    timed("a limiter with a queue, CPU time per grant", new Map([...perGrant].map(([n, ns]) => [`${n} waiters`, ns])))
  )
  hold("3,000 waiters: timers that fire per grant", 2, exactly(fires))
  hold("any number of waiters: timers at the same time", 1, exactly(timersAtOnce))
  hold("cost per grant: 10,000 waiters / 10 waiters", 2, quotient(perGrant.get(10_000)!, perGrant.get(10)!))
}

const timeResources = async () => {
  const perCall = new Map<number, ReadonlyArray<number>>()
  for (const count of [100, 1000, 10_000, 100_000, 1_000_000]) {
    perCall.set(count, await resources.timed(count, quick ? 100_000 : 500_000))
  }
  const rows = [...perCall].map(([count, ns]) => [`${count} resources`, ns] as const)
  show(timed("ResourceLimiters, withRetry and a quota of its own, CPU time per call", new Map(rows)))
  hold("cost per call: 100,000 resources / 100 resources", 2, quotient(perCall.get(100_000)!, perCall.get(100)!))
  hold("cost per call: 1,000,000 resources / 100 resources", 2, quotient(perCall.get(1_000_000)!, perCall.get(100)!))
  const kept = new Map<number, { readonly bytes: number; readonly timers: number }>()
  for (const count of [1000, 100_000, 1_000_000]) kept.set(count, await children.resources(count))
  const bytes = [...kept].map(([count, found]) => [`${count} resources`, exactly(found.bytes)] as const)
  show(table("a resource with quota and limiter, both used", "bytes kept", new Map(bytes)))
  hold("100,000 resources: bytes each", 820, exactly(kept.get(100_000)!.bytes))
  hold("1,000,000 resources: bytes each", 870, exactly(kept.get(1_000_000)!.bytes))
  hold("1,000,000 resources: timers", 1, exactly(kept.get(1_000_000)!.timers))
  hold("resources left after their time", 0, exactly(await resources.leftOf(100_000)))
}

const weighBundle = async () => {
  const found = await sizes(root)
  const kibibytes = exactly(addedBy(found.with, found))
  const own = exactly(addedBy(found.withOwn, found))
  const rows = [["awsStandard", kibibytes], [
    "a custom policy and classifier, imported by module",
    own
  ]] as const
  show(table("what is added to an app that bundles Effect, min + gzip", "KiB", new Map(rows)))
  hold("size: KiB added", 10, kibibytes)
  hold("size: KiB added by a custom policy and classifier", 10, own)
}

const timeStart = async () => {
  const alone = await importsOf(root)
  const imports = { alone, with: ["effect-retry"], fetch: ["effect-retry/fetch"], "p-retry": ["p-retry"] }
  const samples = await children.startUp(imports, quick ? 7 : 31)
  const nanos = [...samples].map(([name, millis]) => [name, millis.map((ms) => ms * 1e6)] as const)
  show(
    timed("a process that imports Effect's modules alone, or with the library, or one module: CPU time", new Map(nanos))
  )
  hold("import: with the library / Effect's modules alone", 1.15, quotient(samples.get("with")!, samples.get("alone")!))
}

console.log(`Node ${process.version}, ${cpus()[0]?.model}, ${quick ? "quick" : "full"}: median [10 % .. 90 %]`)
const parts = {
  calls: timeCalls,
  inFlight: timeInFlight,
  adaptive: timeAdaptive,
  gates: timeGates,
  counted: countCalls,
  memory: weighWaiting,
  queue: timeQueue,
  resources: timeResources,
  size: weighBundle,
  start: timeStart
}
const only = process.argv.slice(2).filter((argument) => !argument.startsWith("--"))
for (const [name, part] of Object.entries(parts)) {
  if (only.length === 0 || only.includes(name)) await part()
}
printFloors(floors)
const subjects = ["effect", "@smithy/core", "cockatiel", "p-retry", "async-retry"]
const versionOf = (name: string): string =>
  JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version
mkdirSync("test/bench/output", { recursive: true })
const kept = {
  node: process.version,
  cpu: cpus()[0]?.model,
  versions: Object.fromEntries(subjects.map((name) => [name, versionOf(name)])),
  quick,
  parts: only,
  tables,
  floors: floors.map((f) => ({ ...f, held: isHeld(f) }))
}
writeFileSync(
  `test/bench/output/${process.version}${only.length === 0 ? "" : `-${only.join("-")}`}.json`,
  JSON.stringify(kept, null, 2)
)
