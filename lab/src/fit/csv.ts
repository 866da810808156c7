import { type FieldNames, type FieldReader, Fields } from "./fields.ts"

const delimiters = [",", ";", "\t", "|"]

/** Splits a line into its cells; `undefined` when its quotes do not match. */
const splitter = (delimiter: string) => {
  const cell = new RegExp(`[${delimiter}](?:"((?:[^"]|"")*)"|([^"${delimiter}]*))`, "y")
  return (line: string): ReadonlyArray<string> | undefined => {
    if (!line.includes("\"")) return line.split(delimiter)
    const cells: Array<string> = []
    const whole = delimiter + line
    for (cell.lastIndex = 0; cell.lastIndex < whole.length;) {
      const [, quoted, plain] = cell.exec(whole) ?? []
      if (quoted === undefined && plain === undefined) return undefined
      cells.push(quoted?.replaceAll("\"\"", "\"") ?? plain!)
    }
    return cells
  }
}

/** The separator of a header: the most frequent of the usual characters. */
const delimiterOf = (head: string): string =>
  delimiters.reduce((most, one) => head.split(one).length > head.split(most).length ? one : most)

/** Comma-separated values below a header of names; also with semicolons, tabs or bars as separators. A line is a record. */
export const csv = (head: string, names: FieldNames): FieldReader => {
  const cellsOf = splitter(delimiterOf(head))
  const heads = (cellsOf(head.replace(/^\ufeff/, "")) ?? []).map((name) => name.trim())
  const columns = new Map(heads.map((name, column) => [name, column]))
  const fields = new Fields(names)
  return {
    fields,
    read: (line, sink) => {
      const cells = cellsOf(line)
      if (cells === undefined || cells.length !== heads.length) return false
      return fields.read((name) => {
        const column = columns.get(name)
        const cell = column === undefined ? undefined : cells[column]
        return cell === "" || cell === "-" ? null : cell
      }, sink)
    }
  }
}
