import * as fs from "node:fs"
import { parseAst } from "rolldown/parseAst"

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

export const importOf = (source: string): Promise<Readonly<Record<string, unknown>>> =>
  import(new URL(source, root).href)

interface Parsed {
  readonly statements: ReadonlyArray<any>
  readonly textOf: (node: any) => string
}

const parsed = (source: string): Parsed => {
  const code = read(source)
  const textOf = (node: any): string => node === undefined || node === null ? "" : code.slice(node.start, node.end)
  return { statements: parseAst(code, { lang: "ts" }).body, textOf }
}

/** Parameters of a function that an export is, or that its type describes, or that it is made of. */
const parametersOf = (node: any): ReadonlyArray<any> => {
  if (node === null || typeof node !== "object") return []
  if (Array.isArray(node.params)) return node.params
  const inside = node.type === "CallExpression" ? node.arguments : node.type === "TSTypeLiteral" ? node.members : []
  return inside.flatMap(parametersOf)
}

const declaredBy = (declaration: any): ReadonlyArray<readonly [name: string, parameters: ReadonlyArray<any>]> => {
  if (declaration.type !== "VariableDeclaration") return [[declaration.id.name, parametersOf(declaration)]]
  return declaration.declarations.map(({ id, init }: any) => [
    id.name,
    [id.typeAnnotation?.typeAnnotation, init].flatMap(parametersOf)
  ])
}

/** Interfaces and types of a module whose members may all be left out. */
const optionalOf = (statements: ReadonlyArray<any>): ReadonlySet<string> =>
  new Set(statements.flatMap(({ declaration, ...own }) => {
    const { body, id, type, typeAnnotation } = declaration ?? own
    const members = type === "TSInterfaceDeclaration" ? body.body : typeAnnotation?.members
    return members?.length > 0 && members.every(({ optional }: any) => optional === true) ? [id.name] : []
  }))

/** Whether a parameter is a record of options: by its name, its type or the name of that. */
const takesOptions = ({ statements, textOf }: Parsed) => {
  const optional = optionalOf(statements)
  const isRecord = (type: any): boolean =>
    type?.type === "TSTypeLiteral" || type?.type === "TSUnionType" && type.types.some(isRecord) ||
    optional.has(textOf(type?.typeName))
  return (parameter: any): boolean => {
    const { left = parameter } = parameter
    return /options$/i.test(left.name ?? "") || isRecord(left.typeAnnotation?.typeAnnotation) ||
      /(?:Options\w*|\wConfig|HedgingPolicy|HeaderNames)\b/.test(textOf(left.typeAnnotation))
  }
}

/** The names that a file exports for other files of the library only. */
export const internalsOf = (source: string): ReadonlySet<string> =>
  new Set(
    read(source).split("/**").flatMap((part) => {
      const [comment = "", code = ""] = part.split("*/\n", 2)
      const [, name] = /^export (?:const|class|function) (\w+)/.exec(code) ?? []
      return name !== undefined && comment.includes("@internal") ? [name] : []
    })
  )

/** The functions that a module exports, its own or of an internal file, that take a record of options. */
export const functionsWithOptions = (source: string): ReadonlyArray<string> => {
  const module = parsed(source)
  const { statements } = module
  const internal = internalsOf(source)
  const names = statements.flatMap((statement) => {
    if (statement.type !== "ExportNamedDeclaration") return []
    if (statement.source !== null) {
      const file = new URL(statement.source.value, new URL(source, root)).pathname.slice(root.pathname.length)
      if (publicModules.some((module) => module.source === file)) return []
      const all = new Set(functionsWithOptions(file))
      return statement.specifiers.map(({ exported }: any) => exported.name).filter((name: string) => all.has(name))
    }
    return statement.declaration === null ? [] : declaredBy(statement.declaration)
      .filter(([name, parameters]) => !internal.has(name) && parameters.some(takesOptions(module)))
      .map(([name]) => name)
  })
  return [...new Set<string>(names)].sort()
}

/** Whether a type is that of a function, or has one among its parts, or is named after one. */
const isFunction = (node: any, functions: ReadonlySet<string>): boolean => {
  if (node === null || typeof node !== "object") return false
  if (Array.isArray(node)) return node.some((one) => isFunction(one, functions))
  if (node.type === "TSFunctionType") return true
  const { right = node.typeName } = node.typeName ?? {}
  if (node.type === "TSTypeReference" && functions.has(right?.name)) return true
  return Object.entries(node).some(([key, value]) => key !== "parent" && isFunction(value, functions))
}

/** What a module declares: in its own file, and of internal ones what it exports again. */
const declarationsOf = (source: string): ReadonlyArray<any> => {
  const declaredIn = (file: string) => parsed(file).statements.flatMap(({ declaration }) => declaration ?? [])
  const again = parsed(source).statements.flatMap(({ source: from, specifiers, type }) => {
    if (type !== "ExportNamedDeclaration" || from === null) return []
    const file = new URL(from.value, new URL(source, root)).pathname.slice(root.pathname.length)
    if (publicModules.some(({ source }) => source === file)) return []
    const names = specifiers.map(({ local }: any) => local.name)
    return declaredIn(file).filter(({ id }) => names.includes(id?.name))
  })
  return [...declaredIn(source), ...again]
}

/** The names of the types of functions that the public modules export. */
const functionTypes: ReadonlySet<string> = new Set(
  publicModules.flatMap(({ source }) => declarationsOf(source)).flatMap(({ id, type, typeAnnotation }) =>
    type === "TSTypeAliasDeclaration" && isFunction(typeAnnotation, new Set()) ? [id.name] : []
  )
)

/** What a program may implement, or passes as options. */
const isGiven = /(?:Options|^Rule|^RetryObserver|^SendGate|^Pass|^RetryQuotaStore|^Reservation|^Acceptor)$/

const callbacksOf = ({ name, source }: Module): ReadonlyArray<string> =>
  declarationsOf(source).flatMap(({ body, id, type }) =>
    type !== "TSInterfaceDeclaration" || !isGiven.test(id.name)
      ? []
      : body.body.flatMap(({ key, type, typeAnnotation }: any) =>
        type === "TSMethodSignature" || isFunction(typeAnnotation, functionTypes)
          ? [`${name.split("/").at(-1)}.${id.name}.${key.name}`]
          : []
      )
  )

/** The functions that a program gives the library as members of a record: as `Module.Interface.member`. */
export const callbacks: ReadonlyArray<string> = publicModules.filter(({ name }) => name.startsWith("effect-retry"))
  .flatMap(callbacksOf)

/** The names under which the library checks that it is given a function. */
export const checkedCallbacks: ReadonlyArray<string> = fs.readdirSync(new URL("src", root), {
  encoding: "utf8",
  recursive: true
}).filter((path) => path.endsWith(".ts")).flatMap((path) =>
  [...read(`src/${path}`).matchAll(/(?:callable|predicate)\((?:check|checks\([^)]*\)), "(\w+)"/g)].map(([, name]) =>
    name!
  )
)
