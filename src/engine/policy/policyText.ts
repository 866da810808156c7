import type { Node } from "../compiled.ts"

/** The argument of a step, as source code. */
const print = (value: unknown): string => {
  if (typeof value === "string" && value !== "Infinity") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(print).join(", ")}]`
  if (typeof value !== "object" || "toJSON" in value!) return String(value)
  const options = Object.entries(value!).map(([key, value]) => `${key}: ${print(value)}`)
  return options.length === 0 ? "" : `{ ${options.join(", ")} }`
}

/** The arguments of a step: a backoff takes its delay first, its growth next, and its options last. */
const printArguments = (tag: string, value: unknown): string => {
  if (!tag.startsWith("Backoff.")) return print(value)
  const { base, delay = base, factor, ...others } = value as { readonly [option: string]: unknown }
  const options = print(others)
  const growth = factor ?? (options && tag === "Backoff.exponential" && 2)
  return [print(delay), growth, options].filter(Boolean).join(", ")
}

/** The composition, as source code. */
export const toText = (nodes: ReadonlyArray<Node>): string => {
  const [first, ...others] = nodes.map(([tag, value]) =>
    value === undefined ? tag : `${tag}(${printArguments(tag, value)})`
  )
  return others.length === 0 ? first! : `${first}.pipe(${others.join(", ")})`
}

/** The composition as JSON: a step is the name of a combinator, or its name and argument. */
export const toSteps = (nodes: ReadonlyArray<Node>) =>
  nodes.map(([tag, value]) => {
    const name = tag.replace(/^(Backoff|RetryPolicy)\./, "")
    return value === undefined ? name : { [name]: value }
  })
