import { get, look, short } from "../tryGet.ts"
import { isLazy } from "./tokenUsage.ts"
import { headerIn, headersOf } from "./wire.ts"

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
