import { get } from "../safe.ts"

/** What a call to a model has used, in tokens. */
export interface Usage {
  /** What it has read anew, and written to a cache. */
  readonly input: number | undefined
  /** What it has read from a cache. */
  readonly cached: number | undefined
  /** What it has written, its reasoning too. */
  readonly output: number | undefined
}

const count = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? value as number : undefined

const at = (value: unknown, ...path: ReadonlyArray<string>): unknown => path.reduce(get, value)

const less = (all: number | undefined, cached: number | undefined): number | undefined =>
  all === undefined ? undefined : Math.max(0, all - (cached ?? 0))

const sum = (a: number | undefined, b: number | undefined): number | undefined => a === undefined ? b : a + (b ?? 0)

/** Chat completions and embeddings of OpenAI: all of the prompt, and how much of it was cached. */
const ofChat = (usage: unknown): Usage => {
  const cached = count(at(usage, "prompt_tokens_details", "cached_tokens"))
  return {
    input: less(count(at(usage, "prompt_tokens")), cached),
    cached,
    output: count(at(usage, "completion_tokens"))
  }
}

/** Responses of OpenAI, whose input includes what was cached, and messages of Anthropic, whose input does not. */
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

/** What is said later counts, field by field. */
export const merged = (before: Usage | undefined, after: Usage | undefined): Usage | undefined =>
  before === undefined || after === undefined ? after ?? before : {
    input: after.input ?? before.input,
    cached: after.cached ?? before.cached,
    output: after.output ?? before.output
  }

/** Where answers and parts of streams have their usage. */
const places: ReadonlyArray<ReadonlyArray<string>> = [
  ["usage"],
  ["data", "usage"],
  ["message", "usage"],
  ["response", "usage"]
]

/** What an answer of a model says it has used, or a part of one that comes as a stream; `undefined` where it says nothing. */
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
