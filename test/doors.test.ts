/** The doors between folders, which the linter keeps: a violation of each is planted and found. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../", import.meta.url))

const down = "Dependencies point down: the core knows neither the rooms nor their peers."
const indexed = "Nothing in src imports an index or the package itself: import the module."
const lab = "The lab imports public modules of effect-retry, and only the command line imports the command line."
const one = "Import one module: \"effect/Effect\"."
const own = "What is in the internal folder of a room is that room's alone."
const pure = "This is pure: no Effect at run time."
const clock = ["Read the time from Clock.", "Wait with Effect, so that TestClock can move it."]
const services = [
  ...clock,
  "Draw from Random.",
  "The library knows no process: read settings from Config.",
  "Time and settings come from services."
]
const everything = "setTimeout(() => [Date.now(), Math.random(), process, globalThis.performance], 1)"
const importing = (name: string) => `import { a } from "${name}"\na()`

/** Files of a repository, and the messages that they deserve. */
const planted: Readonly<Record<string, readonly [code: string, messages: ReadonlyArray<string>]>> = {
  "src/Core.ts": [importing("./aws/A.ts"), [down]],
  "src/CorePeer.ts": [importing("effect/http/HttpClient"), [down]],
  "src/engine/engine.ts": [importing("../redis/A.ts"), [down]],
  "src/state/state.ts": [importing("effect"), [one]],
  "src/internal/shared.ts": [importing("effect-retry/Attempt"), [indexed]],
  "src/internal/safe.ts": [importing("effect/Effect"), [pure]],
  "src/internal/math/math.ts": [importing("../../A.ts"), ["This is the bottom: it imports nothing above it."]],
  "src/internal/facts/facts.ts": [importing("effect/Effect"), [pure]],
  "src/http/http.ts": [importing("../redis/internal/a.ts"), [own]],
  "src/aws/legacy/legacy.ts": [importing("../../index.ts"), [indexed]],
  "src/index.ts": [importing("./llm/internal/a.ts"), [own]],
  "src/grpc/time.ts": [everything, services],
  "src/json/cycle.ts": ["import type { B } from \"./back.ts\"\nexport interface A extends B {}", [
    "Dependency cycle detected"
  ]],
  "src/json/back.ts": ["import type { A } from \"./cycle.ts\"\nexport interface B extends A {}", [
    "Dependency cycle detected"
  ]],
  "lab/src/sources.ts": [importing("../../src/Attempt.ts"), [lab]],
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
