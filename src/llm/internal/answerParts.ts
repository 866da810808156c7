import { get } from "../../internal/tryGet.ts"

/**
 * What comes before an answer: in streams of Anthropic, of OpenAI's Responses, of the AI SDK and of Effect's models.
 * Source: npm `@anthropic-ai/sdk` 1.12.0, `openai` 6.49.0, `ai` 7.0.173.
 */
const preambles: ReadonlySet<unknown> = new Set([
  "message_start",
  "ping",
  "content_block_start",
  "response.created",
  "response.queued",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.reasoning_summary_part.added",
  "start",
  "start-step",
  "stream-start",
  "response-metadata",
  "raw",
  "anthropic.message_start",
  "text-start",
  "reasoning-start"
])

/** What holds words later. Anything else, such as the call of a tool, is an answer already. */
const holders: ReadonlySet<unknown> = new Set([undefined, "message", "reasoning", "text", "thinking"])

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)

/** Whether a choice of OpenAI's chat completions has at most a role. */
const isSilent = (choice: unknown): boolean => {
  const delta = get(choice, "delta")
  return isEmpty(get(choice, "finish_reason")) &&
    Object.keys(delta ?? {}).every((key) => key === "role" || isEmpty(get(delta, key)))
}

/** Whether a part of a stream belongs to the answer. */
export const isAnswer = (part: unknown): boolean => {
  const choices = get(part, "choices")
  if (Array.isArray(choices)) return !choices.every(isSilent)
  const type = get(part, "type")
  const holder = get(part, "item") ?? get(part, "content_block")
  return preambles.has(type === "custom" ? get(part, "kind") : type)
    ? !holders.has(get(holder, "type")) || !isEmpty(get(holder, "text"))
    : !isEmpty(part)
}

/** The error that a part reports. Source: as above, and OpenAI's `response.failed`, whose `response` has it. */
export const failureOf = (part: unknown): { readonly cause: unknown } | undefined => {
  const type = get(part, "type")
  if (type === "response.failed") return { cause: get(part, "response") }
  const error = get(part, "error")
  return type === "error" || (type === undefined && error) ? { cause: error ?? part } : undefined
}
