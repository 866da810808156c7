import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as SharedConfig from "effect-retry/aws/SharedConfig"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type Entry, filesOf } from "../utils/files.ts"

type Environment = Readonly<Record<string, string>>

const load = (env: Environment, entry: Entry = { fails: "NotFound" }) =>
  AwsRetryConfig.make().pipe(
    Effect.map(({ maxAttempts, mode }) => [mode.value, maxAttempts.value] as const),
    Effect.provide([
      filesOf({ "/config": entry }).layer,
      ConfigProvider.layer(ConfigProvider.fromEnv({ env: { AWS_CONFIG_FILE: "/config", ...env } }))
    ])
  )

const parsed = (text: string) =>
  Effect.map(SharedConfig.parse(text, "/config"), (profiles) =>
    Object.fromEntries(
      [...profiles].map(([name, properties]) => [
        name,
        Object.fromEntries([...properties].map(([key, { value }]) => [key, value]))
      ])
    ))

describe("settings and files of any content", () => {
  const garbage = [
    "1e3",
    "1.5",
    "3abc",
    "-1",
    "0",
    "12345678901234567890",
    "abc",
    "NaN",
    "Infinity",
    "0x10",
    "+3",
    "３",
    "1 2",
    "\u00003"
  ]
  for (const text of garbage) {
    it.effect(`AWS_MAX_ATTEMPTS=${JSON.stringify(text)} is an error that names variable and value`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(load({ AWS_MAX_ATTEMPTS: text }))
        assert.strictEqual(error._tag, "AwsConfigError")
        assert.include(error.message, "AWS_MAX_ATTEMPTS")
        assert.include(error.message, JSON.stringify(text))
      }))
  }
  for (const text of ["foo", "ADAPTIVE", "Standard", " standard", "standard ", "__proto__", "constructor"]) {
    it.effect(`AWS_RETRY_MODE=${JSON.stringify(text)} is an error that names variable and value`, () =>
      Effect.gen(function*() {
        const { message } = yield* Effect.flip(load({ AWS_RETRY_MODE: text }))
        assert.include(message, "AWS_RETRY_MODE")
        assert.include(message, JSON.stringify(text))
      }))
  }
  it.effect("an empty variable is not set", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* load({ AWS_MAX_ATTEMPTS: "", AWS_RETRY_MODE: "" }), ["standard", 3])
    }))

  const entries: ReadonlyArray<readonly [string, Entry]> = [
    ["missing", { fails: "NotFound" }],
    ["a directory", { type: "Directory" }],
    ["forbidden", { fails: "PermissionDenied" }],
    ["without the profile", "[profile other]\nmax_attempts = 7"]
  ]
  for (const [name, entry] of entries) {
    it.effect(`a config file that is ${name} leaves the defaults, with a line for debugging`, () =>
      Effect.gen(function*() {
        const lines: Array<string> = []
        const logger = Logger.make<unknown, void>(({ logLevel }) => {
          lines.push(logLevel)
        })
        const loaded = load({ AWS_PROFILE: "mine" }, entry).pipe(
          Effect.provide(Logger.layer([logger])),
          Effect.provideService(References.MinimumLogLevel, "All")
        )
        assert.deepStrictEqual(yield* loaded, ["standard", 3])
        assert.isAtLeast(lines.length, 1)
        assert.deepStrictEqual(new Set(lines), new Set(["Debug"]))
      }))
  }
  it.effect("so does a directory of a real file system", () =>
    Effect.gen(function*() {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
      const { profiles } = yield* SharedConfig.load({ configFile: folder }).pipe(
        Effect.ensuring(Effect.sync(() => fs.rmdirSync(folder)))
      )
      assert.strictEqual(profiles.size, 0)
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  const files: ReadonlyArray<readonly [string, string, unknown]> = [
    ["a byte order mark", "\uFEFF[profile a]\nx = 1", { a: { x: "1" } }],
    ["CRLF", "[profile a]\r\nx = 1\r\n", { a: { x: "1" } }],
    ["a blank at the end of the header", "[profile a ]\nx = 1", { a: { x: "1" } }],
    ["a tab in the header", "[profile\ta]\nx = 1", { a: { x: "1" } }],
    ["a key twice", "[profile a]\nx = 1\nx = 2", { a: { x: "2" } }],
    ["keys that differ in case", "[profile a]\nX = 1\nx = 2", { a: { x: "2" } }],
    ["a section twice", "[profile a]\nx = 1\n[profile a]\ny = 2", { a: { x: "1", y: "2" } }],
    ["[default] after [profile default]", "[profile default]\nx = 1\n[default]\nx = 2", { default: { x: "1" } }],
    ["[profile default] after [default]", "[default]\nx = 2\n[profile default]\nx = 1", { default: { x: "1" } }],
    ["an empty value", "[profile a]\nx =\ny = 1", { a: { x: "", y: "1" } }],
    ["comments after values", "[profile a]\nx = 1 # c\ny = 2 ; c\nz = 3#c", { a: { x: "1", y: "2", z: "3#c" } }],
    ["a nested block", "[profile a]\ns3 =\n  max_attempts = 9\nx = 1", { a: { s3: "\nmax_attempts = 9", x: "1" } }],
    ["a NUL byte", "[profile a]\nx = 1\u0000", { a: { x: "1\u0000" } }]
  ]
  for (const [name, text, expected] of files) {
    it.effect(`a config file with ${name} is read by AWS's rules`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* parsed(text), expected)
      }))
  }
  const malformed: ReadonlyArray<readonly [string, string, string]> = [
    ["an unclosed header", "[profile a\nx = 1", "/config:1"],
    ["a key without an equals sign", "[profile a]\nx", "/config:2"],
    ["a key before any header", "x = 1", "/config:1"],
    ["UTF-16", Buffer.from("[profile a]\nx = 1", "utf16le").toString("utf8"), "/config:1"]
  ]
  for (const [name, text, at] of malformed) {
    it.effect(`a config file with ${name} is an error that names the line`, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* Effect.flip(parsed(text))).at, at)
      }))
  }
  it.effect("four kilobytes of random bytes are read, or refused with the typed error", () =>
    Effect.gen(function*() {
      let state = 1
      for (let file = 0; file < 15; file++) {
        const bytes = Uint8Array.from({ length: 4096 }, () => (state = Math.imul(state, 48271) >>> 0) >>> 16)
        const text = new TextDecoder().decode(bytes)
        const tag = yield* Effect.match(parsed(text), { onSuccess: () => "read", onFailure: ({ _tag }) => _tag })
        assert.include(["read", "AwsConfigError"], tag)
      }
    }))

  it.effect("ten megabytes are refused unread, and a file of blanks takes no quadratic time", () =>
    Effect.gen(function*() {
      const { layer, reads } = filesOf({ "/config": " ".repeat(10_485_760) })
      const error = yield* Effect.flip(Effect.provide(SharedConfig.load({ configFile: "/config" }), layer))
      assert.include(error.message, "at most 1048576 bytes")
      assert.deepStrictEqual(reads, [])
      assert.include((yield* Effect.flip(parsed("#".repeat(1_048_577)))).message, "at most 1048576 bytes")
      // A quadratic reader would take minutes.
      yield* parsed(`[profile a]\nx = 1${" ".repeat(200_000)}2`)
      yield* parsed(`[profile ${" ".repeat(1_000_000)}a]`)
    }))
})
