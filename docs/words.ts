/** How many words the pages have, and how many they may: `npx tsx docs/words.ts`. */
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { groups, wordsOf } from "./site/pages.js"

const root = new URL("../", import.meta.url)

/** Lower them when pages get shorter. */
export const limits = { guide: 1000, guides: 19_500, all: 36_500 }

/** Guides that are still longer, by their words: no page may join them, none may grow. */
export const longer: Readonly<Record<string, number>> = {
  "docs/cli.md": 1184,
  "docs/migrating.md": 1690
}

/** Pages without a place in the sidebar: the site's first page, that of the examples, and what tools read. */
const unlisted = { guide: ["docs/site/home.md"], reference: ["examples/README.md", "lab/README.md", "AGENTS.md"] }

/** A history is not read. */
const left = ["CHANGELOG.md"]

export interface Counted {
  readonly kind: string
  readonly path: string
  readonly words: number
}

export const counted: ReadonlyArray<Counted> = [
  ...groups.flatMap(({ kind, pages }) => pages.map(([path]) => ({ kind, path: path! }))),
  ...Object.entries(unlisted).flatMap(([kind, paths]) => paths.map((path) => ({ kind, path })))
].filter(({ path }) => !left.includes(path)).map(({ kind, path }) => ({
  kind,
  path,
  words: wordsOf(fs.readFileSync(new URL(path, root), "utf8"))
}))

export const sum = (pages: ReadonlyArray<Counted>): number => pages.reduce((all, { words }) => all + words, 0)

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lines = [...counted].sort((a, b) => b.words - a.words).map(({ kind, path, words }) =>
    `${String(words).padStart(6)}  ${kind.padEnd(9)}  ${path}`
  )
  const guides = sum(counted.filter(({ kind }) => kind === "guide"))
  lines.push(`${guides} in guides, of ${limits.guides}; ${sum(counted)} in all, of ${limits.all}`)
  process.stdout.write(`${lines.join("\n")}\n`)
}
