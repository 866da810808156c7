import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** A text that is set: an empty or blank one counts as not set. */
export const unlessBlank = (text: string | undefined): string | undefined => text?.trim() === "" ? undefined : text

/** The value of a variable. An empty or blank one counts as not set. */
export const variable = (name: string): Effect.Effect<string | undefined, Config.ConfigError> =>
  Effect.map(Config.option(Config.String(name)), (found) => unlessBlank(Option.getOrUndefined(found)))

/** A property of a profile: its value, without comment and outer blanks, its file and its line, from 1. */
export interface Property {
  readonly value: string
  readonly path: string
  readonly line: number
}

/** The two files that the SDKs share. They differ only in their section headers. */
export type Kind = "config" | "credentials"

/** The properties of a profile, by lowercase name. */
export type Profile = ReadonlyMap<string, Property>

/** Throws what is wrong with the line. */
type Refuse = (problem: string) => never

/** A property whose value may go on in the next line. */
type Open = Property & { value: string }

const isBlank = (char: string | undefined): boolean => char === " " || char === "\t"

/** Blanks are only the space and the tab. Index loops, since a regular expression for this is quadratic. */
const trim = (text: string): string => {
  let start = 0
  let end = text.length
  while (start < end && isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

const before = (text: string, index: number): string => trim(index < 0 ? text : text.slice(0, index))

/** The name and value of `name = value # comment`. */
const assignment = (line: string, what: string, refuse: Refuse): readonly [name: string, value: string] => {
  const text = before(line, line.search(/[ \t][#;]/))
  const equals = text.indexOf("=")
  if (equals < 0) return refuse(`expected an '=' that defines a ${what}`)
  const name = before(text, equals)
  return name === "" ? refuse(`expected the name of a ${what}`) : [name.toLowerCase(), trim(text.slice(equals + 1))]
}

/** The headers of profiles, whose names may be in quotes. */
const profileHeaders: { readonly [K in Kind]: RegExp } = {
  config: /^profile[ \t]+(["']?)([\w\-/.%@:+]+)\1$/,
  credentials: /^(["']?)([\w\-/.%@:+]+)\1$/
}

/** Reads the lines of a file one by one. Names from the file are used only as keys of maps. */
export class Reader {
  readonly profiles = new Map<string, Map<string, Open>>()
  /** The properties under `[default]`, which count only if there is no `[profile default]`. */
  private plainDefault: Map<string, Open> | undefined
  private section: Map<string, Open> | undefined
  private property: Open | undefined
  /** Kept, since a value that is looked at before its last line is there is copied for each line. */
  private isBlock = false

  constructor(private readonly path: string, private readonly kind: Kind, private readonly refuse: Refuse) {}

  read(line: string, number: number): void {
    const text = trim(line)
    if (["#", ";", undefined].includes(text[0])) return
    if (line[0] === "[") return this.header(text)
    if (this.section === undefined) return this.refuse("expected a section header before it")
    return isBlank(line[0]) ? this.continuation(text) : this.definition(text, number, this.section)
  }

  finish(): ReadonlyMap<string, Profile> {
    const { plainDefault, profiles } = this
    return plainDefault === undefined || profiles.has("default") ? profiles : profiles.set("default", plainDefault)
  }

  private header(line: string): void {
    const text = before(line, line.search(/[#;]/))
    if (!text.endsWith("]")) this.refuse("expected a ']' that ends the section header")
    this.section = this.sectionOf(trim(text.slice(1, -1)))
    this.property = undefined
  }

  /** Where the properties go: those of a section that is not a profile are read and dropped. */
  private sectionOf(header: string): Map<string, Open> {
    if (header === "default") return this.plainDefault ??= new Map()
    const name = profileHeaders[this.kind].exec(header)?.[2]
    if (name === undefined) return new Map()
    const section = this.profiles.get(name) ?? new Map<string, Open>()
    this.profiles.set(name, section)
    return section
  }

  private definition(line: string, number: number, section: Map<string, Open>): void {
    const [name, value] = assignment(line, "property", this.refuse)
    this.property = { value, path: this.path, line: number }
    this.isBlock = value === ""
    if (/^[\w-]+$/.test(name)) section.set(name, this.property)
  }

  private continuation(text: string): void {
    const property = this.property ?? this.refuse("expected a property before the indented line")
    if (this.isBlock) assignment(text, "nested property", this.refuse)
    property.value += `\n${text}`
  }
}
