import type { Node } from "../compiled.ts"

/** The argument of a step, as source code. */
const print = (given: unknown): string => {
  if (typeof given === "string" && given !== "Infinity") return JSON.stringify(given)
  if (Array.isArray(given)) return `[${given.map(print).join(", ")}]`
  if (typeof given !== "object" || "toJSON" in given!) return String(given)
  const options = Object.entries(given!).map(([key, value]) => `${key}: ${print(value)}`)
  return options.length === 0 ? "" : `{ ${options.join(", ")} }`
}

/** The composition, as source code. */
export const toText = (nodes: ReadonlyArray<Node>): string => {
  const [first, ...others] = nodes.map(([tag, given]) => given === undefined ? tag : `${tag}(${print(given)})`)
  return others.length === 0 ? first! : `${first}.pipe(${others.join(", ")})`
}

/** The composition as JSON: a step is the name of a combinator, or its name and argument. */
export const toSteps = (nodes: ReadonlyArray<Node>) =>
  nodes.map(([tag, given]) => {
    const name = tag.replace(/^(Backoff|RetryPolicy)\./, "")
    return given === undefined ? name : { [name]: given }
  })
