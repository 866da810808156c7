import { type Checked, expectationText, failedOf, failedText, foundText, runsText } from "./judgments.ts"
import { plain } from "./text.ts"

/** A comment on GitHub holds 65,536 characters. */
const mostCharacters = 60_000

/** Text as code: nothing in it is markup or a mention. */
const code = (text: string): string => {
  const line = plain(text)
  const runs = line.match(/`+/g) ?? []
  const fence = "`".repeat(1 + Math.max(0, ...runs.map(({ length }) => length)))
  const gap = /^`|`$/.test(line) ? " " : ""
  return `${fence}${gap}${line}${gap}${fence}`
}

/** The same in a table, where a bar would end the cell. */
const cell = (text: string): string => code(text).replaceAll("|", "\\|")

const sectionOf = ({ judgments, name, seeds, source, warnings }: Checked): string =>
  [
    `**${code(name)}**${name === source ? "" : `, ${code(source)}`}: ${runsText(seeds)}`,
    "",
    "| | expected | found |",
    "| --- | --- | --- |",
    ...judgments.map((judgment) =>
      `| ${judgment.holds ? "✅" : "❌"} | ${cell(expectationText(judgment))} | ${cell(foundText(judgment))} |`
    ),
    ...warnings.flatMap((warning) => ["", `⚠️ ${code(warning)}`]),
    ""
  ].join("\n")

/** The expectations of scenarios as Markdown, those that fail first: it fits into a comment on a pull request. */
export const checkMarkdown = (all: ReadonlyArray<Checked>): string => {
  const { failed, of } = failedOf(all)
  const parts = [
    `<!-- effect-retry check -->\n### ${failed === 0 ? "✅" : "❌"} Retries: ${failedText({ failed, of })}\n`
  ]
  const ordered = [...all].sort((a, b) => Number(failedOf([a]).failed === 0) - Number(failedOf([b]).failed === 0))
  let length = parts[0]!.length
  for (const [index, checked] of ordered.entries()) {
    const section = sectionOf(checked)
    length += section.length + 1
    if (length > mostCharacters) {
      parts.push(`_${ordered.length - index} more scenarios are left out here._\n`)
      break
    }
    parts.push(section)
  }
  return parts.join("\n")
}
