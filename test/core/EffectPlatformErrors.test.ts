import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier } from "effect-retry"
import * as McpClientError from "effect/ai/McpClientError"
import * as ClusterError from "effect/cluster/ClusterError"
import * as Effect from "effect/Effect"
import * as GraphQLClientError from "effect/graphql/GraphQLClientError"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Dns from "effect/net/Dns"
import * as Option from "effect/Option"
import * as Persistence from "effect/persistence/Persistence"
import * as Redis from "effect/persistence/Redis"
import * as PlatformError from "effect/PlatformError"
import * as RpcClientError from "effect/rpc/RpcClientError"
import * as Socket from "effect/socket/Socket"
import * as WorkerError from "effect/workers/WorkerError"
import * as fs from "node:fs"

const words = (error: unknown): string => {
  const info = Option.getOrUndefined(RetryClassifier.defaultClassifier(error))
  if (info === undefined) return "-"
  return [info.safety, info.throttling && "throttling", info.timeout && "timeout"].filter(Boolean).join(" ")
}

const page = fs.readFileSync(new URL("../../docs/effect-errors.md", import.meta.url), "utf8")

/** The table of this error on the page, row by row: its first cell and its second. */
const tableOf = (title: string): ReadonlyMap<string, string> => {
  const table = page.slice(page.indexOf(`| ${title} | retried | why |`)).split("\n\n")[0]!
  return new Map(
    table.split("\n").slice(2).map((row) => row.split(" | ")).map(([name, retried]) => [
      name!.replace(/^\| /, ""),
      retried!
    ])
  )
}

const cause = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" })
const timedOut = Object.assign(new Error("read ETIMEDOUT"), { code: "ETIMEDOUT", syscall: "read" })
const what = new Error("what")

describe("PlatformError", () => {
  const system = (_tag: PlatformError.SystemErrorTag, cause?: unknown) =>
    PlatformError.systemError({ _tag, module: "FileSystem", method: "open", cause })
  const rows: ReadonlyArray<readonly [row: string, error: PlatformError.PlatformError, expected: string]> = [
    ["`TimedOut`", system("TimedOut"), "Yes timeout"],
    ["`Busy`, `WouldBlock`", system("Busy"), "Yes"],
    ["`Busy`, `WouldBlock`", system("WouldBlock"), "Yes"],
    ...([
      "AlreadyExists",
      "BadResource",
      "InvalidData",
      "NotFound",
      "PermissionDenied",
      "UnexpectedEof",
      "Unknown",
      "WriteZero"
    ] as const)
      .flatMap((tag) => [["any other", system(tag), "-"], ["any other", system(tag, cause), "Yes"]] as const),
    ["any other", PlatformError.badArgument({ module: "FileSystem", method: "open" }), "-"]
  ]
  for (const [row, error, expected] of rows) {
    it(`${error.message}${error.cause === undefined ? "" : " after ECONNRESET"}: ${expected}`, () => {
      assert.strictEqual(words(error), expected)
      assert.strictEqual(words({ _tag: "OrdersError", cause: error }), expected)
      assert.strictEqual(tableOf("`PlatformError`").get(row), row === "any other" ? "as its cause" : expected)
    })
  }
})

describe("SocketError and RpcClientError", () => {
  const close = (code: number) => new Socket.SocketCloseError({ code })
  const rows: ReadonlyArray<readonly [row: string, reason: Socket.SocketErrorReason, expected: string]> = [
    ["`SocketOpenError`", new Socket.SocketOpenError({ kind: "Unknown", cause: what }), "Yes"],
    ["... `Timeout`", new Socket.SocketOpenError({ kind: "Timeout", cause: what }), "Yes timeout"],
    ["`SocketReadError`, `SocketWriteError`", new Socket.SocketReadError({ cause }), "Yes"],
    ["`SocketReadError`, `SocketWriteError`", new Socket.SocketReadError({ cause: what }), "Yes"],
    ["`SocketReadError`, `SocketWriteError`", new Socket.SocketWriteError({ cause: what }), "Yes"],
    ["... its cause timed out", new Socket.SocketReadError({ cause: timedOut }), "Yes timeout"],
    ...[1001, 1006, 1011, 1012, 1014].map((code) =>
      ["`SocketCloseError` 1001, 1006, 1011, 1012, 1014", close(code), "Yes"] as const
    ),
    ["... 1013", close(1013), "Yes throttling"],
    ...[1000, 1002, 1003, 1005, 1007, 1008, 1009, 1010, 1015, 3000, 4000].map((code) =>
      ["... any other", close(code), "-"] as const
    ),
    ["`SocketUpgradeError`", new Socket.SocketUpgradeError({}), "-"],
    ["`SocketUpgradeError`", new Socket.SocketUpgradeError({ cause }), "Yes"]
  ]
  for (const [row, reason, expected] of rows) {
    it(`${reason._tag} ${reason.message}: ${expected}`, () => {
      const error = new Socket.SocketError({ reason })
      assert.strictEqual(words(error), expected)
      assert.strictEqual(words({ _tag: "OrdersError", cause: error }), expected)
      assert.strictEqual(
        words(Effect.runSync(Effect.flip(Effect.unwrapReason(Effect.fail(error), "SocketError")))),
        expected
      )
      const retried = tableOf("`SocketError`").get(row)
      assert.strictEqual(retried, reason._tag === "SocketUpgradeError" ? "as its cause" : expected)

      const isOwn = reason._tag === "SocketOpenError" || reason._tag === "SocketUpgradeError"
      assert.strictEqual(
        words(new RpcClientError.RpcClientError({ reason })),
        isOwn ? expected : expected.replace("Yes", "Maybe")
      )
    })
  }

  it("have no other reasons", () => {
    assert.sameMembers(
      [...new Set(rows.map(([, { _tag }]) => _tag))],
      Socket.SocketErrorReason.members.map((member) => member.fields._tag.schema.literal)
    )
  })

  const request = HttpClientRequest.post("http://rpc.test/")
  const overHttp = (reason: HttpClientError.HttpClientErrorReason) =>
    new RpcClientError.RpcClientError({
      reason: HttpClientError.HttpClientErrorSchema.fromHttpClientError(new HttpClientError.HttpClientError({ reason }))
    })
  const status = (status: number) =>
    overHttp(
      new HttpClientError.StatusCodeError({
        request,
        response: HttpClientResponse.fromWeb(request, new Response(null, { status }))
      })
    )
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" })
  for (
    const [name, error, expected] of [
      ["a 503", status(503), "Maybe"],
      ["a 429", status(429), "Yes throttling"],
      ["a 404", status(404), "-"],
      ["a reset", overHttp(new HttpClientError.TransportError({ request, cause })), "Maybe"],
      ["nobody listens", overHttp(new HttpClientError.TransportError({ request, cause: refused })), "Yes"],
      ["a message that cannot be encoded", overHttp(new HttpClientError.EncodeError({ request, cause })), "No"]
    ] as const
  ) {
    it(`RPC over HTTP, ${name}: ${expected}`, () => assert.strictEqual(words(error), expected))
  }

  it("RPC over anything else: as its cause", () => {
    for (
      const make of [
        (cause: unknown) => new RpcClientError.RpcClientDefect({ message: "what", cause }),
        (cause: unknown) => new WorkerError.WorkerSpawnError({ message: "what", cause }),
        (cause: unknown) => new WorkerError.WorkerSendError({ message: "what", cause }),
        (cause: unknown) => new WorkerError.WorkerReceiveError({ message: "what", cause }),
        (cause: unknown) => new WorkerError.WorkerUnknownError({ message: "what", cause })
      ]
    ) {
      assert.strictEqual(words(new RpcClientError.RpcClientError({ reason: make(what) })), "-")
      assert.strictEqual(words(new RpcClientError.RpcClientError({ reason: make(cause) })), "Yes")
      assert.include([...tableOf("`RpcClientError`").keys()].at(-1), `\`${make(what)._tag}\``)
    }
  })

  it("a reason that is itself, or none, is unknown", () => {
    const own: { readonly _tag: string; reason?: unknown } = { _tag: "SocketError" }
    own.reason = own
    for (const error of [own, { _tag: "SocketError" }, { _tag: "RpcClientError" }, { _tag: "PlatformError" }]) {
      assert.strictEqual(words(error), "-")
    }
  })
})

/** An error without the addresses that its class requires. */
const made = <A extends { readonly _tag: string }>(constructor: { new(...args: any): A }): A =>
  Object.assign(Object.create(constructor.prototype), {
    _tag: constructor.name,
    "~effect/cluster/ClusterError": "~effect/cluster/ClusterError"
  })

const unchanged = "`AlreadyProcessingMessage`, `MalformedMessage`, `RunnerNotRegistered`"

describe("errors of the cluster", () => {
  const table = tableOf("of the cluster")
  const rows: ReadonlyArray<readonly [row: string, error: { readonly _tag: string }, expected: string]> = [
    ["`MailboxFull`", made(ClusterError.MailboxFull), "Yes throttling"],
    ["`EntityNotAssignedToRunner`, `RunnerUnavailable`", made(ClusterError.EntityNotAssignedToRunner), "Yes"],
    ["`EntityNotAssignedToRunner`, `RunnerUnavailable`", made(ClusterError.RunnerUnavailable), "Yes"],
    ["`PersistenceError`", new ClusterError.PersistenceError({ cause: what }), "-"],
    ["`PersistenceError`", new ClusterError.PersistenceError({ cause }), "Yes"],
    [unchanged, made(ClusterError.AlreadyProcessingMessage), "-"],
    [unchanged, new ClusterError.MalformedMessage({ cause: what }), "-"],
    [unchanged, made(ClusterError.RunnerNotRegistered), "-"]
  ]
  for (const [row, error, expected] of rows) {
    it(`${error._tag}: ${expected}`, () => {
      assert.strictEqual(words(error), expected)
      assert.include(row, `\`${error._tag}\``)
      assert.strictEqual(table.get(row), row === "`PersistenceError`" ? "as its cause" : expected)
    })
  }

  it("a mailbox of your own that is full is unknown", () => assert.strictEqual(words({ _tag: "MailboxFull" }), "-"))
})

describe("other errors of Effect", () => {
  const mcp = (reason: McpClientError.McpClientErrorReason) => new McpClientError.McpClientError({ reason })
  const graphql = (status: number) =>
    new GraphQLClientError.GraphQLClientError({
      operation: "Viewer",
      reason: new GraphQLClientError.TransportError({ description: "what", status })
    })
  for (
    const [name, error, expected] of [
      [
        "DnsError",
        new Dns.DnsError({
          reason: "Temporary",
          method: "lookup",
          hostname: "a",
          cause: Object.assign(new Error(), { code: "EAI_AGAIN" })
        }),
        "Yes"
      ],
      ["RedisError after a reset", new Redis.RedisError({ cause }), "Yes"],
      ["RedisError", new Redis.RedisError({ cause: what }), "-"],
      ["PersistenceError after a reset", new Persistence.PersistenceError({ message: "what", cause }), "Yes"],
      ["GraphQLClientError 503", graphql(503), "Yes"],
      ["GraphQLClientError 400", graphql(400), "No"],
      [
        "McpClientError, TimeoutError",
        mcp(new McpClientError.TimeoutError({ operation: "tools/call" })),
        "Yes timeout"
      ],
      ["McpClientError, HttpError 503", mcp(new McpClientError.HttpError({ status: 503 })), "Yes"],
      ["McpClientError, HttpError 404", mcp(new McpClientError.HttpError({ status: 404 })), "-"],
      ["McpClientError, ClosedError", mcp(new McpClientError.ClosedError({})), "-"]
    ] as const
  ) {
    it(`${name}: ${expected}`, () => assert.strictEqual(words(error), expected))
  }
})
