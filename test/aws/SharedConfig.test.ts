import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as SharedConfig from "effect-retry/aws/SharedConfig"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import { inspect } from "node:util"
import { secondsOf } from "../utils/cpu.ts"
import { filesOf } from "../utils/files.ts"
import { both, config, credentials, locations, type Missing, type Profiles } from "../vectors/sharedConfig.ts"

/** How the error says what is missing. */
const problems: Readonly<Record<Missing, string>> = {
  "]": "expected a ']' that ends the section header",
  "=": "expected an '=' that defines a property",
  name: "expected the name of a property",
  section: "expected a section header before it",
  property: "expected a property before the indented line",
  "nested =": "expected an '=' that defines a nested property",
  "nested name": "expected the name of a nested property"
}

describe("SharedConfig", () => {
  describe("parse", () => {
    it.effect.each(config)("vector: $name", ({ error: expected, profiles, text }) =>
      Effect.gen(function*() {
        if (expected === undefined) {
          assert.deepStrictEqual(valuesOf(yield* SharedConfig.parse(text, "/config")), entriesOf(profiles))
          return
        }
        const error = yield* Effect.flip(SharedConfig.parse(text, "/config"))
        assert.strictEqual(error._tag, "AwsConfigError")
        assert.strictEqual(error.at, `/config:${expected.line}`)
        assert.strictEqual(error.problem, problems[expected.missing])
        assert.strictEqual(error.value, undefined)
      }))

    it.effect("remembers the line that set a property", () =>
      Effect.gen(function*() {
        const profiles = yield* SharedConfig.parse(
          "\uFEFF# c\r\n[default]\r\n\r\nx = 1\r\nx = 2\r\n  3\r\n",
          "/config"
        )
        assert.deepStrictEqual(profiles.get("default")?.get("x"), { value: "2\n3", path: "/config", line: 5 })
      }))

    it.effect("says what is wrong, and where", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(SharedConfig.parse("[default]\nno equals", "/config"))
        assert.strictEqual(error.message, "/config:2: expected an '=' that defines a property")
      }))

    it.effect.each<[file: SharedConfig.Kind, text: string]>([
      ["config", "[default]\naws_secret_access_key =\ns3cr3t/planted"],
      ["config", "[default]\naws_secret_access_key s3cr3t/planted"],
      ["config", "[default]\naws_secret_access_key =\n  s3cr3t/planted"],
      ["config", "[default]\ncredential_process\\\n/bin/get --key s3cr3t/planted"],
      ["config", "s3cr3t/planted"],
      ["config", "[s3cr3t/planted"],
      ["config", "[default]\n= s3cr3t/planted"],
      ["credentials", "[a]\ns3cr3t/planted"]
    ])("shows nothing of a malformed file: %s %j", ([kind, text]) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(SharedConfig.parse(text, "/file", kind))
        assert.match(error.message, /^\/file:\d+: expected /)
        assert.notInclude(inspect(error) + JSON.stringify(error) + error.message, "s3cr3t")
      }))

    it.effect("pollutes no prototype", () =>
      Effect.gen(function*() {
        const text =
          "[profile __proto__]\npolluted = 1\n[__proto__]\npolluted = 1\n[profile a]\n__proto__ =\n polluted = 1\n"
        const profiles = yield* SharedConfig.parse(text, "/config")
        assert.isUndefined(({} as { polluted?: unknown }).polluted)
        assert.isUndefined(profiles.get("toString"))
        assert.isUndefined(profiles.get("a")?.get("constructor"))
      }))

    it.effect("takes 1,048,576 characters, and refuses one more", () =>
      Effect.gen(function*() {
        const text = "[default]\nx = 1\n".padEnd(1_048_576, "#")
        assert.strictEqual((yield* SharedConfig.parse(text, "/config")).get("default")?.get("x")?.value, "1")
        const error = yield* Effect.flip(SharedConfig.parse(`${text}#`, "/config"))
        assert.strictEqual(error.message, "/config: a config file has at most 1048576 bytes, got 1048577")
      }))

    const size = 1_048_576
    const filled = (start: string, unit: string) => start + unit.repeat(Math.floor((size - start.length) / unit.length))
    for (
      const [name, text] of [
        ["lines", filled("[default]\n", "x = 1\n")],
        ["newlines", filled("", "\n")],
        ["headers", filled("", "[profile a]\n")],
        ["continuations", filled("[default]\nx = 1\n", " 2\n")],
        ["nested properties", filled("[default]\nx =\n", " y = 2\n")],
        ["blanks in a value", `${filled("[default]\nx = 1", " ").slice(0, -1)}2`],
        ["blanks in a header", `${filled("[profile", " ").slice(0, -2)}a]`],
        ["blanks in a continuation", `${filled("[default]\nx = 1\n ", " ").slice(0, -1)}2`],
        ["brackets", filled("", "[")],
        ["comment signs", filled("[default]\nx = ", "#;")],
        ["quotes in a name", `${filled("[profile ", "\"").slice(0, -1)}]`],
        ["a name", `${filled("[profile ", "a").slice(0, -1)}]`],
        ["bytes that mean nothing", filled("", "\0\uFFFD")]
      ] as const
    ) {
      it.effect(`takes linear time: a megabyte of ${name}`, () =>
        Effect.sync(() => {
          assert.isBelow(secondsOf(() => Effect.runSyncExit(SharedConfig.parse(text, "/config"))), 2)
        }))
    }

    it.effect.prop(
      "law: fails with nothing but the typed error, and names a line that exists",
      [Schema.Array(Schema.Literals([
        ..."[]=#;\n\r\t \0\"'a\uFEFF\u{1F602}",
        "profile ",
        "default",
        "x = 1\n",
        "\n[profile a]\n",
        "__proto__"
      ]))],
      ([parts]) =>
        Effect.gen(function*() {
          const text = parts.join("")
          const error = yield* SharedConfig.parse(text, "/config").pipe(
            Effect.flip,
            Effect.orElseSucceed(() => undefined)
          )
          if (error === undefined) return
          const line = Number(/^\/config:(\d+)$/.exec(error.at)?.[1])
          assert.isTrue(line >= 1 && line <= text.split("\n").length)
        })
    )

    it.effect.prop(
      "law: random bytes fail with nothing but the typed error",
      [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })))],
      ([bytes]) =>
        Effect.gen(function*() {
          const text = new TextDecoder().decode(Uint8Array.from(bytes))
          const exit = yield* SharedConfig.parse(text, "/config").pipe(
            Effect.catchTag("AwsConfigError", () => Effect.succeed("refused")),
            Effect.exit
          )
          assert.strictEqual(exit._tag, "Success")
        })
    )

    const Name = Schema.String.check(Schema.isPattern(/^[a-z0-9_-]{1,12}$/))
    it.effect.prop(
      "law: what was written is what is read, whatever the line ends and blanks",
      [
        Schema.Array(Schema.Tuple([Name, Name, Schema.Int])),
        Schema.Literals(["\n", "\r\n", "\n\n", " # c\n"]),
        Schema.Literals(["", " ", "\t "])
      ],
      ([properties, end, blank]) =>
        Effect.gen(function*() {
          const text = properties
            .map(([profile, key, value]) =>
              `[${blank}profile ${blank}${profile}${blank}]${end}${key.toUpperCase()}${blank}=${blank}${value}${blank}${end}`
            )
            .join("")
          const expected = new Map<string, Map<string, string>>()
          for (const [profile, key, value] of properties) {
            expected.set(profile, (expected.get(profile) ?? new Map<string, string>()).set(key, String(value)))
          }
          assert.deepStrictEqual(valuesOf(yield* SharedConfig.parse(text, "/config")), expected)
        })
    )
  })

  describe("parse, the credentials file", () => {
    it.effect.each(credentials)("vector: $name", ({ profiles, text }) =>
      Effect.gen(function*() {
        const parsed = yield* SharedConfig.parse(text, "/credentials", "credentials")
        assert.deepStrictEqual(valuesOf(parsed), entriesOf(profiles))
      }))
  })

  describe("load, both files", () => {
    it.effect.each(both)("vector: $name", ({ config, credentials, profiles: expected }) =>
      Effect.gen(function*() {
        const { profiles } = yield* SharedConfig.load({ configFile: "/config", credentialsFile: "/credentials" })
        assert.deepStrictEqual(valuesOf(profiles), entriesOf(expected))
      }).pipe(Effect.provide([
        filesOf({ "/config": config, "/credentials": credentials }).layer,
        environment({})
      ])))

    it.effect.each(locations.credentials)(
      "vector: reads the credentials file of $name",
      ({ env, option, path }) =>
        Effect.gen(function*() {
          const { credentialsFile, profiles } = yield* SharedConfig.load({ credentialsFile: option })
          assert.strictEqual(credentialsFile, path)
          assert.deepStrictEqual(profiles.get("default")?.get("x"), { value: "1", path, line: 2 })
        }).pipe(Effect.provide([filesOf({ [path]: "[default]\nx = 1" }).layer, environment(env)]))
    )
  })

  describe("load", () => {
    it.effect.each(locations.config)(
      "vector: reads the file of $name",
      ({ env, option, path }) =>
        Effect.gen(function*() {
          const { configFile, profiles } = yield* SharedConfig.load({ configFile: option })
          assert.strictEqual(configFile, path)
          assert.strictEqual(profiles.get("default")?.get("x")?.value, "1")
        }).pipe(Effect.provide([filesOf({ [path]: "[default]\nx = 1\n" }).layer, environment(env)]))
    )

    for (
      const [name, entry, logged] of [
        [
          "missing",
          { fails: "NotFound" },
          "AWS config file /config is skipped: NotFound: FileSystem.stat (/config)"
        ],
        ["a directory", { type: "Directory" }, "AWS config file /config is skipped: it is not a file but a Directory"],
        [
          "a device",
          { type: "CharacterDevice" },
          "AWS config file /config is skipped: it is not a file but a CharacterDevice"
        ],
        [
          "forbidden",
          { fails: "PermissionDenied" },
          "AWS config file /config is skipped: PermissionDenied: FileSystem.readFile (/config)"
        ],
        [
          "broken",
          { fails: "Unknown" },
          "AWS config file /config is skipped: Unknown: FileSystem.readFile (/config)"
        ]
      ] as const
    ) {
      it.effect(`has no profiles when the file is ${name}, and logs it for debugging`, () =>
        Effect.gen(function*() {
          const { result, lines } = yield* withLog(
            SharedConfig.load({ configFile: "/config", credentialsFile: "/credentials" })
          )
          assert.deepStrictEqual(result.profiles, new Map())
          assert.deepStrictEqual(lines, [`Debug: ${logged}`])
        }).pipe(Effect.provide([filesOf({ "/config": entry, "/credentials": "" }).layer, environment({})])))
    }

    it.effect("has no profiles when there is no home directory, and logs it for debugging", () =>
      Effect.gen(function*() {
        const { result, lines } = yield* withLog(SharedConfig.load())
        assert.deepStrictEqual(result, { configFile: undefined, credentialsFile: undefined, profiles: new Map() })
        assert.deepStrictEqual(lines, [
          "Debug: no AWS config file: neither HOME nor USERPROFILE names a home directory",
          "Debug: no AWS credentials file: neither HOME nor USERPROFILE names a home directory"
        ])
      }).pipe(Effect.provide([filesOf({}).layer, environment({})])))

    it.effect("refuses a file of 10 MB without reading it, with its name and size", () => {
      const { layer, reads } = filesOf({ "/config": "#".repeat(10_485_760) })
      return Effect.gen(function*() {
        const error = yield* Effect.flip(SharedConfig.load({ configFile: "/config", credentialsFile: "/credentials" }))
        assert.strictEqual(error.message, "/config: a config file has at most 1048576 bytes, got 10485760")
        assert.deepStrictEqual(reads, [])
      }).pipe(Effect.provide([layer, environment({})]))
    })

    it.effect("fails with a ConfigError when the provider fails", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(SharedConfig.load())
        assert.strictEqual(error._tag, "ConfigError")
      }).pipe(Effect.provide([
        filesOf({}).layer,
        ConfigProvider.layer(
          ConfigProvider.make(() => Effect.fail(new ConfigProvider.SourceError({ message: "no connection" })))
        )
      ])))
  })

  describe("load from a disk", () => {
    const inDirectory = <A, E>(
      test: (
        files: FileSystem.FileSystem,
        directory: string
      ) => Effect.Effect<A, E, FileSystem.FileSystem>
    ) =>
      Effect.gen(function*() {
        const files = yield* FileSystem.FileSystem
        return yield* test(files, yield* files.makeTempDirectoryScoped())
      }).pipe(Effect.scoped, Effect.provide([NodeFileSystem.layer, environment({})]))

    it.effect("reads the file as it is: BOM, CRLF", () =>
      inDirectory((files, directory) =>
        Effect.gen(function*() {
          yield* files.writeFileString(`${directory}/config`, "\uFEFF[default]\r\nx = 1\r\n")
          const { profiles } = yield* SharedConfig.load({ configFile: `${directory}/config` })
          assert.strictEqual(profiles.get("default")?.get("x")?.value, "1")
        })
      ))

    it.effect("skips a directory, and a missing file", () =>
      inDirectory((_, directory) =>
        Effect.gen(function*() {
          assert.strictEqual((yield* SharedConfig.load({ configFile: directory })).profiles.size, 0)
          assert.strictEqual((yield* SharedConfig.load({ configFile: `${directory}/config` })).profiles.size, 0)
          assert.strictEqual((yield* SharedConfig.load({ configFile: `${directory}/\0` })).profiles.size, 0)
        })
      ))

    it.effect("refuses UTF-16 and random bytes with a typed error", () =>
      inDirectory((files, directory) =>
        Effect.gen(function*() {
          const path = `${directory}/config`
          const noise = Uint8Array.from({ length: 4096 }, (_, index) => (index * 167 + (index >> 3)) % 256)
          for (const bytes of [Buffer.from("\uFEFF[default]\nx = 1\n", "utf16le"), noise]) {
            yield* files.writeFile(path, bytes)
            const error = yield* Effect.flip(SharedConfig.load({ configFile: path }))
            assert.strictEqual(error._tag === "AwsConfigError" ? error.at : error, `${path}:1`)
          }
        })
      ))

    it.effect("refuses 10 MB", () =>
      inDirectory((files, directory) =>
        Effect.gen(function*() {
          const path = `${directory}/config`
          yield* files.writeFile(path, new Uint8Array(10_485_760))
          const error = yield* Effect.flip(SharedConfig.load({ configFile: path }))
          assert.strictEqual(error.message, `${path}: a config file has at most 1048576 bytes, got 10485760`)
        })
      ))
  })
})

const environment = (env: Readonly<Record<string, string>>): Layer.Layer<never> =>
  ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...env }, preserveEmptyStrings: true }))

const valuesOf = (profiles: ReadonlyMap<string, SharedConfig.Profile>) =>
  new Map(Array.from(profiles, ([name, properties]) => [
    name,
    new Map(Array.from(properties, ([key, { value }]) => [key, value]))
  ]))

const entriesOf = (profiles: Profiles) =>
  new Map(Object.entries(profiles).map(([name, properties]) => [name, new Map(Object.entries(properties))]))

/** Runs an effect, with what it logs. */
const withLog = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel}: ${String(message)}`))
  return Effect.map(effect, (result) => ({ result, lines })).pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "Debug")
  )
}
