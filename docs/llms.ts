/** Writes llms.txt: a line for each page and example, taken from the files themselves. See llmstxt.org. */
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"

const root = new URL("../", import.meta.url)
const read = (path: string) => fs.readFileSync(new URL(path, root), "utf8")

/** The first sentence of a page, without its marks. */
const aboutOf = (page: string): string => {
  const paragraph = page.split("\n\n").find((part) => /^[A-Z`]/.test(part)) ?? ""
  const plain = paragraph.replace(/\n/g, " ").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
  return /^.*?[.:](?=\s|$)/.exec(plain)?.[0].replace(/:$/, ".") ?? plain
}

const titleOf = (page: string): string => /^# (.*)$/m.exec(page)?.[1] ?? ""

const names = (folder: string, ending: string): ReadonlyArray<string> =>
  fs.readdirSync(new URL(folder, root)).filter((name) => name.endsWith(ending)).sort()

const commentOf = (code: string): string =>
  /^\/\*\*\s(?:\*? ?)*([^]*?)(?:\n \*\n|\n? \*\/)/.exec(code)?.[1]?.replace(/\n \* /g, " ") ?? ""

const files = [...names("docs", ".md"), ...names("docs/evidence", ".md").map((name) => `evidence/${name}`)]

const pages = files.map((name) => {
  const page = read(`docs/${name}`)
  return `- [${titleOf(page)}](${name}): ${aboutOf(page)}`
})

const examples = names("examples", ".ts").map((name) =>
  `- [${name}](../examples/${name}): ${commentOf(read(`examples/${name}`))}`
)

export const llms = `# effect-retry

> ${JSON.parse(read("package.json")).description}

- [README](../README.md): what it is, the first program, the modules.
- [AGENTS](../AGENTS.md): the common case, and the five mistakes that people make.

## Pages

${pages.join("\n")}

## Examples

${examples.join("\n")}
`

if (process.argv[1] === fileURLToPath(import.meta.url)) fs.writeFileSync(new URL("llms.txt", import.meta.url), llms)
