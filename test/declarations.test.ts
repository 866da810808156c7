import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { publicModules } from "./utils/modules.ts"

const root = fileURLToPath(new URL("../", import.meta.url))
const tsc = path.join(root, "node_modules/typescript/bin/tsc")

/** The comment that a file begins with. */
const moduleComment = (file: string): string | undefined =>
  /^\/\*\*\n(?: \*.*\n)*? \*\/\n/.exec(fs.readFileSync(file, "utf8"))?.[0]

/** Writes the declarations of a project into the folder. */
const declare = (project: string, folder: string): void => {
  execFileSync(process.execPath, [
    tsc,
    "-p",
    project,
    "--noCheck",
    "--singleThreaded",
    "--emitDeclarationOnly",
    "--outDir",
    folder
  ], { cwd: root })
}

describe("the published declarations", () => {
  it("begin with the comment of their module", () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "declarations-"))
    try {
      declare(".config/tsconfig.build.json", path.join(folder, "src"))
      declare("lab/tsconfig.build.json", folder)
      const without = publicModules.filter(({ source }) => moduleComment(path.join(root, source)) === undefined)
      // An import that no declaration uses is left out, with its comments. A comment before an empty line is not the import's.
      const lost = publicModules.filter(({ source }) =>
        moduleComment(path.join(root, source)) !== moduleComment(path.join(folder, source.replace(/\.ts$/, ".d.ts")))
      )
      assert.deepStrictEqual({ without, lost }, { without: [], lost: [] })
      assert.isAbove(publicModules.length, 30)
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })
})
