import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { worthAThread } from "../../src/cli/Threads.ts"
import { written } from "../fit/generated.ts"
import { lab, root } from "./commandLine.ts"

/** The package as it is published, installed in an empty folder next to `effect`. */
let home: string
let user: string
let command: string

const quietly = { encoding: "utf8", stdio: "pipe" } as const

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "effect-retry-installed-"))
  const [source, empty] = [join(home, "source"), join(home, "user")]
  mkdirSync(join(source, "dist"), { recursive: true })
  mkdirSync(empty)
  for (const path of ["package.json", "README.md", "LICENSE", "NOTICE", "scenarios"]) {
    cpSync(join(lab, path), join(source, path), { recursive: true })
  }
  execFileSync(process.execPath, [join(lab, "scripts", "build.mjs"), source], quietly)
  const tarball = execFileSync("npm", ["pack", "--silent", "--ignore-scripts"], { cwd: source, ...quietly }).trim()
  writeFileSync(join(empty, "package.json"), "{}")
  execFileSync(
    "npm",
    [
      "install",
      "--offline",
      "--no-audit",
      "--no-fund",
      "--ignore-scripts",
      "--no-package-lock",
      join(source, tarball),
      join(root, "node_modules", "effect"),
      root
    ],
    { cwd: empty, ...quietly }
  )
  user = empty
  command = join(empty, "node_modules", ".bin", "effect-retry")
})

const children = new Set<ChildProcess>()

afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
  rmSync(home, { recursive: true, force: true })
})

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

const ended = (child: ChildProcess): Promise<Ended> =>
  new Promise((resolve, reject) => {
    children.add(child)
    const text = { out: "", err: "" }
    child.stdout?.on("data", (data) => (text.out += data))
    child.stderr?.on("data", (data) => (text.err += data))
    child.on("error", reject)
    child.on("close", (code, signal) => {
      children.delete(child)
      resolve({ code, signal, ...text })
    })
  })

const started = (...args: ReadonlyArray<string>): ChildProcess =>
  spawn(command, args, { cwd: user, stdio: ["ignore", "pipe", "pipe"] })

/** The command next to a package that calls itself Effect and has nothing in it that the command imports. */
const besideOther = (effect: object): ChildProcess => {
  const modules = join(home, "other", "node_modules")
  cpSync(join(user, "node_modules", "@effect-retry"), join(modules, "@effect-retry"), {
    recursive: true,
    dereference: true
  })
  mkdirSync(join(modules, "effect"), { recursive: true })
  writeFileSync(join(modules, "effect", "package.json"), JSON.stringify(effect))
  return spawn(process.execPath, [join(modules, "@effect-retry", "lab", "dist", "bin.js"), "--version"])
}

const files = () => readdirSync(user).filter((name) => !["node_modules", "package.json"].includes(name)).sort()

/** Sends Ctrl-C as soon as the program honors it and has something to show, and this many times while it goes on. */
const interrupted = async (times: number, ...args: ReadonlyArray<string>): Promise<Ended> => {
  for (let millis = 1000; millis < 30_000; millis *= 2) {
    const child = started(...args)
    let sent = 0
    const timer = setInterval(() => {
      if (sent === times) return
      sent++
      child.kill("SIGINT")
    }, millis)
    const end = await ended(child)
    clearInterval(timer)
    if (sent === times && (times > 1 || (end.signal === null && end.out !== ""))) return end
  }
  return assert.fail("it never honors Ctrl-C")
}

/** How wide the blocks of a page are: no line of them needs to be scrolled to. */
const pageColumns = 72

/** What a page shows of the terminal: a command, in one line or more, and all that it prints. */
const consoles = (page: string) =>
  [...readFileSync(join(root, page), "utf8").matchAll(/^```console\n\$ (.*\n(?: {4}.*\n)*)([^]*?)^```$/gm)].map((
    [, line, output]
  ) => ({ line: line!, output: output! }))

// A page is one session at a terminal: its commands read what those above them wrote.
for (const page of ["docs/cli.md", "docs/choosing-a-policy.md"]) {
  describe(page, { shuffle: false }, () => {
    beforeAll(() => {
      writeFileSync(join(user, "access.log"), written("nginx"))
      cpSync(join(root, "examples", "check", "payments.json"), join(user, "payments.json"))
    })
    for (const { line, output } of consoles(page)) {
      it(`shows what is really printed: ${line}`, async () => {
        const path = `${join(user, "node_modules", ".bin")}${delimiter}${process.env["PATH"]}`
        const shell = line.replaceAll("npx ", "")
        const { err, out } = await ended(
          spawn("sh", ["-c", shell], { cwd: user, env: { ...process.env, COLUMNS: `${pageColumns}`, PATH: path } })
        )
        assert.strictEqual(err + out, output)
      })
    }
    afterAll(() => {
      for (const name of files()) rmSync(join(user, name))
    })
  })
}

describe("docs/cli.md", () => {
  it("shows every command", () => {
    const shown = consoles("docs/cli.md").map(({ line }) => line.split(" ").slice(1, 3).join(" "))
    for (const name of ["explain", "simulate", "compare", "check", "sweep", "tune", "fit", "scenarios"]) {
      assert.include(shown, `effect-retry ${name}`)
    }
  })
})

describe("the command that is installed", () => {
  it("reads a log more than twice as large as its memory", async () => {
    const path = join(home, "long.log")
    const once = written("nginx")
    for (let n = 0; n < 100; n++) writeFileSync(path, once, { flag: "a" })
    const { code, err, out } = await ended(
      spawn(process.execPath, ["--max-old-space-size=40", command, "fit", path, "--json"], { cwd: user })
    )
    assert.strictEqual(code, 0, err)
    const { broken, fitted, lines } = JSON.parse(out)
    assert.deepStrictEqual([lines, broken, fitted.requests], [100 * (once.split("\n").length - 1), 0, lines])
    rmSync(path)
  })

  it("is of the version of the package", async () => {
    const { version } = JSON.parse(readFileSync(join(lab, "package.json"), "utf8"))
    assert.deepStrictEqual(await ended(started("--version")), {
      code: 0,
      signal: null,
      out: `effect-retry v${version}\n`,
      err: ""
    })
  })

  it("finds the built-in scenarios, and runs under npx", async () => {
    const out = execFileSync("npx", ["--no-install", "effect-retry", "simulate", "layers"], { cwd: user, ...quietly })
    assert.match(out, /^layers\n20 runs, seeds 1 to 20: /)
  })

  it("spreads runs over threads, and prints the same", async () => {
    const [alone, spread] = await Promise.all(
      ["1", "2"].map((workers) => ended(started("simulate", "outage", "--json", "--runs", "5", "--workers", workers)))
    )
    assert.strictEqual(spread!.code, 0, spread!.err)
    assert.isAbove(5 * JSON.parse(spread!.out).results[0].attempts, worthAThread)
    assert.deepStrictEqual(spread, alone)
  })

  it("includes its licenses, and nothing else but scenarios and the schema", () => {
    const installed = join(user, "node_modules", "@effect-retry", "lab")
    assert.deepStrictEqual(readdirSync(installed).sort(), [
      "LICENSE",
      "NOTICE",
      "README.md",
      "dist",
      "package.json",
      "scenarios"
    ])
    const licences = readFileSync(join(installed, "dist", "bin.licenses.txt"), "utf8")
    for (const name of ["@effect/platform-node", "d3-scale", "d3-shape"]) {
      assert.match(licences, new RegExp(`^${name} \\d`, "m"))
    }
    assert.include(licences, readFileSync(join(root, "node_modules", "d3-scale", "LICENSE"), "utf8").trim())
  })

  it("says which Effect it needs, with Effect 3 or none installed", async () => {
    const three = { name: "effect", version: "3.22.4", exports: { "./package.json": "./package.json" } }
    for (const effect of [three, { name: "effect", version: "0.0.0" }]) {
      const { code, err, out } = await ended(besideOther(effect))
      assert.deepStrictEqual([code, out], [2, ""])
      assert.match(err, /^effect-retry: needs Effect \^4\.1\.0: npm install effect@\^4\.1\.0 \([^\n]*\)\n$/)
    }
  })

  it("writes a scenario for editors, runs it and refuses to overwrite it", async () => {
    assert.strictEqual((await ended(started("init"))).code, 0)
    const { $schema } = JSON.parse(readFileSync(join(user, "scenario.json"), "utf8"))
    assert.strictEqual(JSON.parse(readFileSync(join(user, $schema), "utf8")).$ref, "#/$defs/Scenario")
    assert.strictEqual((await ended(started("simulate", "scenario.json", "--runs", "1"))).code, 0)
    const again = await ended(started("init"))
    assert.strictEqual(again.code, 2)
    assert.match(again.err, /^effect-retry: "scenario.json" already exists: --force overwrites it\n$/)
    rmSync(join(user, "scenario.json"))
  })

  it("exits with 2 and a line if it cannot write, and with 0 if its reader stops", async () => {
    const refused = await ended(started("simulate", "layers", "--report", "no/report.html"))
    assert.deepStrictEqual([refused.code, refused.out], [2, ""])
    assert.strictEqual(
      refused.err,
      "effect-retry: cannot write \"no/report.html\": no such file or folder\n"
    )
    const full = await ended(spawn("sh", ["-c", `"${command}" simulate layers --runs 1 > /dev/full`]))
    assert.deepStrictEqual(
      [full.code, full.err],
      [2, "effect-retry: cannot write the standard output: the disk is full\n"]
    )
    const child = started("simulate", "outage", "--runs", "1", "--json")
    child.stdout?.destroy()
    assert.deepStrictEqual(await ended(child), { code: 0, signal: null, out: "", err: "" })
  })

  it("writes a page into a file that the shell has opened", async () => {
    const page = join(user, "redirected.html")
    const { code } = await ended(
      spawn("sh", ["-c", `"${command}" simulate layers --runs 1 --report /dev/stdout > "${page}"`])
    )
    assert.strictEqual(code, 0)
    assert.match(readFileSync(page, "utf8"), /^<!doctype html>[^]*<\/html>\s*$/i)
    rmSync(page)
  })

  it("writes a page into a pipe", async () => {
    const { code, err, out } = await ended(
      spawn("sh", ["-c", `"${command}" simulate layers --runs 1 --report /dev/stdout | cat`])
    )
    assert.deepStrictEqual([code, err], [0, "wrote /dev/stdout\n"])
    assert.match(out, /^<!doctype html>[^]*<\/html>\s*layers: /i)
  })

  it("writes a partial page after Ctrl-C, and exits with 130", async () => {
    const { code, err, out } = await interrupted(1, "simulate", "ten-thousand-clients", "--report", "partial.html")
    assert.strictEqual(code, 130)
    assert.match(out, /^PARTIAL: /)
    assert.strictEqual(err, "wrote partial.html\n")
    assert.match(readFileSync(join(user, "partial.html"), "utf8"), /partial/i)
    assert.deepStrictEqual(files(), ["partial.html"])
    rmSync(join(user, "partial.html"))
  })

  it("exits immediately at the second Ctrl-C, even when about to write", async () => {
    // Nobody reads from the pipe, so it takes no end of writing.
    execFileSync("mkfifo", [join(user, "pipe")])
    const { out, signal } = await interrupted(2, "simulate", "ten-thousand-clients", "--report", "pipe")
    assert.deepStrictEqual([signal, out], ["SIGINT", ""])
    assert.deepStrictEqual(files(), ["pipe"])
    rmSync(join(user, "pipe"))
  })
})
