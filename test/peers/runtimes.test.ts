import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { build } from "esbuild"
import * as ChildProcess from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { freePort, type PeerError, startServer, temporaryFolder } from "../utils/peers.ts"
import type { Addresses, Sends } from "./runtimes/program.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const installed = path.join(root, "test/runtimes/node_modules")
const page = fs.readFileSync(path.join(root, "docs/modules.md"), "utf8")

/** What is expected of every runtime. */
const everywhere: Sends = {
  "nobody listens": 3,
  "nobody listens to a POST": 3,
  "the server resets": 3,
  "the server closes": 3,
  "the body ends too early": 3,
  "the body is reset": 3,
  "no answer in time": 3,
  "the caller aborts": 1,
  "a defect of the program": 1,
  "retryFetch": 3,
  "retryFetch, a PUT": 3,
  "retryFetch, a POST": 1,
  "three calls on 8 tokens": 4
}

/** Begins an answer, and ends it before its length. */
const breaksOff = (response: http.ServerResponse, end: () => void) => {
  response.writeHead(200, { "content-length": 1000 })
  response.write("the beginning", () => setTimeout(end, 20))
}

/** A server that fails as the path says, shows browsers a page, and takes what they report. */
const startFailing: Effect.Effect<
  { readonly url: string; readonly show: (script: string) => Promise<Sends> },
  never,
  Scope.Scope
> = Effect.gen(function*() {
  let script = ""
  let report: (sends: Sends) => void = () => {}
  const paths: Record<string, (request: http.IncomingMessage, response: http.ServerResponse) => void> = {
    "/reset": ({ socket }) => void socket.resetAndDestroy(),
    "/close": ({ socket }) => void socket.destroy(),
    "/silent": () => {},
    "/short": (request, response) => breaksOff(response, () => request.socket.destroy()),
    "/broken": (request, response) => breaksOff(response, () => request.socket.resetAndDestroy()),
    "/page": (_, response) => {
      response.writeHead(200, { "content-type": "text/html" })
      response.end(`<meta charset="utf-8"><script type="module" src="/script.js"></script>`)
    },
    "/script.js": (_, response) => {
      response.writeHead(200, { "content-type": "text/javascript" })
      response.end(script)
    },
    "/report": (request, response) => {
      let body = ""
      request.on("data", (chunk) => body += chunk)
      request.on("end", () => {
        response.end()
        report(JSON.parse(body))
      })
    }
  }
  const server = http.createServer((request, response) => {
    const answer = paths[request.url ?? ""]
    if (answer === undefined) response.writeHead(404).end()
    else answer(request, response)
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    show: (shown: string) => {
      script = shown
      return new Promise((resolve) => report = resolve)
    }
  }
})

const addresses = Effect.gen(function*() {
  const server = yield* startFailing
  return { ...server, of: { server: server.url, nobody: `http://127.0.0.1:${yield* freePort}/` } }
})

/** What is packed of the package. */
let own: string

beforeAll(() => {
  own = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  fs.copyFileSync(path.join(root, "package.json"), path.join(own, "package.json"))
  const tsc = path.join(root, "node_modules/.bin/tsc")
  ChildProcess.execFileSync(tsc, ["-p", ".config/tsconfig.build.json", "--outDir", path.join(own, "dist")], {
    cwd: root
  })
  ChildProcess.execFileSync(process.execPath, [".config/bundle.mjs", path.join(own, "dist")], {
    cwd: root
  })
})

afterAll(() => fs.rmSync(own, { recursive: true }))

/** A project that has installed the package, and Effect. */
const projectWith = (effect: string) =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    fs.cpSync(own, path.join(folder, "node_modules/effect-retry"), { recursive: true })
    fs.symlinkSync(effect, path.join(folder, "node_modules/effect"))
    const dependencies = { effect: "*", "effect-retry": "*" }
    fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify({ type: "module", dependencies }))
    return folder
  })

const project = projectWith(path.join(root, "node_modules/effect"))

interface Script {
  readonly folder: string
  readonly main: string
  readonly format: "esm" | "cjs"
  /** Whether the package is in the script. Otherwise the runtime finds it. */
  readonly bundle: boolean
}

const program = JSON.stringify(path.join(root, "test/peers/runtimes/program.ts"))

const scriptOf = ({ bundle, folder, format, main }: Script): Effect.Effect<string> =>
  Effect.promise(async () => {
    const { outputFiles } = await build({
      stdin: { contents: `import { run } from ${program}\n${main}`, resolveDir: folder, loader: "ts" },
      bundle: true,
      write: false,
      format,
      platform: bundle ? "browser" : "node",
      target: "es2022",
      tsconfigRaw: "{}",
      logLevel: "silent",
      nodePaths: [path.join(folder, "node_modules")],
      ...(bundle
        ? {
          // What makes an example a program of Node.
          external: ["node:*"],
          define: { "import.meta.url": `"file:///${format}"` },
          alias: {
            "effect-retry": path.join(folder, "node_modules/effect-retry/dist/index.js"),
            "effect-retry/fetch": path.join(folder, "node_modules/effect-retry/dist/http/fetch.js"),
            "effect-retry/testing": path.join(folder, "node_modules/effect-retry/dist/testing/index.js")
          }
        }
        : { packages: "external" })
    })
    return outputFiles[0]!.text
  })

const ended = (command: string, args: ReadonlyArray<string>, cwd: string): Effect.Effect<string> =>
  Effect.promise(() =>
    promisify(ChildProcess.execFile)(command, args, {
      cwd,
      timeout: 300_000,
      env: { ...process.env, NO_COLOR: "1" }
    }).then(({ stdout }) => stdout)
  )

const prints = (of: Addresses) => `run(${JSON.stringify(of)}).then((sends) => console.log(JSON.stringify(sends)))`

/** Runs the program as a script that imports the package, or requires it. */
const asScript = (command: string, args: ReadonlyArray<string>, format: "esm" | "cjs" = "esm") =>
  Effect.gen(function*() {
    const { of } = yield* addresses
    const folder = yield* project
    const name = format === "esm" ? "main.mjs" : "main.cjs"
    const script = yield* scriptOf({ folder, main: prints(of), format, bundle: false })
    if (format === "cjs") assert.include(script, `require("effect-retry")`)
    fs.writeFileSync(path.join(folder, name), script)
    const output = yield* ended(command, [...args, name], folder)
    const sends: Sends = JSON.parse(output)
    return sends
  })

/** Starts a program in a process group of its own. */
const started = (command: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => ChildProcess.spawn(command, args, { stdio: "ignore", detached: true })),
    (child) =>
      Effect.callback<void>((resume) => {
        if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        // The group: a browser has processes of its own, which write to its profile.
        process.kill(-child.pid, "SIGKILL")
      })
  )

/** Shows the program to a browser, which reports what it did. */
const asPage = (command: string, args: (profile: string) => ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { of, show, url } = yield* addresses
    const folder = yield* project
    const main = `run(${
      JSON.stringify(of)
    }).then((sends) => fetch("/report", { method: "POST", body: JSON.stringify(sends) }))`
    const reported = show(yield* scriptOf({ folder, main, format: "esm", bundle: true }))
    const profile = yield* temporaryFolder
    yield* started(command, [...args(profile), `${url}/page`])
    return yield* Effect.promise(() => reported)
  })

/** Serves the script of a Worker. */
const startWorker = (command: string, folder: string, script: string) =>
  Effect.gen(function*() {
    const port = yield* freePort
    fs.writeFileSync(path.join(folder, "worker.mjs"), script)
    fs.writeFileSync(
      path.join(folder, "config.capnp"),
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "internet", network = (allow = ["local"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")], compatibilityDate = "2026-11-01"
);
`
    )
    yield* startServer(command, ["serve", path.join(folder, "config.capnp")], port)
    return `http://127.0.0.1:${port}/`
  })

/** Serves the program as a Worker. */
const asWorker = (command: string) =>
  Effect.gen(function*() {
    const { of } = yield* addresses
    const folder = yield* project
    const main = `export default { fetch: () => run(${JSON.stringify(of)}).then((sends) => Response.json(sends)) }`
    const script = yield* scriptOf({ folder, main, format: "esm", bundle: true })
    const url = yield* startWorker(command, folder, script)
    const sends: Sends = yield* Effect.promise(() => fetch(url).then((response): Promise<any> => response.json()))
    return sends
  })

/** The example, with a client in its environment that is down, and counts. */
const example = `
import { worker } from ${JSON.stringify(path.join(root, "examples/sharing/worker.ts"))}
let sends = 0
const orders = {
  getItem: async () => {
    sends++
    throw Object.assign(new Error("later"), { status: 503 })
  }
}
export default {
  fetch: (request) => new URL(request.url).pathname === "/sends"
    ? new Response(String(sends))
    : worker.fetch(request, { orders })
}
`

const binary = (file: string): string => path.join(installed, file)
const node = (major: number): string => binary(`node${major}/bin/node`)
const bun = binary("@oven/bun-linux-x64/bin/bun")
const deno = binary("@deno/linux-x64-glibc/deno")
const workerd = binary("@cloudflare/workerd-linux-64/bin/workerd")
const chromiumArgs = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--no-first-run"
]

type Run = Effect.Effect<Sends, PeerError, Scope.Scope>

/** The runtimes, and where one differs from what is expected of all. */
const runtimes: ReadonlyArray<readonly [name: string, run: Run, differs?: Sends]> = [
  ...[20, 22, 24].flatMap((major) => [
    [`Node ${major}`, asScript(node(major), [])] as const,
    [`Node ${major}, by require()`, asScript(node(major), ["--no-warnings"], "cjs")] as const
  ]),
  ["Bun", asScript(bun, ["run"])],
  ["Deno", asScript(deno, ["run", "--allow-all", "--node-modules-dir=manual"])],
  ["workerd", asWorker(workerd)],
  ["Chromium", asPage("chromium", (profile) => [...chromiumArgs, `--user-data-dir=${profile}`])],
  // It calls a reset in the body an AbortError, as if the caller had aborted.
  [
    "Firefox",
    asPage("firefox-esr", (profile) => ["--headless", "--no-remote", "--profile", profile]),
    { "the body is reset": 1 }
  ]
]

describe.concurrent("a program in each runtime", () => {
  for (const [name, run, differs] of runtimes) {
    it.live(`${name} retries its network failures, and nothing else`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* run, { ...everywhere, ...differs })
      }).pipe(Effect.scoped))
  }
})

describe("examples/sharing/worker.ts in workerd", () => {
  it.live("shares one quota between the requests of an isolate: 40 in an outage send 75 times", () =>
    Effect.gen(function*() {
      const folder = yield* project
      const url = yield* startWorker(
        workerd,
        folder,
        yield* scriptOf({ folder, main: example, format: "esm", bundle: true })
      )
      const statuses = yield* Effect.promise(() =>
        Promise.all(Array.from({ length: 40 }, (_, id) => fetch(`${url}${id}`).then(({ status }) => status)))
      )
      assert.deepStrictEqual([...new Set(statuses)], [503])
      assert.strictEqual(yield* Effect.promise(() => fetch(`${url}sends`).then((response) => response.text())), "75")
    }).pipe(Effect.scoped))
})

describe("Effect 3", () => {
  const needs = "effect-retry needs effect 4.1 (npm install effect@4).js"
  /** An adapter may name itself: its own module of Effect is missing, too. */
  const entries = [
    ["effect-retry", [needs]],
    ["effect-retry/RetryPromise", [needs]],
    ["effect-retry/aws/AwsModes", [needs]],
    ["effect-retry/RetryGrpc", [needs]],
    ["effect-retry/RetryHttp", [needs, "RetryHttp.js"]]
  ] as const
  it.live("the import of each fails and says which Effect it needs", () =>
    Effect.gen(function*() {
      const folder = yield* projectWith(path.join(installed, "effect3"))
      for (const [entry, files] of entries) {
        for (const script of [`import("${entry}")`, `Promise.resolve().then(() => require("${entry}"))`]) {
          const says = `${script}.catch(({ code, message }) => console.log(code, message))`
          const said = yield* ended(node(22), ["--no-warnings", "--input-type=commonjs", "--eval", says], folder)
          assert.match(
            said,
            /^ERR_PACKAGE_PATH_NOT_EXPORTED Package subpath .* in .*effect.?\/package\.json imported from /
          )
          const file = path.basename(said.trim())
          assert.include(files, file, script)
          assert.include(page, path.basename(file, ".js"))
        }
      }
    }).pipe(Effect.scoped))
})

describe("docs/modules.md", () => {
  it("names the runtimes that are run, and no others", () => {
    const table = page.slice(page.indexOf("| runtime | how |")).split("\n\n")[0]!
    const rows = table.split("\n").slice(2).map((row) => row.split("|")[1]!.trim())
    const names = runtimes.map(([name]) =>
      name.replace(/^Node \d+(, by require\(\))?$/, (_, by) => `Node 20, 22, 24${by ?? ""}`)
    )
    assert.deepStrictEqual(rows, [...new Set(names)].sort((a, b) => names.indexOf(a) - names.indexOf(b)))
  })
})
