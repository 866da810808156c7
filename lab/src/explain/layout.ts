const codes = /\p{Cc}\[\d+m/gu

/** How wide a text is on a screen: the codes of colors take no room. */
export const widthOf = (text: string): number => text.replaceAll(codes, "").length

const padding = (text: string, width: number): string => " ".repeat(Math.max(0, width - widthOf(text)))

/** Words in lines of limited width. A word that is wider has a line of its own. */
export const wrapped = (text: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(/[^\S\u00a0]+/)) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** A text whose lines are at most this wide: longer ones are continued, indented, in the next line. */
export const within = (text: string, columns: number): string =>
  text.split("\n").flatMap((line) => {
    if (widthOf(line) <= columns) return [line]
    const indent = /^ */.exec(line)![0]
    const [first = "", ...others] = wrapped(line.trim(), columns - indent.length - 2)
    return [indent + first, ...others.map((rest) => `${indent}  ${rest}`)]
  }).join("\n")

/** Lines of equally wide cells, the first of each on the left, the others on the right. */
export const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => widthOf(row[column]!))))
  return rows.map((row) =>
    row.map((cell, column) => {
      const space = padding(cell, widths[column]!)
      return column === 0 ? cell + space : space + cell
    }).join("  ")
  )
}

/** A name and, in a column of its own, its description. */
export const namedWithin = (name: string, description: string, columns: number): ReadonlyArray<string> => {
  const indent = widthOf(name) < columns / 2 ? widthOf(name) : 6
  const lines = wrapped(description, columns - indent)
  return indent === widthOf(name)
    ? lines.map((text, n) => (n === 0 ? name : " ".repeat(indent)) + text)
    : [name.trimEnd(), ...lines.map((text) => " ".repeat(indent) + text)]
}

/** Rows of cells below their heads. */
export interface Table {
  readonly heads: ReadonlyArray<string>
  readonly rows: ReadonlyArray<readonly [name: string, ...cells: Array<string>]>
  /** One for each row, after its last cell or, where that is too wide, in lines of its own. */
  readonly notes?: ReadonlyArray<string>
  readonly noteHead?: string
}

/** The widest name that a table makes a column for. */
const nameWidth = 26

const rangeIn = /^(.*) (\([^()]+ to [^()]+\))(\p{Cc}\[\d+m)?$/u

/** A row as one line, or with its ranges in a second line below the figures that they are of. */
const folded = (cells: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const parts = cells.map((cell, column) => column === 0 ? null : rangeIn.exec(cell))
  return parts.every((part) => part === null)
    ? [cells]
    : [
      parts.map((part, column) => part === null || part === undefined ? cells[column]! : part[1]! + (part[3] ?? "")),
      parts.map((part) => part?.[2] ?? "")
    ]
}

/** The lines of each row, with as many columns as there is room for, and the heads of those left out. */
const fitted = (rows: ReadonlyArray<ReadonlyArray<string>>, columns: number) => {
  const whole = aligned(rows)
  if (widthOf(whole[0]!) <= columns) return { lines: whole.map((line) => [line]), leftOut: [] }
  const two = rows.map(folded)
  for (let count = rows[0]!.length;; count--) {
    const lines = aligned(two.flatMap((row) => row.map((cells) => cells.slice(0, count))))
    if (count > 1 && widthOf(lines[0]!) > columns) continue
    let next = 0
    return { lines: two.map(({ length }) => lines.slice(next, next += length)), leftOut: rows[0]!.slice(count) }
  }
}

/** A table of at most this width. A name too wide for its column gets its own line. */
export const tableWithin = (
  columns: number,
  { heads, noteHead = "", notes, rows }: Table
): ReadonlyArray<string> => {
  const isWide = (name: string) => widthOf(name) > Math.min(nameWidth, columns / 2)
  const { leftOut, lines } = fitted(
    [heads, ...rows.map(([name, ...cells]) => [isWide(name) ? "" : name, ...cells])],
    columns
  )
  const isInLine = notes !== undefined &&
    Math.max(...[noteHead, ...notes].map(widthOf)) + 2 + widthOf(lines[0]![0]!) <= columns
  const rowOf = ([name]: Table["rows"][number], index: number): ReadonlyArray<string> => {
    const [first = "", ...others] = lines[index + 1]!
    const note = notes?.[index] ?? ""
    const below = isInLine || note === "" || note === "-" ? [] : wrapped(note, columns - 2).map((line) => `  ${line}`)
    return [
      ...isWide(name) ? wrapped(name, columns) : [],
      isInLine ? `${first}  ${note}`.trimEnd() : first,
      ...others.map((line) => line.trimEnd()),
      ...below
    ]
  }
  return [
    (isInLine ? `${lines[0]![0]!}  ${noteHead}` : lines[0]![0]!).trimEnd(),
    ...rows.flatMap(rowOf),
    ...leftOut.length === 0 ? [] : wrapped(`not shown in ${columns} columns: ${leftOut.join(", ")}`, columns)
  ]
}
