import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import { nearest, suggestion } from "./suggestion.ts"

type Path = ReadonlyArray<PropertyKey>

/** A problem with a name or a key, and the alternatives. */
interface Explained {
  readonly path: Path
  readonly problem: string
}

const literalOf = (ast: SchemaAST.AST): string | undefined =>
  SchemaAST.isLiteral(ast) && typeof ast.literal === "string" ? ast.literal : undefined

/** The names of a list of names. */
const namesOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(namesOf) : [literalOf(ast) ?? []].flat()

const keysOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []

/** The kinds of a union whose members differ by `kind`. */
const kindsOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  SchemaAST.isUnion(ast)
    ? ast.types.flatMap((type) => {
      const encoded = SchemaAST.toEncoded(type)
      const kind = SchemaAST.isObjects(encoded)
        ? encoded.propertySignatures.find(({ name }) => name === "kind")?.type
        : undefined
      return kind === undefined ? [] : namesOf(kind)
    })
    : []

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const short = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text)

const ofNames = (path: Path, value: unknown, names: ReadonlyArray<string>): Explained | undefined =>
  typeof value === "string" && names.length > 0
    ? { path, problem: `${short(value)} is not one of the names: ${suggestion(value, names)}` }
    : undefined

const ofKinds = (path: Path, value: unknown, kinds: ReadonlyArray<string>): Explained | undefined => {
  if (kinds.length === 0) return undefined
  const all = kinds.map(short).join(" | ")
  if (!isRecord(value)) return { path, problem: `expected an object with a kind: ${all}` }
  const { kind } = value
  const at = [...path, "kind"]
  if (kind === undefined) return { path: at, problem: `is missing: ${all}` }
  if (typeof kind !== "string") return { path: at, problem: `expected ${all}` }
  const [near] = nearest(kind, kinds)
  return {
    path: at,
    problem: `expected ${all}, got ${short(kind)}${near === undefined ? "" : `: did you mean ${near}?`}`
  }
}

const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]

/** What a key's list may contain: names, and objects with one of the keys. */
const listedIn = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  membersOf(ast).flatMap((list) =>
    SchemaAST.isArrays(list)
      ? [...list.elements, ...list.rest].flatMap(membersOf).flatMap((one) => [...namesOf(one), ...keysOf(one)])
      : []
  )

/** For an unknown key: a similar one, also one that belongs in a list, otherwise all there are. */
const ofKeys = (key: string, ast: SchemaAST.AST): string => {
  const keys = keysOf(ast)
  if (nearest(key, keys).length > 0 || !SchemaAST.isObjects(ast)) return suggestion(key, keys)
  for (const { name, type } of ast.propertySignatures) {
    const [near] = nearest(key, listedIn(type))
    if (near !== undefined) return `did you mean ${near}, in ${String(name)}?`
  }
  return suggestion(key, keys)
}

/** The alternatives to an unknown name, kind or key; `undefined` for any other problem. */
export const alternatives = (issue: SchemaIssue.Issue, path: Path, value: unknown): Explained | undefined => {
  switch (issue._tag) {
    case "UnexpectedKey":
      return { path, problem: `is not a key here: ${ofKeys(String(path.at(-1)), SchemaAST.toEncoded(issue.ast))}` }
    case "AnyOf":
    case "InvalidType": {
      const encoded = SchemaAST.toEncoded(issue.ast)
      return ofNames(path, value, namesOf(encoded)) ?? ofKinds(path, value, kindsOf(encoded))
    }
    default:
      return undefined
  }
}
