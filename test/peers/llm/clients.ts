import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import Anthropic from "@anthropic-ai/sdk"
import { type LanguageModel, streamText } from "ai"
import OpenAI from "openai"

/** A stream of a real SDK, without its own retries. */
export type Open = (baseURL: string, signal: AbortSignal) => Promise<AsyncIterable<unknown>> | AsyncIterable<unknown>

const messages = [{ role: "user" as const, content: "hi" }]
const silent = { maxRetries: 0 }
const apiKey = "key"

const openai = (baseURL: string) => new OpenAI({ apiKey, baseURL })
const anthropic = (baseURL: string) => new Anthropic({ apiKey, baseURL })
const written = { model: "m", max_tokens: 5000, messages }

const ai = (modelOf: (baseURL: string) => LanguageModel) => (baseURL: string, abortSignal: AbortSignal) =>
  streamText({ model: modelOf(baseURL), messages, maxOutputTokens: 5000, abortSignal, onError: () => {}, ...silent })

const aiChat = ai((baseURL) => createOpenAI({ apiKey, baseURL }).chat("m"))
const aiResponses = ai((baseURL) => createOpenAI({ apiKey, baseURL }).responses("m"))
const aiMessages = ai((baseURL) => createAnthropic({ apiKey, baseURL })("m"))

export const clients: Record<string, Open> = {
  "openai chat completions": (baseURL, signal) =>
    openai(baseURL).chat.completions.create(
      { model: "m", messages, stream: true, stream_options: { include_usage: true } },
      { ...silent, signal }
    ),
  "openai responses": (baseURL, signal) =>
    openai(baseURL).responses.create({ model: "m", input: "hi", stream: true }, { ...silent, signal }),
  "anthropic create": (baseURL, signal) =>
    anthropic(baseURL).messages.create({ ...written, stream: true }, { ...silent, signal }),
  "anthropic stream()": (baseURL, signal) => anthropic(baseURL).messages.stream(written, { ...silent, signal }),
  "ai with chat completions": (baseURL, signal) => aiChat(baseURL, signal).fullStream,
  "ai with responses": (baseURL, signal) => aiResponses(baseURL, signal).fullStream,
  "ai with messages": (baseURL, signal) => aiMessages(baseURL, signal).fullStream,
  "ai, text only": (baseURL, signal) => aiMessages(baseURL, signal).textStream
}
