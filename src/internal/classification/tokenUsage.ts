import { get, look, short } from "../tryGet.ts"
import { headerIn, headersOf } from "./wire.ts"

/** What a call to a model used, in tokens. Without input or output it is not whole. */
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

const at = (value: unknown, path: ReadonlyArray<string>): unknown => path.reduce(get, value)

const countsIn = (usage: unknown) => (...path: ReadonlyArray<string>): number | undefined => count(at(usage, path))

const less = (all: number | undefined, cached: number | undefined): number | undefined =>
  all === undefined ? undefined : Math.max(0, all - (cached ?? 0))

const sum = (a: number | undefined, b: number | undefined): number | undefined => a === undefined ? a : a + (b ?? 0)

/** Embeddings have input, and no output. */
const none = (input: number | undefined, isEmbedding: boolean | undefined): number | undefined =>
  isEmbedding && input !== undefined ? 0 : undefined

/** OpenAI chat completions and embeddings: the whole prompt, and how much of it was cached. */
const ofChat = (usage: unknown): Usage => {
  const read = countsIn(usage)
  const [input, cached] = [read("prompt_tokens"), read("prompt_tokens_details", "cached_tokens")]
  const output = read("completion_tokens") ?? none(input, input === read("total_tokens"))
  return { input: less(input, cached), cached, output }
}

/** OpenAI responses, whose input includes cached tokens, and Anthropic messages, whose input does not. */
const ofInput = (usage: unknown): Usage => {
  const read = countsIn(usage)
  const within = read("input_tokens_details", "cached_tokens")
  const input = sum(less(read("input_tokens"), within), read("cache_creation_input_tokens"))
  return { input, cached: within ?? read("cache_read_input_tokens"), output: read("output_tokens") }
}

/** Models of Effect, and of the AI SDK, which has numbers in place of objects. */
const ofModel = (usage: unknown): Usage => {
  const read = countsIn(usage)
  const input = read("inputTokens")
  const cached = read("inputTokens", "cacheRead") ?? read("inputTokenDetails", "cacheReadTokens") ??
    read("cachedInputTokens")
  const fresh = sum(read("inputTokens", "uncached"), read("inputTokens", "cacheWrite"))
  const isEmbedding = look(() => !("outputTokens" in (usage as object)))
  return {
    input: less(read("inputTokens", "total") ?? input, cached) ?? fresh,
    cached,
    output: read("outputTokens", "total") ?? read("outputTokens") ?? none(input, isEmbedding)
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
const places = /* @__PURE__ */ ["totalUsage", "usage", "data.usage", "message.usage", "response.usage"].map((path) =>
  path.split(".")
)

/** Whether it is a stream of the AI SDK: each property read makes a promise, which rejects unseen if the stream fails. */
export const isLazy = (value: unknown): boolean =>
  look(() => "consumeStream" in (value as object) || "partialObjectStream" in (value as object)) === true

/** The usage reported by a model's response, or by a part of a stream; `undefined` if it reports none. */
export const usageOf = (value: unknown): Usage | undefined => {
  if (isLazy(value)) return undefined
  const type = get(value, "type")
  // One of many: the last part has that of all.
  if (type === "finish-step") return undefined
  for (const place of places) {
    const usage = at(value, place)
    if (usage === undefined || usage === null) continue
    for (const read of [ofChat, ofInput, ofModel]) {
      const found = read(usage)
      // The output of a message that has only begun is another at its end.
      if (found.input !== undefined) return type === "message_start" ? { ...found, output: undefined } : found
      if (found.output !== undefined) return found
    }
  }
  return undefined
}

/** What is limited. */
export const limitNames = ["requests", "tokens", "inputTokens", "outputTokens"] as const

type LimitName = typeof limitNames[number]

/** For each limit, the names of the headers for it and for what is left of it. */
const headers: { readonly [Of in LimitName]: ReadonlyArray<(of: "limit" | "remaining") => string> } = {
  requests: [(of) => `x-ratelimit-${of}-requests`, (of) => `anthropic-ratelimit-requests-${of}`],
  tokens: [(of) => `x-ratelimit-${of}-tokens`, (of) => `anthropic-ratelimit-tokens-${of}`],
  inputTokens: [(of) => `anthropic-ratelimit-input-tokens-${of}`],
  outputTokens: [(of) => `anthropic-ratelimit-output-tokens-${of}`]
}

const finishOf = (value: unknown): unknown => {
  const content = get(value, "content")
  return Array.isArray(content) ? content.find((part) => get(part, "type") === "finish") : undefined
}

/** The headers of a response or an error, from SDKs and `fetch` or from the models of Effect. */
const headersIn = (value: unknown): object | undefined =>
  look(() => headersOf(value) ?? headersOf(get(get(value, "reason"), "http") ?? {}) ?? headersOf(finishOf(value) ?? {}))

const numberIn = (value: unknown): number | undefined =>
  /^\s*\d{1,15}\s*$/.test(short(value)) ? Number(value) : undefined

/** What the headers of a response say about a limit; `undefined` if nothing. */
export const limitsIn = (value: unknown) => {
  const found = isLazy(value) ? undefined : headersIn(value)
  const header = found && look(() => headerIn(found))
  if (header === undefined) return undefined
  const read = (name: string) => numberIn(look(() => header(name)))
  return limitNames.map((name) => {
    const [limit, remaining] = (["limit", "remaining"] as const).map((of) =>
      headers[name].map((nameOf) => read(nameOf(of))).find((number) => number !== undefined)
    )
    return { limit: limit === 0 ? undefined : limit, remaining }
  })
}
