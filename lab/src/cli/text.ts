import { aligned, millis } from "../explain/table.ts"

/** One line of text that cannot move the cursor, whatever a file or an argument holds. */
export const plain = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}]|[\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16)
    return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, "0")}`
  })

/** Text from the user, quoted and shortened. */
export const quoted = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text)

/** Words in lines of limited width. */
const wrapped = (text: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** A duration in three digits. */
export const duration = (value: number | null): string =>
  value === null ? "-" : millis(Number(Math.max(value, 0).toPrecision(3)))

/** The widest name that a table makes a column for. */
const nameWidth = 26

/** Aligned rows below a header. A name too wide for its column gets its own line. */
export const table = (
  heads: ReadonlyArray<string>,
  rows: ReadonlyArray<readonly [name: string, ...cells: Array<string>]>
): ReadonlyArray<string> => {
  const isWide = (name: string) => name.length > nameWidth
  const [head, ...lines] = aligned([
    heads,
    ...rows.map(([name, ...cells]) => [isWide(name) ? "" : name, ...cells])
  ])
  return [head ?? "", ...rows.flatMap(([name], index) => [...isWide(name) ? [name] : [], lines[index] ?? ""])]
}

const pageWidth = 100

/** Names, each with its description, in 100 columns. */
export const described = (
  rows: ReadonlyArray<readonly [name: string, description: string]>
): ReadonlyArray<string> => {
  const column = Math.max(...rows.map(([name]) => name.length)) + 2
  return rows.flatMap(([name, description]) =>
    wrapped(description, pageWidth - column).map((line, index) => (index === 0 ? name : "").padEnd(column) + line)
  )
}
