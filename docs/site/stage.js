/** Copies the pages, the examples and the reference to `pages/`, as the site wants them. */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Application } from "typedoc"
import { playground } from "../../lab/scripts/playground.mjs"
import { groups, placeOf } from "./pages.js"

const here = fileURLToPath(new URL(".", import.meta.url))
const root = path.join(here, "../..")
const staged = path.join(here, "pages")
const read = (name) => fs.readFileSync(path.join(root, name), "utf8")

/** A page, whose links to what is published lead to the files here. */
const readPage = (name) => read(name).replaceAll("](https://unpkg.com/effect-retry/", "](")
const write = (name, text) => {
  const file = path.join(staged, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
}

fs.rmSync(staged, { recursive: true, force: true })

const listed = groups.flatMap(({ pages }) => pages.map(([page]) => page))
const files = ["docs", "docs/evidence"].flatMap((folder) =>
  fs.readdirSync(path.join(root, folder)).map((name) => `${folder}/${name}`)
)
const unlisted = files
  .filter((name) => name.endsWith(".md") && !listed.includes(name))
if (unlisted.length > 0) throw new Error(`docs/site/pages.js does not name ${unlisted.join(", ")}`)

const examples = fs.readdirSync(path.join(root, "examples"), { recursive: true }).map(String)
  .filter((name) => name.endsWith(".ts")).sort()

/** The reference of a module, by the file of its source. */
const modules = new Map(
  Object.entries(JSON.parse(read("package.json")).exports)
    .filter(([name, file]) => name !== "." && file.endsWith(".js"))
    .map(([name, file]) => [file.replace("./dist/", "src/").replace(/\.js$/, ".ts"), name])
)

/** Where a file of the repository is on the site; nothing where it is not. */
const siteOf = (file) => {
  if (listed.includes(file)) return `/${placeOf(file)}`
  if (file.startsWith("examples/") && file.endsWith(".ts")) return `/examples/${file.slice(9, -3)}`
  if (file === "examples" || file === "examples/" || file === "examples/README.md") return "/examples/"
  return modules.has(file) ? "/reference/" : undefined
}

const linked = (page, text) =>
  text.replace(/(?<!!)\[((?:[^[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)#\s]*)(#[^)\s]*)?\)/g, (_, words, target, hash = "") => {
    const place = siteOf(path.posix.join(path.posix.dirname(page), target))
    return place === undefined ? words : `[${words}](${place}${hash})`
  })

/** Outside code, what looks like a tag is text. */
const escaped = (text) =>
  text.split(/(^```[^]*?^```$|`[^`\n]*`)/m).map((part, i) =>
    i % 2 === 1 ? part : part.replace(/\{\{/g, "&#123;&#123;").replace(/<(?=[A-Za-z/])(?!\/?(?:br|details|summary|img|p|picture|source)\b)/g, "&lt;")
  ).join("")

for (const page of listed) {
  const text = readPage(page).replace(/^```ts excerpt=(\S+)$/gm, "```ts")
  write(`${placeOf(page)}.md`, escaped(linked(page, text)).replace(/\]\(docs\/([\w-]+\.(?:svg|png))\)/g, "](./$1)"))
}

const summaryOf = (code) => /^\/\*\*\n \* ([^]*?)(?:\n \*\n|\n \*\/)/.exec(code)?.[1].replace(/\n \* /g, " ") ?? ""

for (const name of examples) {
  const code = read(`examples/${name}`)
  write(`examples/${name.replace(/\.ts$/, ".md")}`, `# ${name.replace(/\.ts$/, "")}\n\n\`\`\`ts\n${code}\`\`\`\n`)
}
write(
  "examples/index.md",
  `# Examples\n\nEach is run by the tests.\n\n| example | about |\n| --- | --- |\n${
    examples.map((name) =>
      `| [${name.replace(/\.ts$/, "")}](/examples/${name.replace(/\.ts$/, "")}) | ${
        escaped(summaryOf(read(`examples/${name}`))).replace(/\|/g, "\\|")
      } |`
    ).join("\n")
  }\n`
)

for (const file of files) {
  if (/\.(svg|png)$/.test(file)) fs.copyFileSync(path.join(root, file), path.join(staged, file.slice("docs/".length)))
}
fs.copyFileSync(path.join(here, "home.md"), path.join(staged, "index.md"))
fs.mkdirSync(path.join(staged, "public"))
fs.copyFileSync(path.join(here, "icon.svg"), path.join(staged, "public/icon.svg"))
fs.writeFileSync(path.join(staged, "public/playground.html"), await playground())

const reference = await Application.bootstrapWithPlugins({
  plugin: ["typedoc-plugin-markdown"],
  entryPoints: [...modules.keys()].map((file) => path.join(root, file)),
  tsconfig: path.join(here, "tsconfig.json"),
  out: path.join(staged, "reference"),
  readme: "none",
  name: "Reference",
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  disableSources: true,
  skipErrorChecking: true,
  validation: false,
  logLevel: "Error",
  outputFileStrategy: "modules",
  entryFileName: "index",
  excludeTags: ["@since"],
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  expandParameters: true,
  expandObjects: true
})
const project = await reference.convert()
if (project === undefined) throw new Error("the reference cannot be made")
await reference.generateOutputs(project)

/** What a module is for is said at the top of its source, where the reference does not look. */
for (const file of modules.keys()) {
  const page = path.join(staged, "reference", file.replace(/^src\//, "").replace(/(?:\/index)?\.ts$/, ".md"))
  const [, comment = ""] = /^\/\*\*\n([^]*?)\n \*\//.exec(read(file)) ?? []
  const about = comment.replace(/^ \* ?/gm, "").replace(/^@.*$/gm, "").trim()
  const text = fs.readFileSync(page, "utf8")
  fs.writeFileSync(page, text.replace(/^(# .*\n)/, `$1\n\`${modules.get(file).replace(".", "effect-retry")}\`\n\n${escaped(about)}\n`))
}
