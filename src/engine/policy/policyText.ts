import type { Node } from "../compiled.ts"

/** The argument of a step, as source code. */
const print = (value: unknown): string => {
  if (typeof value === "string" && value !== "Infinity") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(print).join(", ")}]`
  if (typeof value !== "object" || "toJSON" in value!) return String(value)
  const options = Object.entries(value!).map(([key, value]) => `${key}: ${print(value)}`)
  return options.length === 0 ? "" : `{ ${options.join(", ")} }`
}

/** The composition, as source code. */
export const toText = (nodes: ReadonlyArray<Node>): string => {
  const [first, ...others] = nodes.map(([tag, value]) => value === undefined ? tag : `${tag}(${print(value)})`)
  return others.length === 0 ? first! : `${first}.pipe(${others.join(", ")})`
}

/** The composition as JSON: a step is the name of a combinator, or its name and argument. */
export const toSteps = (nodes: ReadonlyArray<Node>) =>
  nodes.map(([tag, value]) => {
    const name = tag.replace(/^(Backoff|RetryPolicy)\./, "")
    return value === undefined ? name : { [name]: value }
  })
