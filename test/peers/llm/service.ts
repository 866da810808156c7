import * as http from "node:http"
import type * as net from "node:net"

/** How the service answers a request: in full, or broken off before its first word or after it. */
export type Answering =
  | "in full"
  | "529 as status"
  | "error event"
  | "error event with the preamble"
  | "connection cut"
  | "end without an answer"
  | "cut after the first word"
  | "silence before the first word"

/** The events of one answer of an API, and its error event. */
interface Api {
  readonly preamble: ReadonlyArray<object>
  readonly words: ReadonlyArray<object>
  readonly rest: ReadonlyArray<object>
  readonly error: object
  /** Names each event. */
  readonly isNamed: boolean
}

const chunk = (delta: object, finish: string | null = null) => ({
  id: "c1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
  usage: null
})

/** What OpenAI's documentation shows of a stream, with `include_usage`. */
const chat: Api = {
  isNamed: false,
  preamble: [chunk({ role: "assistant", content: "", refusal: null })],
  words: [chunk({ content: "one" }), chunk({ content: " two" })],
  rest: [chunk({}, "stop"), {
    ...chunk({}),
    choices: [],
    usage: {
      prompt_tokens: 1000,
      completion_tokens: 4000,
      total_tokens: 5000,
      prompt_tokens_details: { cached_tokens: 300 }
    }
  }],
  error: { error: { type: "server_error", code: null, message: "The server had an error", param: null } }
}

const response = (status: string, usage: object | null = null, error: object | null = null) => ({
  id: "r1",
  object: "response",
  created_at: 1,
  model: "m",
  status,
  error,
  output: [],
  usage
})

const responses: Api = {
  isNamed: true,
  preamble: [
    { type: "response.created", sequence_number: 0, response: response("in_progress") },
    { type: "response.in_progress", sequence_number: 1, response: response("in_progress") },
    {
      type: "response.output_item.added",
      sequence_number: 2,
      output_index: 0,
      item: { id: "i1", type: "message", status: "in_progress", role: "assistant", content: [] }
    },
    {
      type: "response.content_part.added",
      sequence_number: 3,
      item_id: "i1",
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "", annotations: [] }
    }
  ],
  words: ["one", " two"].map((delta, at) => ({
    type: "response.output_text.delta",
    sequence_number: 4 + at,
    item_id: "i1",
    output_index: 0,
    content_index: 0,
    delta,
    logprobs: []
  })),
  rest: [
    {
      type: "response.output_text.done",
      sequence_number: 6,
      item_id: "i1",
      output_index: 0,
      content_index: 0,
      text: "one two",
      logprobs: []
    },
    {
      type: "response.output_item.done",
      sequence_number: 7,
      output_index: 0,
      item: {
        id: "i1",
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "one two", annotations: [] }]
      }
    },
    {
      type: "response.completed",
      sequence_number: 8,
      response: response("completed", {
        input_tokens: 1000,
        input_tokens_details: { cached_tokens: 300 },
        output_tokens: 4000,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 5000
      })
    }
  ],
  error: { type: "error", sequence_number: 4, code: "server_error", message: "The server had an error", param: null }
}

/** The other way in which OpenAI's Responses fail: the last event of a response. */
export const failedResponse = {
  type: "response.failed",
  sequence_number: 4,
  response: response("failed", null, { code: "server_error", message: "The server had an error" })
}

/** What Anthropic's documentation shows of a stream. */
const messages: Api = {
  isNamed: true,
  preamble: [
    {
      type: "message_start",
      message: {
        id: "m1",
        type: "message",
        role: "assistant",
        content: [],
        model: "m",
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 700, cache_read_input_tokens: 300, cache_creation_input_tokens: 0, output_tokens: 1 }
      }
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "ping" }
  ],
  words: ["one", " two"].map((text) => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text }
  })),
  rest: [
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 4000 } },
    { type: "message_stop" }
  ],
  error: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
}

const apis: Record<string, Api> = { "/chat/completions": chat, "/responses": responses, "/messages": messages }

/** A service with the streams of OpenAI and Anthropic, which answers its requests in turn, the last from then on in full. */
export const startService = async (answers: ReadonlyArray<Answering>, error?: object) => {
  /** For each request how it was answered, and whether its connection is closed. */
  const requests: Array<{ readonly answering: Answering; isClosed: boolean }> = []
  const server = http.createServer((request, reply) => {
    const api = apis[request.url!.replace("/v1", "")]!
    const answering = answers[requests.length] ?? "in full"
    const seen = { answering, isClosed: false }
    requests.push(seen)
    reply.on("close", () => {
      seen.isClosed = true
    })
    request.resume().on("end", () => {
      if (answering === "529 as status") {
        reply.writeHead(529, { "content-type": "application/json" }).end(JSON.stringify(api.error))
        return
      }
      reply.writeHead(200, { "content-type": "text/event-stream" })
      const write = (...events: ReadonlyArray<object>) => {
        for (const event of events) {
          const name = api.isNamed ? `event: ${(event as { type: string }).type}\n` : ""
          reply.write(`${name}data: ${JSON.stringify(event)}\n\n`)
        }
      }
      write(...api.preamble)
      // Mostly the client has read the events before the next ones are written.
      const then = (next: () => void) => answering === "error event with the preamble" ? next() : setTimeout(next, 20)
      then(() => {
        switch (answering) {
          case "in full":
            write(...api.words, ...api.rest)
            reply.end(api.isNamed ? "" : "data: [DONE]\n\n")
            break
          case "error event":
          case "error event with the preamble":
            write(error ?? api.error)
            reply.end()
            break
          case "connection cut":
            reply.destroy()
            break
          case "end without an answer":
            reply.end()
            break
          case "cut after the first word":
            write(api.words[0]!)
            then(() => reply.destroy())
            break
          case "silence before the first word":
            // The client has to end it.
        }
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    requests,
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
