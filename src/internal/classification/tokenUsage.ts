import { get } from "../tryGet.ts"

/** What a call to a model used, in tokens. */
export interface Usage {
  /** Input read fresh, and written to a cache. */
  readonly input: number | undefined
  /** Input read from a cache. */
  readonly cached: number | undefined
  /** Output, reasoning included. */
  readonly output: number | undefined
}

const count = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? value as number : undefined

const at = (value: unknown, ...path: ReadonlyArray<string>): unknown => path.reduce(get, value)

const less = (all: number | undefined, cached: number | undefined): number | undefined =>
  all === undefined ? undefined : Math.max(0, all - (cached ?? 0))

const sum = (a: number | undefined, b: number | undefined): number | undefined => a === undefined ? b : a + (b ?? 0)

/** OpenAI chat completions and embeddings: the whole prompt, and how much of it was cached. */
const ofChat = (usage: unknown): Usage => {
  const cached = count(at(usage, "prompt_tokens_details", "cached_tokens"))
  return {
    input: less(count(at(usage, "prompt_tokens")), cached),
    cached,
    output: count(at(usage, "completion_tokens"))
  }
}

/** OpenAI responses, whose input includes cached tokens, and Anthropic messages, whose input does not. */
const ofInput = (usage: unknown): Usage => {
  const within = count(at(usage, "input_tokens_details", "cached_tokens"))
  const written = count(at(usage, "cache_creation_input_tokens"))
  return {
    input: sum(less(count(at(usage, "input_tokens")), within), written),
    cached: within ?? count(at(usage, "cache_read_input_tokens")),
    output: count(at(usage, "output_tokens"))
  }
}

/** Models of Effect. */
const ofEffect = (usage: unknown): Usage => {
  const cached = count(at(usage, "inputTokens", "cacheRead"))
  const fresh = sum(count(at(usage, "inputTokens", "uncached")), count(at(usage, "inputTokens", "cacheWrite")))
  return {
    input: less(count(at(usage, "inputTokens", "total")), cached) ?? fresh ?? count(at(usage, "inputTokens")),
    cached,
    output: count(at(usage, "outputTokens", "total"))
  }
}

/** Later values win, field by field. */
export const merged = (before: Usage | undefined, after: Usage | undefined): Usage | undefined =>
  before === undefined || after === undefined ? after ?? before : {
    input: after.input ?? before.input,
    cached: after.cached ?? before.cached,
    output: after.output ?? before.output
  }

/** Where responses and stream parts have their usage. */
const places: ReadonlyArray<ReadonlyArray<string>> = [
  ["usage"],
  ["data", "usage"],
  ["message", "usage"],
  ["response", "usage"]
]

/** The usage reported by a model's response, or by a part of a stream; `undefined` if it reports none. */
export const usageOf = (value: unknown): Usage | undefined => {
  for (const place of places) {
    const usage = at(value, ...place)
    if (usage === undefined || usage === null) continue
    for (const read of [ofChat, ofInput, ofEffect]) {
      const found = read(usage)
      if (found.input !== undefined || found.output !== undefined) return found
    }
  }
  return undefined
}
