/**
 * Writes the tables of evidence/conformance.md: each file with its title, and what schema.json says of each of its sections.
 * `npx tsx docs/conformance/sections.ts`
 */
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"

interface Node {
  readonly [key: string]: Node | undefined
}

const read = (path: string) => fs.readFileSync(new URL(path, import.meta.url), "utf8")
const page = new URL("../evidence/conformance.md", import.meta.url)

/** The definition of a table, by the name of its file. */
const definitionOf = (name: string) =>
  name.startsWith("standard")
    ? "standard"
    : name.replace(/-[a-z]/g, ([, letter]) => letter!.toUpperCase()).replace("javascript", "javaScript")

/** The sections of a table, with what to do and to compare, in the order of its file. */
const sectionsOf = (name: string): ReadonlyArray<readonly [section: string, text: string]> => {
  const { $defs }: { readonly $defs: Node } = JSON.parse(read("schema.json"))
  const fields = $defs[definitionOf(name)]!["properties"]!
  const own = fields["sdks"]?.["items"]?.["properties"] ?? fields
  const table: { readonly sdks?: ReadonlyArray<object> } = JSON.parse(read(`${name}.json`))
  const there = new Set((table.sdks ?? [table]).flatMap((one) => Object.keys(one)))
  return [...there].flatMap((section) => {
    const text: unknown = own[section]?.["description"]
    return typeof text === "string" && text.includes(" Compare ") ? [[section, text] as const] : []
  })
}

/** The files, in the order in which the schema names their kinds. */
const names = (): ReadonlyArray<string> => {
  const kinds: ReadonlyArray<string> = JSON.parse(read("schema.json")).properties.table.enum
  const kindOf = (name: string) => kinds.findIndex((kind) => name.startsWith(kind))
  return fs.readdirSync(new URL(".", import.meta.url)).filter((name) =>
    name.endsWith(".json") && name !== "schema.json"
  )
    .map((name) => name.slice(0, -".json".length)).sort((a, b) => kindOf(a) - kindOf(b))
}

const files = (): string => {
  const rows = names().map((name) =>
    `| [${name}.json](../conformance/${name}.json) | ${JSON.parse(read(`${name}.json`)).title} |`
  )
  return `| file | what it holds |\n| --- | --- |\n${rows.join("\n")}`
}

const sections = (): string => {
  const rows = names().flatMap((name) =>
    sectionsOf(name).map(([section, text]) => {
      const [input, compare] = text.split(/\.? Compare /)
      return `| ${name}, \`${section}\` | ${input} | ${compare!.replace(/\.$/, "")} |`
    })
  )
  return `| table, section | input | compare |\n| --- | --- | --- |\n${rows.join("\n")}`
}

/** The page with its tables as files and schema have them. */
export const withSections = (page: string): string =>
  ([["files", files()], ["sections", sections()]] as const).reduce(
    (text, [name, table]) =>
      text.replace(
        new RegExp(`(<!-- ${name}: .*? -->\\n\\n)[^]*?(\\n\\n<!-- end of the ${name} -->)`),
        (_, begin: string, end: string) => begin + table + end
      ),
    page
  )

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  fs.writeFileSync(page, withSections(fs.readFileSync(page, "utf8")))
}
