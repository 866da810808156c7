import * as fs from "node:fs"

const root = new URL("../../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")

/** A public module: how it is imported, and its source. */
export interface Module {
  readonly name: string
  readonly source: string
}

/** What an entry of `exports` leads to, with or without conditions. */
const targetsOf = (entry: unknown): ReadonlyArray<string> =>
  typeof entry === "string" ? [entry] : Object.values(entry as object).flatMap(targetsOf)

const modulesOf = (folder: string): ReadonlyArray<Module> => {
  const { exports, name } = JSON.parse(read(`${folder}package.json`))
  return Object.entries(exports).flatMap(([path, entry]) => {
    const built = targetsOf(entry).find((target) => /^\.\/dist\/.*\.js$/.test(target))
    if (built === undefined) return []
    return [{ name: path.replace(".", name), source: `${folder}${built.replace(/^.\/dist(.*)\.js$/, "src$1.ts")}` }]
  })
}

/** The public modules of the package and of the lab, as `exports` lists them. */
export const publicModules: ReadonlyArray<Module> = ["", "lab/"].flatMap(modulesOf)
