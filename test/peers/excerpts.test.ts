/** Each block of a page, with the imports that the site unfolds, pasted into an empty project and compiled there. */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import * as ChildProcess from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { excerptsOf, wholeOf } from "../../docs/site/excerpts.js"
import { groups } from "../../docs/site/pages.js"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (file: string) => fs.readFileSync(path.join(root, file), "utf8")
const tsc = path.join(root, "node_modules/.bin/tsc")

/** The file of each block: that of a page, by its place on it. */
const blocks = new Map(
  ["docs/site/home.md", ...groups.flatMap(({ pages }) => pages.map(([page]) => page))].flatMap((page) =>
    excerptsOf(read(page)).map(({ code, file }, index) =>
      [`${page.replace(/\W/g, "-")}-${index}.ts`, wholeOf(read, file, code)] as const
    )
  )
)

let project: string

/** A package as it is packed, with its declarations: what a program is compiled against. Returns their folder. */
const installed = (name: string, folder: string, config: string) => {
  const own = path.join(project, "node_modules", name)
  fs.mkdirSync(own, { recursive: true })
  fs.copyFileSync(path.join(root, folder, "package.json"), path.join(own, "package.json"))
  const dist = path.join(own, "dist")
  ChildProcess.execFileSync(tsc, ["-p", config, "--emitDeclarationOnly", "--outDir", dist], { cwd: root })
  return dist
}

beforeAll(() => {
  project = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-excerpts-"))
  const modules = path.join(project, "node_modules")
  installed("effect-retry", "", ".config/tsconfig.build.json")
  const lab = installed("@effect-retry/lab", "lab/", "lab/tsconfig.build.json")
  fs.cpSync(path.join(lab, "lab/src"), lab, { recursive: true })
  for (const name of ["lab", "src"]) fs.rmSync(path.join(lab, name), { recursive: true, force: true })
  for (const name of fs.readdirSync(path.join(root, "node_modules"))) {
    if (!/^(?:\.|effect-retry$|@effect-retry$)/.test(name)) {
      fs.symlinkSync(path.join(root, "node_modules", name), path.join(modules, name))
    }
  }
  fs.writeFileSync(path.join(project, "package.json"), JSON.stringify({ type: "module" }))
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true
  }
  fs.writeFileSync(path.join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
  for (const [file, code] of blocks) fs.writeFileSync(path.join(project, file), code)
})

afterAll(() => fs.rmSync(project, { recursive: true }))

it("every block of a page compiles in an empty project, with the imports that the site unfolds", () => {
  assert.isAbove(blocks.size, 90)
  const { stdout } = ChildProcess.spawnSync(tsc, [], { cwd: project, encoding: "utf8" })
  assert.strictEqual(stdout, "")
})
