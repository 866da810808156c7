/** The rooms of `src`, floor by floor, drawn from what its files import. */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const src = new URL("../../src/", import.meta.url)

const files = fs.readdirSync(src, { encoding: "utf8", recursive: true }).filter((name) => name.endsWith(".ts"))

/** What each file imports of `src`, types too. */
const imported = new Map(files.map((file) => {
  const code = fs.readFileSync(new URL(file, src), "utf8")
  const names = Array.from(code.matchAll(/^(?:import|export|\}).*? "(\.[^"]+)"$|^import "(\.[^"]+)"$/gm))
  return [file, names.map(([, from, alone]) => path.join(path.dirname(file), from ?? alone!))]
}))

const wingOf = (file: string): string => file.includes("/") ? file.split("/")[0]! : ""

/** Private folders of a wing that others import too: rooms of their own. */
const shared = new Set(
  [...imported].flatMap(([file, names]) =>
    names.filter((name) => /^\w+\/internal\//.test(name) && wingOf(name) !== wingOf(file)).map(path.dirname)
  )
)

/** A module of the core, a wing, or the private part of a wing. */
const roomOf = (file: string): string =>
  wingOf(file) === "" ? file.replace(".ts", "") : shared.has(path.dirname(file)) ? path.dirname(file) : wingOf(file)

const rooms = [...new Set(files.map(roomOf))].sort()

/** What each room imports of others. */
const arrows = new Map(rooms.map((room) => {
  const names = files.filter((file) => roomOf(file) === room).flatMap((file) => imported.get(file)!.map(roomOf))
  return [room, new Set(names.filter((name) => name !== room))]
}))

/** All rooms below a room: what it imports, and what that imports. */
const below = (room: string, found = new Set<string>()): ReadonlySet<string> => {
  for (const name of arrows.get(room)!) if (!found.has(name)) below(name, found.add(name))
  return found
}

const reached = new Map(rooms.map((room) => [room, below(room)]))

/** Rooms whose files import each other, though no file does in a circle, are one line. */
const groupOf = (room: string): ReadonlyArray<string> =>
  rooms.filter((other) => other === room || reached.get(room)!.has(other) && reached.get(other)!.has(room))

/** The number of rooms on the way down. */
const floorOf = (room: string): number => {
  const group = groupOf(room)
  const lower = group.flatMap((name) => [...arrows.get(name)!]).filter((name) => !group.includes(name))
  return 1 + Math.max(0, ...lower.map(floorOf))
}

/** The rooms that a group imports, but for those that it reaches through another. */
const onto = (group: ReadonlyArray<string>): ReadonlyArray<string> => {
  const lower = [...new Set(group.flatMap((name) => [...arrows.get(name)!]))].filter((name) => !group.includes(name))
  return lower.filter((name) => !lower.some((other) => reached.get(other)!.has(name) && !groupOf(other).includes(name)))
    .sort()
}

/** One line for each room: its floor, its name, and what it stands on. */
export const drawing = (): string => {
  const groups = new Map(rooms.map((room) => [groupOf(room).join(", "), groupOf(room)]))
  const lines = Array.from(groups, ([name, group]) => ({ name, floor: floorOf(group[0]!), on: onto(group).join(", ") }))
    .sort((one, other) => other.floor - one.floor || (one.name < other.name ? -1 : 1))
  return lines.map(({ floor, name, on }, index) => {
    const number = lines[index - 1]?.floor === floor ? "" : String(floor)
    return `${number.padStart(2)}  ${name}${on === "" ? "" : `: ${on}`}`
  }).join("\n")
}

/** The drawing in docs/maintaining.md. */
export const drawn = /(?<=^```text\n)[^]*?(?=\n```$)/m

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const page = new URL("../../docs/maintaining.md", import.meta.url)
  fs.writeFileSync(page, fs.readFileSync(page, "utf8").replace(drawn, drawing))
}
