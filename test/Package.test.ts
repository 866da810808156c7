import { assert, describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"

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

  it("brings nothing along: effect is a peer, and there is no other dependency at run time", () => {
    for (const kind of ["dependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"]) {
      assert.deepStrictEqual(Object.keys(manifest[kind] ?? {}), [], kind)
    }
    const { effect, ...others } = manifest.peerDependencies
    assert.isString(effect)
    for (const name of Object.keys(others)) assert.isTrue(manifest.peerDependenciesMeta?.[name]?.optional, name)
  })

  it("is locked: each package of the lock file has its hash", () => {
    const { packages } = JSON.parse(fs.readFileSync(new URL("package-lock.json", root), "utf8"))
    const without = Object.entries<Record<string, unknown>>(packages).filter(
      // npm leaves out the hashes of optional packages for other systems than the one it runs on.
      ([, entry]) => entry["link"] !== true && entry["optional"] !== true && entry["integrity"] === undefined
    )
    assert.deepStrictEqual(without.map(([path]) => path), ["", "lab"])
  })

  it("holds sources, what is built of them, and nothing else", async () => {
    const json = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    })
    const answer: unknown = JSON.parse(json)
    const [packed] = Object.values(
      answer as Record<string, { readonly files: ReadonlyArray<{ readonly path: string }> }>
    )
    const paths = packed!.files.map(({ path }) => path)
    // What `npm run build` makes is there for each source, or not at all.
    const sources = new Set(paths.filter((path) => path.startsWith("src/")).map((path) => path.slice(4, -3)))
    for (const path of paths.filter((path) => path.startsWith("dist/"))) {
      assert.isTrue(sources.has(path.slice(5).replace(/(\.d\.ts|\.js)(\.map)?$/, "")), path)
    }
    const kinds = paths.filter((path) => !path.startsWith("dist/")).map((path) =>
      path.replace(/^src\/.*\.ts$/, "src/**/*.ts")
    )
    await expect(`${[...new Set(kinds)].sort().join("\n")}\n`).toMatchFileSnapshot("snapshots/package-content.txt")
  })

  const modules = fs.readdirSync(new URL("src", root), { encoding: "utf8", recursive: true })
    .filter((path) => path.endsWith(".ts")).map((path) => path.slice(0, -3).replaceAll("\\", "/")).sort()
  /** All but what is in an `internal` folder. */
  const isPublic = (module: string) => !/(^|\/)internal\//.test(module)
  /** What users write: the folder of an adapter is not in its name. */
  const nameOf = (module: string) =>
    `effect-retry/${module}`.replace(/\/index$/, "").replace(/\/(?:http|grpc|json|redis|aws(?=\/AwsSdk))\//, "/")

  it("exports these values and types, and no others", async () => {
    const lines: Array<string> = []
    const files: ReadonlyArray<readonly [name: string, path: string]> = [
      ...modules.filter(isPublic).map((module) => [nameOf(module), `src/${module}.ts`] as const),
      ...["Explain", "Simulator"].map((module) => [`@effect-retry/lab/${module}`, `lab/src/${module}.ts`] as const)
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
    assert.strictEqual(Object.keys(manifest.exports).length, modules.filter(isPublic).length + 1)
  })

  it("is resolved without a build to the sources of the same modules", () => {
    const { compilerOptions } = JSON.parse(fs.readFileSync(new URL("tsconfig.json", root), "utf8"))
    const paths = Object.entries(compilerOptions.paths).filter(([name]) => !name.startsWith("@"))
    assert.deepStrictEqual(
      paths.sort(),
      modules.filter(isPublic).map((module): [string, unknown] => [nameOf(module), [`./src/${module}.ts`]]).sort()
    )
  })
})

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
