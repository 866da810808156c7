import { get } from "../../internal/tryGet.ts"

/** Text in these is not tokens: images, audio, files and their addresses. */
const opaque: ReadonlySet<string> = new Set([
  "data",
  "image_url",
  "url",
  "file_data",
  "fileData",
  "fileName",
  "mediaType"
])

/** The maximum depth to look into. */
const maxDepth = 16

const lengthIn = (value: unknown, depth: number): number => {
  if (typeof value === "string") return value.length
  if (value === null || typeof value !== "object" || depth === 0 || ArrayBuffer.isView(value)) return 0
  const keys = Object.keys(value).filter((key) => !opaque.has(key))
  return keys.reduce((sum, key) => sum + lengthIn(get(value, key), depth - 1), 0)
}

/**
 * The approximate number of tokens of the text in a value: one per four characters. Source: OpenAI, "What are tokens".
 */
export const tokensIn = (value: unknown): number => Math.ceil(lengthIn(value, maxDepth) / 4)
