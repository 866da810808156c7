/** The doors between folders, which the linter keeps: a violation of each is planted and found. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../", import.meta.url))

const arrow = "No arrow of the map in .github/CONTRIBUTING.md."
const lab =
  "The lab imports public modules of effect-retry and no timers, and only the command line imports the command line."
const page = "The page imports the lab, and public modules of effect-retry."
const clock = ["Read the time from Clock.", "Wait with Effect, so that TestClock can move it."]
const services = [
  ...clock,
  "Draw from Random.",
  "The library knows no process: read settings from Config.",
  "Time and settings come from services.",
  "Time and settings come from services."
]
const everything =
  "setTimeout(() => [Date.now(), Math.random(), process, globalThis.performance, globalThis.queueMicrotask], 1)"
const importing = (name: string) => `import { a } from "${name}"\na()`

/** The rows of the map about `src`: what each folder, or `index.ts`, may import. */
const map = new Map(
  Array.from(
    fs.readFileSync(path.join(root, ".github/CONTRIBUTING.md"), "utf8").matchAll(/^\| `src\/(.+?)` \|.* \| (.+) \|$/gm),
    ([, name, cell]) => {
      const names = cell!.replace("the core", "`Core`, `effect`").matchAll(/`(.+?)`/g)
      return [name!, Array.from(names, ([, one]) => one === "effect" ? "effect/Effect" : one!)]
    }
  )
)

const folders = fs.readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8", withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name, parentPath }) => path.relative(path.join(root, "src"), path.join(parentPath, name)))

/** What is on the map or is not: modules of the core (capital letters), folders and packages. */
const targets = [
  ...new Set(["Core", "index.ts", "effect", "effect-retry", "node:timers", ...folders, ...[...map.values()].flat()])
]

const isIn = (folder: string, name: string) => `${name}/`.startsWith(`${folder}/`)

/** Of what lies in the folder of its own row, the map says nothing. */
const isOwn = (row: string, target: string) => row === "*.ts" ? /^[A-Z]/.test(target) : isIn(row, target)

const isAllowed = (names: ReadonlyArray<string>, target: string): boolean =>
  names.some((name) =>
    name === target || folders.includes(name) && isIn(name, target) && !target.includes("/internal")
  ) ||
  names.includes("Core") && /^[A-Z]/.test(target)

const specifierOf = (folder: string, target: string): string => {
  if (/^(effect|@|node:)/.test(target)) {
    return /^effect\/[a-z]/.test(target) ? `${target}/A` : target
  }
  const file = target.endsWith(".ts") ? target : /^[A-Z]/.test(target) ? `${target}.ts` : `${target}/A.ts`
  return path.relative(folder, file).replace(/^(?!\.)/, "./")
}

const rowOf = (folder: string): string =>
  [...map.keys()].filter((name) => isIn(name, folder)).sort((a, b) => b.length - a.length)[0] ?? ""

/** Everything imported in each folder, and what of it the map does not have. */
const arrows = ["*.ts", "index.ts", ...folders].map((folder) => {
  const row = rowOf(folder)
  const file = folder === "*.ts" ? "Planted.ts" : folder === "index.ts" ? folder : `${folder}/Planted.ts`
  const specifier = (target: string) => specifierOf(path.dirname(file), target)
  const others = targets.filter((target) => !isOwn(row, target))
  const wrong = others.filter((target) => !isAllowed(map.get(row) ?? [], target))
  return [`src/${file}`, [
    others.map((target) => `export * from "${specifier(target)}"`).join("\n"),
    wrong.map((target) => `'${specifier(target)}' import is restricted`)
  ]] as const
})

/** Files of a repository, and the messages that they deserve. */
const planted: Readonly<Record<string, readonly [code: string, messages: ReadonlyArray<string>]>> = {
  ...Object.fromEntries(arrows),
  "src/lower.ts": [importing("./index.ts"), [arrow]],
  "src/unlisted/A.ts": [importing("../A.ts"), [arrow]],
  "src/internal/tryGet.ts": [importing("effect/Effect"), [arrow]],
  "src/grpc/time.ts": [everything, services],
  "src/grpc/cycle.ts": ["import type { B } from \"./back.ts\"\nexport interface A extends B {}", [
    "Dependency cycle detected"
  ]],
  "src/grpc/back.ts": ["import type { A } from \"./cycle.ts\"\nexport interface B extends A {}", [
    "Dependency cycle detected"
  ]],
  "lab/src/sources.ts": [importing("../../src/Attempt.ts"), [lab]],
  "lab/src/timers.ts": [importing("node:timers"), [lab]],
  "lab/playground/sources.ts": [importing("../../src/internal/checks.ts"), [page]],
  "lab/src/private.ts": [importing("effect-retry/internal/checks"), [lab]],
  "lab/src/simulator/shell.ts": [importing("../cli/flags.ts"), [lab]],
  "lab/src/cli/time.ts": [everything, services],
  "lab/src/cli/bin.ts": ["process.exit()", []],
  "examples/private.ts": [importing("../src/Attempt.ts"), ["Use the public API only."]],
  "test/allowed.ts": [`${importing("../src/internal/checks.ts")}\n${everything}`, []]
}

interface Diagnostic {
  readonly filename: string
  readonly help?: string
  readonly message: string
}

it("the map has each folder of src", () => {
  assert.deepStrictEqual(folders.filter((folder) => rowOf(folder) === ""), [])
})

it("the map has no arrow that no import takes", () => {
  const taken = new Map<string, Set<string>>()
  for (const file of fs.readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts")) continue
    const folder = path.dirname(file)
    const row = map.has(file) ? file : folder === "." ? "*.ts" : rowOf(folder)
    const imports = fs.readFileSync(path.join(root, "src", file), "utf8").matchAll(/ from "(.+?)"$/gm)
    for (const [, name] of imports) {
      const target = name!.startsWith(".") ? path.join(folder, name!) : name!
      taken.set(row, (taken.get(row) ?? new Set()).add(target).add(path.dirname(target)))
    }
  }
  const isTaken = (row: string, name: string) =>
    [...taken.get(row) ?? []].some((target) =>
      name === "Core"
        ? /^[A-Z]\w*\.ts$/.test(target)
        : [name, `${name}.ts`].includes(target) || !target.includes("/internal") && isIn(name, target)
    )
  const unused = [...map].flatMap(([row, names]) =>
    // Effect comes with the core.
    names.filter((name) => name !== "effect/Effect" && !isTaken(row, name)).map((name) => `${row}: ${name}`)
  )
  assert.deepStrictEqual(unused, [])
})

it("a violation of each door is found, wherever the repository lies", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  // Globs that begin with ** also match the folders above the repository.
  const repository = path.join(folder, "test/examples/src/lab/src")
  const write = (file: string, text: string) => {
    fs.mkdirSync(path.dirname(path.join(repository, file)), { recursive: true })
    fs.writeFileSync(path.join(repository, file), text)
  }
  try {
    for (const home of [".config", "src", "lab", "lab/src", "examples", "test"]) {
      write(`${home}/.oxlintrc.json`, fs.readFileSync(path.join(root, home, ".oxlintrc.json"), "utf8"))
    }
    const settings = ".config/oxlint-services.json"
    write(settings, fs.readFileSync(path.join(root, settings), "utf8"))
    for (const [file, [code]] of Object.entries(planted)) write(file, code)
    const linted = spawnSync(path.join(root, "node_modules/.bin/oxlint"), ["--format=json"], {
      cwd: repository,
      maxBuffer: 2 ** 25,
      encoding: "utf8"
    })
    const { diagnostics } = JSON.parse(linted.stdout) as { readonly diagnostics: ReadonlyArray<Diagnostic> }
    const found = Object.entries(planted).map(([file, [, messages]]) => {
      const texts = diagnostics.filter(({ filename }) => filename === file)
        .map(({ help, message }) => `${message} ${help ?? ""}`)
      return [file, texts.map((text) => messages.find((message) => text.includes(message)) ?? text).sort()]
    })
    assert.deepStrictEqual(found, Object.entries(planted).map(([file, [, messages]]) => [file, [...messages].sort()]))
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
})
