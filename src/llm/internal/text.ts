import { get } from "../../internal/safe.ts"

/** Of these no text is tokens: pictures, sounds, files and where they are. */
const opaque: ReadonlySet<string> = new Set([
  "data",
  "image_url",
  "url",
  "file_data",
  "fileData",
  "fileName",
  "mediaType"
])

/** Deeper than this nothing is looked into. */
const maxDepth = 16

const lengthIn = (value: unknown, depth: number): number => {
  if (typeof value === "string") return value.length
  if (value === null || typeof value !== "object" || depth === 0 || ArrayBuffer.isView(value)) return 0
  return Object.keys(value).reduce(
    (sum, key) => opaque.has(key) ? sum : sum + lengthIn(get(value, key), depth - 1),
    0
  )
}

/** About how many tokens the text in a value is: one for each four characters. Source: OpenAI, "What are tokens". */
export const tokensIn = (value: unknown): number => Math.ceil(lengthIn(value, maxDepth) / 4)
