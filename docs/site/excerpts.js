/** What an excerpt of an example needs to be pasted: its imports, and the declarations that it uses. */
import * as path from "node:path"

/** A line at the margin begins a statement, but for what closes or continues the one before. */
const begins = /^(?:\/\*\*|\/\/|export\b|import\b|const\b|let\b|class\b|interface\b|type\b|function\b|async\b|void\b|await\b|if\b|for\b|[\w$]+\()/

const isComment = (text) => text.replace(/\/\*[^]*?\*\/|\/\/.*$/gm, "").trim() === ""

/** The statements of a file as dprint writes them, each with the comment above it. */
const statementsOf = (source) => {
  const all = []
  let at = 0
  for (const line of source.split(/(?<=\n)/)) {
    const last = all.at(-1)
    if (last === undefined || (begins.test(line) && !isComment(last.text))) all.push({ start: at, text: line })
    else last.text += line
    at += line.length
  }
  return all.map(({ start, text }) => ({ start, end: start + text.length, text: text.trim(), ...namesOf(text) }))
}

const bare = (code) =>
  code.replace(/\/\*[^]*?\*\/|(?<!:)\/\/.*$/gm, "").replace(/"(?:\\.|[^"\\\n])*"/g, "\"\"")

/** Names of parameters and of constants inside. */
const localsOf = (text) => {
  const code = text.replace(/<[^<>=]*>/g, "").replace(/<[^<>=]*>/g, "")
  const lists = [...code.matchAll(/\(((?:[^()]|\([^()]*\))*)\)(?::[^={}]*)?\s*=>|function\*?\s*[\w$]*\(([^)]*)\)/g)]
  const parameters = lists.flatMap(([, one, other]) => (one ?? other).split(","))
  const single = Array.from(code.matchAll(/(?<![\w$.]|[:.|]\s*)([\w$]+)\s*=>/g), ([, name]) => name)
  const constants = Array.from(code.matchAll(/^\s+(?:const|let) ([\w$]+|[{[][^=]*[}\]])/gm), ([, names]) => names)
  const names = [...parameters, ...single, ...constants.flatMap((part) => part.split(","))]
  return new Set(names.flatMap((part) => /^[\s{[.]*([A-Za-z_$][\w$]*)\s*(?:\??:|=|[\]}]|$)/.exec(part)?.[1] ?? []))
}

/** What a statement declares, and what it may use. */
const namesOf = (text) => {
  const code = bare(text)
  const locals = localsOf(code)
  const [, name, braces] =
    /^\s*(?:export )?(?:async )?(?:const|let|class|interface|type|function\*?) (?:([\w$]+)|\{([^}]*)\})/.exec(code) ?? []
  const declares = braces === undefined ? [name].filter(Boolean) : braces.match(/[\w$]+/g)
  const used = code.match(/(?:(?<![\w$.])|(?<=\.\.\.))[A-Za-z_$][\w$]*(?![\w$]|\??:)/g) ?? []
  return { declares, uses: new Set(used.filter((name) => !locals.has(name))) }
}

/** What an import brings: local names, and how each is written. */
const importsOf = (text) => {
  const [, isType, clause, module] = /^import (type )?([^]*?) from "([^"]+)"/.exec(text.replace(/^\/[*/][^]*?(?=^import)/m, "")) ?? []
  if (module === undefined) return []
  const mark = isType ?? ""
  const [, braces] = /\{([^]*)\}/.exec(clause) ?? []
  const named = (braces ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "")
  const whole = clause.replace(/,?\s*\{[^]*\}/, "").trim()
  return [
    ...named.map((part) => ({ module, name: part.split(/\s+/).at(-1), named: `${mark}${part}` })),
    ...(whole === "" ? [] : [{ module, name: whole.split(/\s+/).at(-1), line: `import ${mark}${whole} from "${module}"` }])
  ]
}

const isImport = ({ text }) => /^import /m.test(text)

/** A type is replaced by the value of its name. */
const addImport = (found, one) => {
  if (found.imports.get(one.name)?.named?.startsWith("type ") ?? true) found.imports.set(one.name, one)
}

/** Collects what names of a file need, from it and from the files that it imports. */
const collect = (read, file, names, found) => {
  const statements = statementsOf(read(file))
  const imports = statements.filter(isImport).flatMap(({ text }) => importsOf(text))
  const wanted = [...names]
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    const key = `${file} ${name}`
    if (found.seen.has(key)) continue
    found.seen.add(key)
    const one = imports.find((each) => each.name === name)
    if (one?.module.startsWith(".")) {
      collect(read, path.posix.join(path.posix.dirname(file), one.module), [name], found)
    } else if (one !== undefined) addImport(found, one)
    const statement = statements.find(({ declares }) => declares.includes(name))
    if (statement !== undefined && add(found, file, statement)) wanted.push(...statement.uses)
  }
}

const add = (found, file, statement) => {
  const key = `${file} ${statement.start}`
  if (found.statements.has(key)) return false
  found.statements.set(key, statement)
  return true
}

/** `Map.groupBy`, which Node 20 lacks. */
const groupBy = (items, keyOf) => {
  const groups = new Map()
  for (const item of items) groups.set(keyOf(item), [...groups.get(keyOf(item)) ?? [], item])
  return groups
}

const printed = (imports) => {
  const modules = groupBy([...imports.values()], ({ module }) => module)
  return [...modules].sort(([a], [b]) => a < b ? -1 : 1).flatMap(([module, all]) => {
    const named = all.flatMap(({ named }) => named ?? []).sort((a, b) => a.replace("type ", "") < b.replace("type ", "") ? -1 : 1)
    const line = `import { ${named.join(", ")} } from "${module}"`
    const broken = `import {\n  ${named.join(",\n  ")}\n} from "${module}"`
    return [
      ...(named.length === 0 ? [] : [line.length > 72 ? broken : line]),
      ...all.flatMap(({ line }) => line ?? [])
    ]
  }).join("\n")
}

/**
 * The program that an excerpt of a file is part of: imports, what it uses, and the statements that it lies in. Itself, if
 * that is all. `read` gives the text of a file.
 */
export const wholeOf = (read, file, excerpt) => {
  const source = read(file)
  const from = source.indexOf(excerpt)
  if (from < 0) throw new Error(`${file} does not have:\n${excerpt}`)
  const found = { seen: new Set(), imports: new Map(), statements: new Map() }
  const own = statementsOf(source).filter(({ end, start }) => start < from + excerpt.length && end > from)
    .filter((statement) => !isImport(statement))
  for (const statement of own) add(found, file, statement)
  collect(read, file, own.flatMap(({ uses }) => [...uses]), found)
  const files = groupBy([...found.statements], ([key]) => key.split(" ")[0])
  const body = [...files].sort(([a]) => a === file ? 1 : -1)
    .flatMap(([, all]) => all.map(([, statement]) => statement).sort((a, b) => a.start - b.start).map(({ text }) => text))
  const whole = `${printed(found.imports)}\n\n${body.join("\n\n")}\n`
  const words = (code) => code.replace(/\s+/g, "").split("").sort().join("")
  return words(whole) === words(excerpt) ? excerpt : whole
}

/** The blocks of a page, with the file that each is an excerpt of. */
export const excerptsOf = (page) =>
  Array.from(page.matchAll(/^```ts excerpt=(\S+)\n([^]*?)^```$/gm), ([all, file, code]) => ({ all, file, code }))
