/** Words that read translated, and what to write instead: .github/CONTRIBUTING.md, "Words". */
import { assert, it } from "@effect/vitest"
import * as fs from "node:fs"

const words: ReadonlyArray<readonly [pattern: RegExp, instead: string]> = [
  [/\bbehaviour/i, "behavior"],
  [/\bhonour/i, "honor"],
  [/\bback-offs?\b/i, "backoff"],
  [/\btime-outs?\b/i, "timeout"],
  [/(?<!")\b[Cc]ancelled(?!\()/, "canceled"],
  [/\bin vain\b/i, "wasted, failed, without success"],
  [/\bbeside\b(?![:"!]| \||, kind)/i, "next to, with"],
  [/\b(is|are|was|were|being|been|be) told\b/i, "notified, reported"],
  [/\bhears? (of|only|from)\b/i, "sees, is notified"],
  [/\bheed(s|ed|ing)?\b/i, "honors, follows"],
  [/\bwhoever\b/i, "any caller, every caller, callers that"],
  [/\band kin\b/i, "and similar"],
  [/\bwell again\b/i, "recovered"],
  [/\bat once\b/i, "immediately, at the same time"],
  [/\bleave to\b/i, "permission"],
  [/\bis no JSON\b/i, "is not valid JSON"],
  [/\bis no key of\b/i, "unknown key"],
  [/, for (it|they|he|there) (is|are|has|have|was)\b/i, "because"],
  [/\bas many as .{1,40} says?\b/i, "at most N, up to N"],
  [/\bas good as\b/i, "in principle, mostly, almost"],
  [/\bof one's own\b/i, "your own, custom"],
  [/\bin the mean\b/i, "on average"],
  [/\bworth it\b/i, "retryable"],
  [/\bsurely\b/i, "certainly"],
  [/\b(wherefrom|thereof|thereby|whereof)\b/i, "somewhere else, elsewhere"],
  [/\banew\b/i, "again, from the start"],
  [/\bof an own\b/i, "its own"],
  [/\bby chance\b/i, "at random, random"],
  [/\bforesees?\b|\bforesaw\b/, "predict"],
  [/\b(service|services|capacity) bears?\b/i, "can handle"],
  [/\blies? upon\b/i, "overlap"],
  [/\bunder way\b/i, "in progress, in flight"],
  [/\b(no|some)body\b/i, "one, the user, all callers"],
  [/\bend(s|ed)? (well|badly)\b/i, "succeed, fail"],
  [/\bfor ever\b/i, "forever"],
  [/\bas it is written\b/i, "as written"],
  [/\bspelt\b/i, "misspelled"],
  [/\bas theory has it\b/i, "in theory"],
  [/\btells (how|what|of|when)\b/i, "reports, shows"],
  [/\bdraw of chance\b/i, "a random sample"],
  [/\b(of|at|in|by|least|most) so many\b/i, "this many, a number of"]
]

const found = (text: string): ReadonlyArray<string> => {
  // The lines of a paragraph or of a comment are one.
  const joined = text.replace(/[ \t]*\n[ \t]*(?:\*|\/\/|#|>)?[ \t]*(?=\S)/g, " ")
  return words.flatMap(([pattern, instead]) =>
    [...joined.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map(([word]) => `${word}: write ${instead}`)
  )
}

const root = new URL("../", import.meta.url)

const filesIn = (folder: string): ReadonlyArray<string> =>
  fs.readdirSync(new URL(folder, root), { recursive: true, encoding: "utf8" })
    .filter((name) => /^(?!.*\bsite\/(node_modules|pages|dist)\b).*\.(md|tsx?|json|yml)$/.test(name)).map((name) =>
      `${folder}/${name}`
    )

/** Without its code, if it is a page. */
const read = (path: string): string => {
  const text = fs.readFileSync(new URL(path, root), "utf8")
  return path.endsWith(".md") ? text.replace(/^```[^]*?^```/gm, "").replace(/`[^`\n]*`/g, "") : text
}

const pages = [
  "README.md",
  ".github/CONTRIBUTING.md",
  ".github/SECURITY.md",
  "AGENTS.md",
  "CHANGELOG.md",
  "lab/README.md"
]

it("no page and no source has translated words", () => {
  const files = [
    ...pages,
    ...["docs", "examples", "src", "lab/src", "lab/playground", "lab/scenarios"].flatMap(filesIn)
  ]
  assert.isAbove(files.length, 400)
  assert.deepStrictEqual(files.flatMap((path) => found(read(path)).map((word) => `${path}: ${word}`)), [])
})

/** Verbs of speech and states of mind: the field has nouns for data. */
const unnamed = new Set(
  "beside besides given hear heard hears known lapse lapses onward said say says tell telling tells told world".split(
    " "
  )
)

/** The names that a source declares or uses which contain such a word. */
const misnamed = (source: string): ReadonlyArray<string> => {
  const code = source.replace(/\/\*[^]*?\*\/|\/\/.*$/gm, "").replace(/"(?:\\.|[^"\\\n])*"/g, "\"\"")
    .replace(/`(?:\\.|[^`\\])*`/g, (text) => Array.from(text.matchAll(/\$\{[^}]*\}/g), ([inner]) => inner).join(" "))
  const names = new Set(Array.from(code.matchAll(/[A-Za-z_$][\w$]*/g), ([name]) => name))
  return [...names].filter((name) => name.split(/(?=[A-Z])|_/).some((word) => unnamed.has(word.toLowerCase())))
}

it("no name in src or in the lab is a verb of speech", () => {
  const sources = ["src", "lab/src", "lab/playground"].flatMap(filesIn).filter((path) => /\.tsx?$/.test(path))
  assert.isAbove(sources.length, 300)
  const found = sources.flatMap((path) =>
    misnamed(fs.readFileSync(new URL(path, root), "utf8")).map((name) => [path, name])
  )
  // A field that users read.
  assert.deepStrictEqual(found.filter(([path, name]) => !(path!.startsWith("lab/") && name === "beside")), [])
  assert.deepStrictEqual(misnamed("const toldBy = known // given\nworlds(\"told\", `${heard.of} said`)"), [
    "toldBy",
    "known",
    "heard"
  ])
})

it("a translated word is found, and what is to be written instead", () => {
  assert.deepStrictEqual(found("The behaviour is as good\n * as on paper. In\nvain!"), [
    "behaviour: write behavior",
    "In vain: write wasted, failed, without success",
    "as good as: write in principle, mostly, almost"
  ])
})
