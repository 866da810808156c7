import * as EffectRetry from "effect-retry"
import * as testing from "effect-retry/testing"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as world from "./exampleWorld.ts"
import { publicModules } from "./modules.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (file: string) => fs.readFileSync(path.join(root, file), "utf8")

/** A block of code in a doc comment. */
export interface Example {
  /** Its file and the line on which its code begins, from 1. */
  readonly file: string
  readonly line: number
  readonly title: string
  readonly code: string
}

const examplesOf = (file: string): ReadonlyArray<Example> =>
  [...read(file).matchAll(/(?:\*\*Example\*\* \((.*)\)\n *\*\n)? *\* ```ts\n([^]*?)\n *\* ```/g)].map(
    ({ 0: all, 1: title, 2: block, index, input }) => ({
      file,
      line: input.slice(0, index + all.indexOf("```ts")).split("\n").length + 1,
      title: title ?? "",
      code: block!.replace(/^ *\* ?/gm, "")
    })
  )

const sources = ["src", "lab/src"].flatMap((folder) =>
  fs.readdirSync(path.join(root, folder), { encoding: "utf8", recursive: true })
    .filter((file) => file.endsWith(".ts")).map((file) => `${folder}/${file}`).sort()
)
/** The examples in the comments of all sources. */
export const examples = sources.flatMap(examplesOf)

const worldFile = "test/utils/exampleWorld.ts"
const worldTypes = new Set([...read(worldFile).matchAll(/^export type (\w+)/gm)].map(([, name]) => name))
const effectModules = new Map(
  ["persistence/", "http/", ""].flatMap((folder) =>
    fs.readdirSync(path.join(root, "node_modules/effect/dist", folder)).flatMap((file) => {
      const name = /^([A-Z]\w*)\.d\.ts$/.exec(file)?.[1]
      return name === undefined || name in globalThis ? [] : [[name, `effect/${folder}${name}`] as const]
    })
  )
)
const others = new Map([
  ["DynamoDBClient", "@aws-sdk/client-dynamodb"],
  ["GetItemCommand", "@aws-sdk/client-dynamodb"],
  ["Metadata", "@grpc/grpc-js"],
  ["assert", "@effect/vitest"],
  ["it", "@effect/vitest"]
])

/** The import of a name that an example uses without declaring it. */
const importOf = (name: string): string | undefined => {
  const namespace = publicModules.find((module) => module.name.endsWith(`/${name}`))?.name ?? effectModules.get(name)
  const module = others.get(name)
  if (name in EffectRetry) return `import { ${name} } from "effect-retry"`
  if (namespace !== undefined) return `import * as ${name} from "${namespace}"`
  if (name in testing) return `import { ${name} } from "effect-retry/testing"`
  if (module !== undefined) return `import { ${name} } from "${module}"`
  const type = worldTypes.has(name) ? "type " : ""
  return type === "" && !(name in world) ? undefined : `import ${type}{ ${name} } from "${path.join(root, worldFile)}"`
}

/** The names that an example declares or imports outside of functions. */
const namesOf = (statements: ReadonlyArray<string>): ReadonlyArray<string> =>
  statements.flatMap((statement) => {
    const [, name, list] = /^(?:const|class|import(?: \* as)?) (?:(\w+)|\{ ([^}]*) \})/.exec(statement) ?? []
    return name ?? list?.split(", ") ?? []
  })

/** `expression // 5` claims a value. */
const claiming = (statement: string): string =>
  statement.replace(/^(\S.*) \/\/ (-?[\d.]+|".*"|true|false)$/m, "claim($1, `$2`)")

/**
 * The module of an example, on the lines that it has in its file. An example that yields or returns outside of functions
 * is the body of an effect, which the module exports. Any other exports what it declares, and its last expression.
 */
export const moduleOf = ({ code, line }: Example): string => {
  const statements = code.split(/\n(?=[^\s)}\]])/).map(claiming)
  const ownImports = statements.filter((statement) => statement.startsWith("import "))
  const others = statements.slice(ownImports.length)
  const isBody = others.some((statement) => /^(?:return\b|.*\byield\*)/.test(statement))
  const names = namesOf(others)
  const words = new Set(["claim", ...(isBody ? ["Effect"] : []), ...code.match(/[A-Za-z]\w*/g) ?? []])
  for (const name of [...names, ...namesOf(ownImports)]) words.delete(name)
  const imports = [...words].flatMap((word) => importOf(word) ?? []).join("; ")
  const last = others.length - 1
  if (isBody) {
    others[0] = `export default Effect.gen(function*() { ${others[0]}`
    others.push("})")
  } else {
    if (!/^(?:const|class|\/\/)/.test(others[last]!)) others[last] = `export default ${others[last]}`
    others.push(`export { ${names.join(", ")} }`)
  }
  return [imports + "\n".repeat(line - 2), ...ownImports, ...others, ""].join("\n")
}
