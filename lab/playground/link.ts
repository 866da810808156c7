import {
  accepts,
  begin,
  type Choice,
  choices,
  type Field,
  fieldNames,
  fields,
  type Kind,
  kinds,
  mostPolicies,
  settingNames,
  settings,
  type Setup
} from "./setup.ts"

const choiceText = (choice: Choice): string =>
  [
    choice.name,
    ...settingNames.flatMap((name) => choice[name] === undefined ? [] : [`${name}:${choice[name]}`]),
    ...choice.coolDown ? ["coolDown"] : []
  ].join(",")

/** The part after the `#` of a link to a set-up. Defaults are left out. */
export const linkOf = (setup: Setup): string => {
  const link = new URLSearchParams()
  for (const name of fieldNames) if (setup[name] !== begin[name]) link.set(name, String(setup[name]))
  if (setup.kind !== begin.kind) link.set("kind", setup.kind)
  for (const choice of setup.policies) link.append("policy", choiceText(choice))
  return link.toString().replaceAll("%3A", ":").replaceAll("%2C", ",")
}

/** The set-up of a link, or everything that is wrong with it. */
export type Read = { readonly setup: Setup } | { readonly problems: ReadonlyArray<string> }

const shown = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 37)}...` : text)

const isIn = <Key extends string>(record: Record<Key, unknown>, key: string): key is Key => Object.hasOwn(record, key)

const decimal = /^(?:\d+(?:\.\d+)?|\.\d+)(?:e-\d+)?$/

/** Reads a link: errors are noted, and the rest is still read. */
class Reader {
  readonly problems: Array<string> = []

  refuse(name: string, expected: string, text: string): undefined {
    this.problems.push(`${name} must be ${expected}, got ${shown(text)}`)
  }

  /** Notes what was given before. */
  once(name: string, found: object, key: string): void {
    if (Object.hasOwn(found, key)) this.problems.push(`${name} is given more than once`)
  }

  number(name: string, field: Field, text: string): number | undefined {
    const value = decimal.test(text) ? Number(text) : NaN
    if (accepts(field, value)) return value
    return this.refuse(name, `a ${field.whole ? "whole number" : "number"} from ${field.min} to ${field.max}`, text)
  }

  kind(text: string): Kind | undefined {
    return isIn(kinds, text) ? text : this.refuse("kind", `one of ${Object.keys(kinds).join(", ")}`, text)
  }

  choice(text: string): Choice | undefined {
    const [first = "", ...parts] = text.split(",")
    const name = choices.find((name) => name === first)
    if (name === undefined) return this.refuse("policy", `one of ${choices.join(", ")}`, first)
    const found = {}
    for (const part of parts) {
      const setting = this.setting(part)
      for (const key of Object.keys(setting)) this.once(`policy: ${key}`, found, key)
      Object.assign(found, setting)
    }
    return { name, ...found }
  }

  private setting(part: string): Partial<Choice> {
    if (part === "coolDown") return { coolDown: true }
    const [key = "", ...values] = part.split(":")
    if (isIn(settings, key)) return { [key]: this.number(`policy: ${key}`, settings[key], values.join(":")) }
    this.refuse("policy", `a name, then ${settingNames.map((name) => `${name}:NUMBER`).join(", ")} or coolDown`, part)
    return {}
  }
}

/** A longer link is not read: one of nine policies with all settings has half as much. */
const mostLength = 2000

/** Reads the part after the `#` of a link. Nothing is guessed: any error refuses the link. */
export const readLink = (hash: string): Read => {
  if (hash.length > mostLength) {
    return { problems: [`a link has at most ${mostLength} characters, got ${hash.length}`] }
  }
  const link = new URLSearchParams(hash.replace(/^#/, ""))
  const reader = new Reader()
  const found: Record<string, unknown> = {}
  const policies: Array<Choice> = []
  for (const [name, text] of link) {
    reader.once(name, found, name)
    if (isIn(fields, name)) found[name] = reader.number(name, fields[name], text)
    else if (name === "kind") found["kind"] = reader.kind(text)
    else if (name === "policy") policies.push(reader.choice(text) ?? { name: "none" })
    else reader.problems.push(`unknown key ${shown(name)}`)
  }
  if (policies.length > mostPolicies) reader.problems.push(`more than ${mostPolicies} policies`)
  if (reader.problems.length > 0) return { problems: reader.problems.slice(0, 10) }
  return { setup: { ...begin, ...found, ...policies.length > 0 && { policies } } }
}
