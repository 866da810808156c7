/** Copies the pages, the examples and the reference to `pages/`, as the site wants them. */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Application } from "typedoc"
import { playground } from "../../lab/scripts/playground.mjs"
import { addressOf, addresses } from "../../.ci/addresses.mjs"
import { excerptsOf, wholeOf } from "./excerpts.js"
import { groups, placeOf } from "./pages.js"

const here = fileURLToPath(new URL(".", import.meta.url))
const root = path.join(here, "../..")
const staged = path.join(here, "pages")
const read = (name) => fs.readFileSync(path.join(root, name), "utf8")

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
    const file = path.posix.join(path.posix.dirname(page), target)
    const place = siteOf(file) ?? addressOf(file, addresses)
    return place === undefined ? words : `[${words}](${place}${hash})`
  })

/** Outside code, what looks like a tag is text. */
const escaped = (text) =>
  text.split(/(^```[^]*?^```$|`[^`\n]*`)/m).map((part, i) =>
    i % 2 === 1 ? part : part.replace(/\{\{/g, "&#123;&#123;").replace(/<(?=[A-Za-z/])(?!\/?(?:br|details|summary|img|p|picture|source)\b)/g, "&lt;")
  ).join("")

/** The first sentence of a page, as a line of plain text. */
const sentenceOf = (text) => {
  const paragraph = text.split("\n\n").find((part) => /^[A-Z`\d]/.test(part)) ?? ""
  const plain = paragraph.replace(/\n/g, " ").replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "")
  return /^.*?[.:?](?=\s|$)/.exec(plain)?.[0].replace(/:$/, ".") ?? plain
}

const headed = (text, title, description) =>
  `---\ntitle: ${JSON.stringify(title)}\ndescription: ${JSON.stringify(description)}\n---\n\n${text}`

/** A block, and below it, folded, the whole of what is to be pasted, if that is more. */
const unfolded = ({ code, file }) => {
  const whole = wholeOf(read, file, code)
  const shown = `\`\`\`ts\n${code}\`\`\``
  return whole === code
    ? shown
    : `${shown}\n\n<details class="whole"><summary>With its imports</summary>\n\n\`\`\`ts\n${whole}\`\`\`\n\n</details>`
}

const withExcerpts = (text) => excerptsOf(text).reduce((rest, block) => rest.replace(block.all, () => unfolded(block)), text)

/** How each package manager adds packages. */
const managers = (options, names) => {
  const dev = options.includes("-dev")
  const all = names.join(" ")
  return [
    ["npm", `npm install ${dev ? "--save-dev " : ""}${all}`],
    ["pnpm", `pnpm add ${dev ? "-D " : ""}${all}`],
    ["yarn", `yarn add ${dev ? "-D " : ""}${all}`],
    ["bun", `bun add ${dev ? "-d " : ""}${all}`],
    ["deno", `deno add ${dev ? "--dev " : ""}${names.map((name) => `npm:${name}`).join(" ")}`]
  ]
}

/** A block that only installs packages has a tab for each package manager. */
const withManagers = (text) =>
  text.replace(/^```sh\nnpm install ((?:--\S+ )*)([^\n]+)\n```$/gm, (_, options, names) =>
    `::: code-group\n\n${
      managers(options, names.split(" ")).map(([manager, line]) => `\`\`\`sh [${manager}]\n${line}\n\`\`\``).join("\n\n")
    }\n\n:::`)

/** Pictures lie next to the pages, and have their size, so that nothing moves when they are there. */
const withPictures = (page, text, place = placeOf(page)) => {
  const fileOf = (link) => path.posix.join(path.posix.dirname(page), link)
  const placed = (link) => {
    const from = path.posix.relative(path.posix.dirname(place), fileOf(link).slice("docs/".length))
    return from.startsWith(".") ? from : `./${from}`
  }
  return text
    .replace(/\b(src|srcset)="([\w./-]+\.svg)"/g, (_, name, link) => `${name}="${placed(link)}"`)
    .replace(/!\[([^\]]*)\]\(([\w./-]+\.svg)\)/g, (_, alt, link) => {
      const [, width, height] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(read(fileOf(link))) ?? []
      return `<img src="${placed(link)}" alt="${alt}" width="${width}" height="${height}">`
    })
}

for (const { pages } of groups) {
  for (const [page, title] of pages) {
    const text = escaped(linked(page, withManagers(withExcerpts(read(page)))))
    write(`${placeOf(page)}.md`, headed(withPictures(page, text), title, sentenceOf(read(page))))
  }
}

const summaryOf = (code) => /^\/\*\*\n \* ([^]*?)(?:\n \*\n|\n \*\/)/.exec(code)?.[1].replace(/\n \* /g, " ") ?? ""

for (const name of examples) {
  const code = read(`examples/${name}`)
  const title = name.replace(/\.ts$/, "")
  write(
    `examples/${title}.md`,
    headed(`# ${title}\n\n\`\`\`ts\n${code}\`\`\`\n`, title, `An example: ${summaryOf(code) || title}`)
  )
}
write(
  "examples/index.md",
  headed(
    `# Examples\n\nEach is run by the tests.\n\n| example | about |\n| --- | --- |\n${
      examples.map((name) =>
        `| [${name.replace(/\.ts$/, "")}](/examples/${name.replace(/\.ts$/, "")}) | ${
          escaped(summaryOf(read(`examples/${name}`))).replace(/\|/g, "\\|")
        } |`
      ).join("\n")
    }\n`,
    "Examples",
    "Every example of effect-retry, a program each."
  )
)

for (const file of files) {
  if (/\.(svg|png)$/.test(file)) fs.copyFileSync(path.join(root, file), path.join(staged, file.slice("docs/".length)))
}
const home = "docs/site/home.md"
write("index.md", withPictures(home, escaped(linked(home, withExcerpts(read(home)))), "index"))
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
const aboutOf = (file) => {
  const [, comment = ""] = /^\/\*\*\n([^]*?)\n \*\//.exec(read(file)) ?? []
  return comment.replace(/^ \* ?/gm, "").replace(/^@.*$/gm, "").replace(/\{@link ([^}]*)\}/g, "`$1`").trim()
}

const placeIn = (file) => file.replace(/^src\//, "").replace(/(?:\/index)?\.ts$/, "")

for (const [file, name] of modules) {
  const page = path.join(staged, "reference", `${placeIn(file)}.md`)
  const about = aboutOf(file)
  const text = fs.readFileSync(page, "utf8")
    .replace(/^(# .*\n)/, `$1\n\`${name.replace(".", "effect-retry")}\`\n\n${escaped(about)}\n`)
  fs.writeFileSync(page, headed(text, path.basename(placeIn(file)), sentenceOf(about)))
}

const rowsOf = (all) =>
  `| module | what it holds |\n| --- | --- |\n${
    all.map(([file, name]) =>
      `| [${name.slice(2)}](/reference/${placeIn(file)}) | ${escaped(sentenceOf(aboutOf(file))).replace(/\|/g, "\\|")} |`
    ).join("\n")
  }`
const isLegacy = ([, name]) => name.includes("/legacy/")
const sorted = [...modules].sort(([, a], [, b]) => a < b ? -1 : 1)
write(
  "reference/index.md",
  headed(
    `# Reference\n\n${rowsOf(sorted.filter((one) => !isLegacy(one)))}\n\n## Other and older systems of AWS\n\n${
      rowsOf(sorted.filter(isLegacy))
    }\n`,
    "Reference",
    "Every public module of effect-retry, with what it holds."
  )
)
