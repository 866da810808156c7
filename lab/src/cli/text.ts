import { namedWithin } from "../explain/layout.ts"
import { millis } from "../explain/table.ts"

/** One line of text that cannot move the cursor, whatever a file or an argument holds. */
export const plain = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}]|[\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16)
    return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, "0")}`
  })

/** Text from the user, quoted and shortened. */
export const quoted = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text)

/** A duration in three digits. */
export const duration = (value: number | null): string =>
  value === null ? "-" : millis(Number(Math.max(value, 0).toPrecision(3)))

/** Longer lines are hard to read. */
const widest = 100

/** Names, each with its description, in lines of at most this width. */
export const described = (
  rows: ReadonlyArray<readonly [name: string, description: string]>,
  screenColumns: number
): ReadonlyArray<string> => {
  const columns = Math.min(widest, screenColumns)
  const column = Math.max(...rows.map(([name]) => name.length)) + 2
  return rows.flatMap(([name, description]) => namedWithin(name.padEnd(column), description, columns))
}
