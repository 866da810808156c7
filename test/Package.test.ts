import { afterAll, assert, beforeAll, describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { internalsOf, publicModules } from "./utils/modules.ts"

const root = new URL("../", import.meta.url)
const manifest = JSON.parse(fs.readFileSync(new URL("package.json", root), "utf8"))

describe("the package", () => {
  it("runs nothing when it is installed", () => {
    const scripts = Object.keys(manifest.scripts)
    for (const hook of ["preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare"]) {
      assert.notInclude(scripts, hook)
    }
    assert.isFalse(fs.existsSync(new URL("binding.gyp", root)))
  })

  it("has no run-time dependency but its peer effect", () => {
    for (const kind of ["dependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"]) {
      assert.deepStrictEqual(Object.keys(manifest[kind] ?? {}), [], kind)
    }
    const { effect, ...others } = manifest.peerDependencies
    assert.isString(effect)
    for (const name of Object.keys(others)) assert.isTrue(manifest.peerDependenciesMeta?.[name]?.optional, name)
  })

  it("is locked: each package of the lock files has its hash", () => {
    for (const [file, own] of [["", ["", "lab"]], ["docs/site/", [""]], ["test/runtimes/", [""]]] as const) {
      const { packages } = JSON.parse(fs.readFileSync(new URL(`${file}package-lock.json`, root), "utf8"))
      const without = Object.entries<Locked>(packages).filter(
        ([path, entry]) => entry.link !== true && entry.integrity === undefined && !isUnserved(path, entry)
      )
      assert.deepStrictEqual(without.map(([path]) => path), [...own], file)
    }
  })

  /** The files of the tarball. */
  let paths: ReadonlyArray<string>
  // The home of who runs the tests need not be writable: npm keeps its files here.
  const cache = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  afterAll(() => fs.rmSync(cache, { recursive: true }))
  beforeAll(() => {
    const json = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: root,
      env: { ...process.env, npm_config_cache: cache },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    })
    const answer: unknown = JSON.parse(json)
    const [tarball] = Object.values(
      answer as Record<string, { readonly files: ReadonlyArray<{ readonly path: string }> }>
    )
    paths = tarball!.files.map(({ path }) => path)
  })

  it("contains build output, pages and examples, and nothing else", async () => {
    // What `npm run build` makes is there, or not at all: declarations of each source, and JavaScript in few files.
    const sources = new Set(modules)
    const schema = "dist/config/retry-config.schema.json"
    const entries = new Set(Object.values(manifest.exports))
    for (const path of paths.filter((path) => path.startsWith("dist/") && path !== schema)) {
      const isExpected = path.endsWith(".js")
        ? entries.has(`./${path}`) || path.startsWith("dist/internal/")
        : sources.has(path.slice(5).replace(/\.d\.ts$/, ""))
      assert.isTrue(isExpected, path)
    }
    const kinds = paths.filter((path) => !path.startsWith("dist/")).map((path) =>
      path.replace(/^examples\/.*\.ts$/, "examples/**/*.ts").replace(/^docs\/.*\.md$/, "docs/*.md")
    )
    await expect(`${[...new Set(kinds)].sort().join("\n")}\n`).toMatchFileSnapshot("snapshots/package-content.txt")
  })

  it("links from its pages to files and headings that are in it, or to absolute addresses", () => {
    const dead: Array<string> = []
    for (const page of paths.filter((path) => path.endsWith(".md"))) {
      for (const link of linksOf(fs.readFileSync(new URL(page, root), "utf8"))) {
        const leads = link.startsWith("https://") || leadsTo(paths, page, link) || isEvidence(page, link)
        if (!leads) dead.push(`${page}: ${link}`)
      }
    }
    assert.deepStrictEqual(dead, [])
  })

  const modules = fs.readdirSync(new URL("src", root), { encoding: "utf8", recursive: true })
    .filter((path) => path.endsWith(".ts")).map((path) => path.slice(0, -3).replaceAll("\\", "/")).sort()
  /** All but what is in an `internal` folder, and the engine. */
  const isPublic = (module: string) => !/(^|\/)(internal|engine)\//.test(module)
  /** The import path: a wing is not part of it. */
  const nameOf = (module: string) =>
    `effect-retry/${module}`.replace(/\/index$/, "").replace(
      /\/(?:config|drivers|gates|grpc|hedge|http|llm|metrics|quota|redis|resources|workflow|(?:aws|testing)(?=\/(?:AwsSdk|RetryStrategy|Chaos)$))\//,
      "/"
    )

  it("exports these values and types, and no others", async () => {
    const lines: Array<string> = []
    const files: ReadonlyArray<readonly [name: string, path: string]> = [
      ...modules.filter(isPublic).map((module) => [nameOf(module), `src/${module}.ts`] as const),
      ...["Expect", "Explain", "Simulator"].map((module) =>
        [`@effect-retry/lab/${module}`, `lab/src/${module}.ts`] as const
      )
    ]
    for (const [name, path] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const file = new URL(path, root)
      const { types, values } = exportsOf(fs.readFileSync(file, "utf8"))
      const imported: object = await import(file.href)
      assert.deepStrictEqual(values, Object.keys(imported).sort(), name)
      lines.push(`${name}: ${values.join(" ")}`)
      if (types.length > 0) lines.push(`${name} types: ${types.join(" ")}`)
    }
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("snapshots/exports.txt")
  })

  it("exports nothing at run time that is marked @internal", () => {
    const marked = publicModules.flatMap(({ name, source }) =>
      [...internalsOf(source)].map((value) => `${name.replace("effect-retry/", "")}: ${value}`)
    )
    assert.deepStrictEqual(marked, [])
  })

  it("gives access to its public modules and files, and to nothing else", () => {
    const expected = [
      ["effect-retry/package.json", "package.json"],
      ...modules.filter(isPublic).map((module) => [nameOf(module), `dist/${module}.js`]),
      ...[
        ...modules.filter((module) => !isPublic(module)),
        "index",
        "testing/index",
        "http/RetryHttp",
        "aws/AwsSdk",
        "bin"
      ]
        .map((module) => [`effect-retry/${module}`, "ERR_PACKAGE_PATH_NOT_EXPORTED"])
    ]
    const script = `console.log(JSON.stringify(process.argv.slice(1).map((name) => {
      try { return [name, import.meta.resolve(name)] } catch (error) { return [name, error.code] }
    })))`
    const names = expected.map(([name]) => name!)
    const answer = execFileSync(process.execPath, ["--input-type=module", "--eval", script, ...names], {
      cwd: root,
      encoding: "utf8"
    })
    const resolved: ReadonlyArray<readonly [string, string]> = JSON.parse(answer)
    assert.deepStrictEqual(resolved.map(([name, at]) => [name, at.replace(root.href, "")]), expected)
    const files = ["./package.json", "./retry-config.schema.json"]
    for (const file of files) assert.property(manifest.exports, file)
    assert.strictEqual(Object.keys(manifest.exports).length, modules.filter(isPublic).length + files.length)
  })

  it("is resolved without a build to the sources of the same modules", () => {
    const { compilerOptions } = JSON.parse(fs.readFileSync(new URL("tsconfig.json", root), "utf8"))
    /** As the compiler resolves a name: by its own entry or that with a star, the first file that exists. */
    const sourceOf = (name: string): string | undefined => {
      const candidates: ReadonlyArray<string> = compilerOptions.paths[name] ??
        compilerOptions.paths[name.replace(/^((?:@effect-retry\/)?[^/]+)\/.*/, "$1/*")]
      const star = name.replace(/^(?:@effect-retry\/)?[^/]+\//, "")
      return candidates.map((path) => path.replace("./", "").replace("*", star))
        .find((path) => fs.existsSync(new URL(path, root)))
    }
    for (const { name, source } of publicModules) assert.strictEqual(sourceOf(name), source)
    assert.isAbove(publicModules.length, modules.filter(isPublic).length)
  })

  it("imports in this repository what is public", () => {
    const names = new Set(["effect-retry/package.json", ...publicModules.map(({ name }) => name)])
    const isCode = (path: string) => /\.tsx?$/.test(path) && !path.includes("node_modules")
    const closed = ["examples", "lab", "src", "test"].flatMap((folder) =>
      fs.readdirSync(new URL(folder, root), { encoding: "utf8", recursive: true }).filter(isCode).flatMap((path) => {
        const code = fs.readFileSync(new URL(`${folder}/${path}`, root), "utf8")
        return Array.from(code.matchAll(/^(?:import|export) .*?from "(@?effect-retry[^"]*)"$/gm), ([, name]) => name!)
          .filter((name) => !names.has(name)).map((name) => `${folder}/${path}: ${name}`)
      })
    )
    assert.deepStrictEqual(closed, [])
  })
})

interface Locked {
  readonly [field: string]: unknown
  readonly optional?: boolean
}

/** Programs for other systems, which the registry did not serve where the file was written: add them where it does. */
const isUnserved = (path: string, { optional }: Locked): boolean =>
  optional === true && /^node_modules\/@(?:dprint\/|effect\/tsgo-)/.test(path)

const linksOf = (page: string): ReadonlyArray<string> =>
  Array.from(page.replace(/^```[^]*?^```$/gm, "").matchAll(/\]\(([^)\s]+)[^)]*\)/g), ([, link]) => link!)

/** The anchors of a page, as GitHub and npm make them of its headings. */
const anchorsOf = (page: string): ReadonlyArray<string> =>
  Array.from(
    page.matchAll(/^#+ (.*)$/gm),
    ([, heading]) => heading!.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-")
  )

/** Pages name the tests that hold what they say. Those are in the repository only. */
const isEvidence = (page: string, link: string): boolean =>
  /^(?:docs|\.github)\//.test(page) && /^(?:\.\.\/)+(?:lab\/)?test\b/.test(link)

const leadsTo = (paths: ReadonlyArray<string>, page: string, link: string): boolean => {
  const { hash, pathname } = new URL(link, `file:///${page}`)
  const path = pathname.slice(1)
  if (!paths.some((packed) => packed === path || packed.startsWith(`${path.replace(/\/$/, "")}/`))) return false
  return hash === "" || anchorsOf(fs.readFileSync(new URL(path, root), "utf8")).includes(hash.slice(1))
}

/** The names that a module exports. A class is listed as a value. */
const exportsOf = (source: string) => {
  const types: Array<string> = []
  const values: Array<string> = []
  const add = (name: string, isType: boolean) => (isType ? types : values).push(name)
  const form = /^export (?:(?:\* as|(?:abstract )?class|const|function|(interface|type)) (\w+)|(type )?\{([^}]*)\})?/gm
  for (const [line, isType, name, areTypes, list] of source.matchAll(form)) {
    if (name !== undefined) add(name, isType !== undefined)
    else if (list === undefined) throw new Error(`what is exported here: ${line}`)
    for (const each of list?.split(",") ?? []) {
      const [, mark, name] = /^\s*(type )?(?:\w+ as )?(\w+)\s*$/.exec(each)!
      add(name!, (areTypes ?? mark) !== undefined)
    }
  }
  return { types: types.sort(), values: [...new Set(values)].sort() }
}
