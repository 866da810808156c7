import type { Node } from "../parts.ts"

/** What a step was given, as it is written in a program. */
const print = (given: unknown): string => {
  if (typeof given === "string" && given !== "Infinity") return JSON.stringify(given)
  if (typeof given !== "object" || "toJSON" in given!) return String(given)
  const options = Object.entries(given!).map(([key, value]) => `${key}: ${print(value)}`)
  return options.length === 0 ? "" : `{ ${options.join(", ")} }`
}

/** The composition, as it is written in a program. */
export const toText = (nodes: ReadonlyArray<Node>): string => {
  const [first, ...others] = nodes.map(([tag, given]) => given === undefined ? tag : `${tag}(${print(given)})`)
  return others.length === 0 ? first! : `${first}.pipe(${others.join(", ")})`
}

/** The composition in JSON: a step is the name of a combinator, or its name and what it was given. */
export const toSteps = (nodes: ReadonlyArray<Node>) =>
  nodes.map(([tag, given]) => {
    const name = tag.replace(/^(Backoff|RetryPolicy)\./, "")
    return given === undefined ? name : { [name]: given }
  })
