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
import { filesOf } from "../utils/files.ts"

type Profiles = Readonly<Record<string, Readonly<Record<string, string>>>>

interface Row {
  readonly name: string
  readonly text: string
  /** The profiles and their properties, or the malformed line. */
  readonly expected: Profiles | { readonly line: number; readonly problem: string }
}

const rows: ReadonlyArray<Row> = [
  { name: "nothing", text: "", expected: {} },
  { name: "blank lines only", text: " \n\t\n\r\n", expected: {} },
  { name: "comments only", text: "# a\n; b\n  # c", expected: {} },
  { name: "a profile without properties", text: "[profile a]", expected: { a: {} } },
  { name: "a profile with properties", text: "[profile a]\nx = 1\ny=2", expected: { a: { x: "1", y: "2" } } },
  { name: "two profiles", text: "[profile a]\nx = 1\n[profile b]\nx = 2", expected: { a: { x: "1" }, b: { x: "2" } } },
  { name: "the default profile", text: "[default]\nx = 1", expected: { default: { x: "1" } } },
  { name: "the default profile with a prefix", text: "[profile default]\nx = 1", expected: { default: { x: "1" } } },
  {
    name: "the default profile with a prefix, then without",
    text: "[profile default]\nx = 1\n[default]\nx = 2\ny = 2",
    expected: { default: { x: "1" } }
  },
  {
    name: "the default profile without a prefix, then with",
    text: "[default]\nx = 2\ny = 2\n[profile default]\nx = 1",
    expected: { default: { x: "1" } }
  },
  {
    name: "the default profile with, without and with a prefix",
    text: "[profile default]\nx = 1\n[default]\ny = 2\n[profile default]\nz = 3",
    expected: { default: { x: "1", z: "3" } }
  },
  {
    name: "an empty default profile with a prefix",
    text: "[default]\nx = 2\n[profile default]",
    expected: { default: {} }
  },
  { name: "an empty default profile", text: "[default]", expected: { default: {} } },
  {
    name: "the default profile twice",
    text: "[default]\nx = 1\n[default]\ny = 2",
    expected: { default: { x: "1", y: "2" } }
  },
  { name: "a space after the name", text: "[profile a ]\nx = 1", expected: { a: { x: "1" } } },
  { name: "a space before the prefix", text: "[ profile a]\nx = 1", expected: { a: { x: "1" } } },
  { name: "spaces everywhere in the header", text: "[  profile \t a\t ]  \nx = 1", expected: { a: { x: "1" } } },
  { name: "a tab between prefix and name", text: "[profile\ta]\nx = 1", expected: { a: { x: "1" } } },
  { name: "spaces around default", text: "[ default ]\nx = 1", expected: { default: { x: "1" } } },
  { name: "quotes around the name", text: "[profile \"a\"]\nx = 1\n[profile 'b']", expected: { a: { x: "1" }, b: {} } },
  { name: "a quote on one side", text: "[profile \"a]\nx = 1", expected: {} },
  { name: "no space after the prefix", text: "[profilea]\nx = 1", expected: {} },
  { name: "a prefix without a name", text: "[profile]\nx = 1\n[profile ]\nx = 1", expected: {} },
  { name: "a profile without a prefix", text: "[a]\nx = 1", expected: {} },
  { name: "a prefix in capitals", text: "[PROFILE a]\nx = 1", expected: {} },
  { name: "a name in capitals", text: "[profile A]\nx = 1", expected: { A: { x: "1" } } },
  { name: "all characters of names", text: "[profile aZ09-/.%@_:+]", expected: { "aZ09-/.%@_:+": {} } },
  { name: "other characters in a name", text: "[profile a!b]\nx = 1\n[profile b c]\nx = 1", expected: {} },
  { name: "an empty header", text: "[]\nx = 1", expected: {} },
  {
    name: "sections that are no profiles",
    text: "[profile a]\nx = 1\n[sso-session a]\nx = 2\n[services a]\nx = 3\n[preview]\nx = 4\n[profile b]\ny = 5",
    expected: { a: { x: "1" }, b: { y: "5" } }
  },
  {
    name: "a nested block in a section that is no profile",
    text: "[services s]\ndynamodb =\n  max_attempts = 9\n[profile a]\nx = 1",
    expected: { a: { x: "1" } }
  },
  {
    name: "the same profile again",
    text: "[profile a]\nx = 1\n[profile b]\n[profile a]\ny = 2",
    expected: { a: { x: "1", y: "2" }, b: {} }
  },
  { name: "the same property again", text: "[profile a]\nx = 1\nx = 2", expected: { a: { x: "2" } } },
  {
    name: "the same property in the same profile again",
    text: "[profile a]\nx = 1\n[profile a]\nx = 2",
    expected: { a: { x: "2" } }
  },
  {
    name: "the same property in another case",
    text: "[profile a]\nMax_Attempts = 1\nmax_attempts = 2",
    expected: { a: { max_attempts: "2" } }
  },
  {
    name: "a property in capitals",
    text: "[profile a]\nRETRY_MODE = Standard",
    expected: { a: { retry_mode: "Standard" } }
  },
  { name: "blanks around name and value", text: "[profile a]\nx \t=\t 1 \t", expected: { a: { x: "1" } } },
  { name: "an equals sign in the value", text: "[profile a]\nx = 1=2==", expected: { a: { x: "1=2==" } } },
  { name: "an empty value", text: "[profile a]\nx =\ny = 1", expected: { a: { x: "", y: "1" } } },
  { name: "an emptied value", text: "[profile a]\nx = 1\nx =", expected: { a: { x: "" } } },
  { name: "a name with a blank", text: "[profile a]\nx y = 1\nz = 2", expected: { a: { z: "2" } } },
  { name: "a name with a dot", text: "[profile a]\nx.y = 1", expected: { a: {} } },
  { name: "other alphabets", text: "[profile a]\nx = \u{1F602} \u00A0", expected: { a: { x: "\u{1F602} \u00A0" } } },
  { name: "CRLF", text: "[profile a]\r\nx = 1\r\n\r\ny =\r\n z = 2\r\n", expected: { a: { x: "1", y: "\nz = 2" } } },
  { name: "CR at the end of the file", text: "[profile a]\nx = 1\r", expected: { a: { x: "1" } } },
  { name: "a byte order mark", text: "\uFEFF[profile a]\nx = 1", expected: { a: { x: "1" } } },
  { name: "a byte order mark and CRLF", text: "\uFEFF[default]\r\nx = 1\r\n", expected: { default: { x: "1" } } },
  {
    name: "a comment after a value",
    text: "[profile a]\nx = 1 # c\ny = 2\t; c ; d",
    expected: { a: { x: "1", y: "2" } }
  },
  {
    name: "a comment without a blank before it",
    text: "[profile a]\nx = 1#c\ny = 2;c",
    expected: { a: { x: "1#c", y: "2;c" } }
  },
  { name: "a comment instead of a value", text: "[profile a]\nx = # 1\ny =# 1", expected: { a: { x: "", y: "# 1" } } },
  {
    name: "a comment after a header",
    text: "[profile a] # c\n[profile b]; c\n[profile c];",
    expected: { a: {}, b: {}, c: {} }
  },
  { name: "a comment with a header", text: "[profile a]\n#[profile b]\nx = 1", expected: { a: { x: "1" } } },
  { name: "an indented comment", text: "[profile a]\n  ; c\nx = 1\n  # c\ny = 2", expected: { a: { x: "1", y: "2" } } },
  { name: "a continued value", text: "[profile a]\nx = 1\n 2 \n\t3", expected: { a: { x: "1\n2\n3" } } },
  { name: "a comment in a continuation", text: "[profile a]\nx = 1\n 2 # c", expected: { a: { x: "1\n2 # c" } } },
  { name: "an indented header", text: "[profile a]\nx = 1\n [profile b]", expected: { a: { x: "1\n[profile b]" } } },
  {
    name: "a nested block",
    text: "[profile a]\ns3 =\n  max_attempts = 9\n  retry_mode = adaptive\nx = 1",
    expected: { a: { s3: "\nmax_attempts = 9\nretry_mode = adaptive", x: "1" } }
  },
  {
    name: "blank lines and comments in a nested block",
    text: "[profile a]\ns3 =\n y = 1\n\n # c\n z =\n",
    expected: { a: { s3: "\ny = 1\nz =" } }
  },
  { name: "a nested block after a comment", text: "[profile a]\ns3 = # c\n y = 1", expected: { a: { s3: "\ny = 1" } } },
  { name: "a nested name with a blank", text: "[profile a]\ns3 =\n y z = 1", expected: { a: { s3: "\ny z = 1" } } },
  {
    name: "names of prototypes",
    text: "[profile __proto__]\npolluted = 1\n[profile constructor]\n__proto__ = 2\nhasownproperty = 3",
    expected: JSON.parse(`{"__proto__":{"polluted":"1"},"constructor":{"__proto__":"2","hasownproperty":"3"}}`)
  },
  {
    name: "a header without its end",
    text: "[profile a",
    expected: { line: 1, problem: "expected a ']' that ends the section header" }
  },
  {
    name: "a header without its end, then another",
    text: "[profile a]\nx = 1\n[profile b\n[profile c]",
    expected: { line: 3, problem: "expected a ']' that ends the section header" }
  },
  {
    name: "a header that goes on",
    text: "[profile a] x",
    expected: { line: 1, problem: "expected a ']' that ends the section header" }
  },
  {
    name: "a header whose end is in a comment",
    text: "[profile a#]",
    expected: { line: 1, problem: "expected a ']' that ends the section header" }
  },
  {
    name: "a property without an equals sign",
    text: "[profile a]\n\nx : 1",
    expected: { line: 3, problem: "expected an '=' that defines a property" }
  },
  {
    name: "an equals sign in a comment",
    text: "[profile a]\nx # = 1",
    expected: { line: 2, problem: "expected an '=' that defines a property" }
  },
  {
    name: "a property without an equals sign in a section that is no profile",
    text: "[preview]\nx",
    expected: { line: 2, problem: "expected an '=' that defines a property" }
  },
  {
    name: "a property without a name",
    text: "[profile a]\n= 1",
    expected: { line: 2, problem: "expected the name of a property" }
  },
  {
    name: "a property before all sections",
    text: "# c\nx = 1\n[profile a]",
    expected: { line: 2, problem: "expected a section header before it" }
  },
  {
    name: "a continuation before all sections",
    text: " x",
    expected: { line: 1, problem: "expected a section header before it" }
  },
  {
    name: "a continuation of nothing",
    text: "[profile a]\n x = 1",
    expected: { line: 2, problem: "expected a property before the indented line" }
  },
  {
    name: "a continuation over a header",
    text: "[profile a]\nx = 1\n[profile a]\n y = 1",
    expected: { line: 4, problem: "expected a property before the indented line" }
  },
  {
    name: "a nested property without an equals sign",
    text: "[profile a]\ns3 =\n y\n",
    expected: { line: 3, problem: "expected an '=' that defines a nested property" }
  },
  {
    name: "a nested property without a name",
    text: "[profile a]\ns3 =\n = 1",
    expected: { line: 3, problem: "expected the name of a nested property" }
  },
  {
    name: "UTF-16",
    text: "\uFFFD\uFFFD[\0d\0]\0\n\0",
    expected: { line: 1, problem: "expected a section header before it" }
  },
  { name: "NUL in a value", text: "[profile a]\nx = 1\0", expected: { a: { x: "1\0" } } }
]

describe("SharedConfig", () => {
  describe("parse", () => {
    it.effect.each(rows)("vector: $name", ({ expected, text }) =>
      Effect.gen(function*() {
        if ("line" in expected && "problem" in expected) {
          const error = yield* Effect.flip(SharedConfig.parse(text, "/config"))
          assert.strictEqual(error._tag, "AwsConfigError")
          assert.strictEqual(error.at, `/config:${String(expected.line)}`)
          assert.strictEqual(error.problem, expected.problem)
          assert.strictEqual(error.value, text.split("\n")[Number(expected.line) - 1])
        } else {
          const profiles = yield* SharedConfig.parse(text, "/config")
          assert.deepStrictEqual(valuesOf(profiles), entriesOf(expected as Profiles))
        }
      }))

    it.effect("remembers the line that set a property", () =>
      Effect.gen(function*() {
        const profiles = yield* SharedConfig.parse(
          "\uFEFF# c\r\n[default]\r\n\r\nx = 1\r\nx = 2\r\n  3\r\n",
          "/config"
        )
        assert.deepStrictEqual(profiles.get("default")?.get("x"), { value: "2\n3", path: "/config", line: 5 })
      }))

    it.effect("says what is wrong, where, and shortens a long line", () =>
      Effect.gen(function*() {
        const short = yield* Effect.flip(SharedConfig.parse("[default]\nno \"equals\"\u001b", "/config"))
        assert.strictEqual(
          short.message,
          "/config:2: expected an '=' that defines a property, got \"no \\\"equals\\\"\\u001b\""
        )
        const long = yield* Effect.flip(SharedConfig.parse("x".repeat(1000), "/config"))
        assert.strictEqual(long.message, `/config:1: expected a section header before it, got "${"x".repeat(100)}"...`)
      }))

    it.effect("shows no line that may hold a secret", () =>
      Effect.gen(function*() {
        for (const name of ["aws_secret_access_key", "AWS_SESSION_TOKEN", "  sso_password"]) {
          const error = yield* Effect.flip(SharedConfig.parse(`[default]\n${name} s3cr3t-planted`, "/config"))
          assert.include(error.message, "/config:2")
          assert.notInclude(JSON.stringify(error) + error.message + error.value, "s3cr3t-planted")
        }
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
        Effect.gen(function*() {
          const begin = performance.now()
          yield* Effect.exit(SharedConfig.parse(text, "/config"))
          assert.isBelow(performance.now() - begin, 2000)
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
          assert.isTrue(text.replace(/^\uFEFF/, "").split("\n")[line - 1]?.includes(String(error.value)))
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
      "law: what was written is what is read, whatever line ends and blanks",
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
    const rows: ReadonlyArray<readonly [name: string, text: string, expected: Profiles]> = [
      ["a profile has no prefix", "[a]\nx = 1\n[b]\ny = 2", { a: { x: "1" }, b: { y: "2" } }],
      ["the default profile", "[default]\nx = 1", { default: { x: "1" } }],
      ["a prefix makes it no profile", "[profile a]\nx = 1\n[profile default]\nx = 2\n[b]", { b: {} }],
      ["blanks around the name", "[ \ta  ]\nx = 1", { a: { x: "1" } }],
      ["quotes around the name", "[\"a\"]\nx = 1", { a: { x: "1" } }],
      ["a name with a blank, and its properties", "[a b]\nx = 1\n[c]\ny = 2", { c: { y: "2" } }],
      ["names that begin like another section", "[sso-sessiona]\nx = 1\n[profilea]\nx = 2", {
        "sso-sessiona": { x: "1" },
        profilea: { x: "2" }
      }],
      ["a section of another type", "[sso-session a]\nx = 1\n[services a]\nx = 2", {}],
      ["comments, continuations, nested blocks", "[a] # c\nX = 1 ; c\n 2\ns3 =\n y = 3", {
        a: { x: "1\n2", s3: "\ny = 3" }
      }]
    ]
    it.effect.each(rows)("vector: %s", ([, text, expected]) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(
          valuesOf(yield* SharedConfig.parse(text, "/credentials", "credentials")),
          entriesOf(expected)
        )
      }))

    it.effect("an error shows no line of it", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(SharedConfig.parse("[a]\nplanted", "/credentials", "credentials"))
        assert.strictEqual(
          error.message,
          "/credentials:2: expected an '=' that defines a property, got \"a line that may hold a secret\""
        )
      }))
  })

  describe("load, both files", () => {
    // Config file, credentials file, what comes out: the rules of the tests that the SDKs share.
    const rows: ReadonlyArray<readonly [name: string, config: string, credentials: string, expected: Profiles]> = [
      ["a profile in the credentials file only", "", "[a]\nx = 1", { a: { x: "1" } }],
      ["a profile in both has the properties of both", "[profile a]\nx = 1", "[a]\ny = 2", { a: { x: "1", y: "2" } }],
      ["a property in both is that of the credentials file", "[profile a]\nx = 1", "[a]\nX = 2", { a: { x: "2" } }],
      ["a profile that neither names well", "[profile a b]\nx = 1", "[a b]\nx = 2", {}],
      [
        "the default profile that counts, and that of the credentials file",
        "[profile default]\nx = 1\n[default]\ny = 2\n[profile default]\nz = 3",
        "[default]\nw = 4",
        { default: { x: "1", z: "3", w: "4" } }
      ],
      ["the prefix is that of the config file", "[a]\nx = 1\n[profile b]", "[profile a]\nx = 2", { b: {} }]
    ]
    it.effect.each(rows)("vector: %s", ([, config, credentials, expected]) =>
      Effect.gen(function*() {
        const { profiles } = yield* SharedConfig.load({ configFile: "/config", credentialsFile: "/credentials" })
        assert.deepStrictEqual(valuesOf(profiles), entriesOf(expected))
      }).pipe(Effect.provide([
        filesOf({ "/config": config, "/credentials": credentials }).layer,
        environment({})
      ])))

    for (
      const [name, env, path, expected] of [
        ["HOME", { HOME: "/h" }, undefined, "/h/.aws/credentials"],
        ["USERPROFILE", { USERPROFILE: "/u" }, undefined, "/u/.aws/credentials"],
        ["the variable", { HOME: "/h", AWS_SHARED_CREDENTIALS_FILE: "/own" }, undefined, "/own"],
        ["the variable, in the home directory", { HOME: "/h", AWS_SHARED_CREDENTIALS_FILE: "~/c" }, undefined, "/h/c"],
        [
          "the default when the variable is blank",
          { HOME: "/h", AWS_SHARED_CREDENTIALS_FILE: " " },
          undefined,
          "/h/.aws/credentials"
        ],
        ["an option before the variable", { AWS_SHARED_CREDENTIALS_FILE: "/own" }, "/mine", "/mine"]
      ] as const
    ) {
      it.effect(`reads the credentials file of ${name}`, () =>
        Effect.gen(function*() {
          const { credentialsFile, profiles } = yield* SharedConfig.load({ credentialsFile: path })
          assert.strictEqual(credentialsFile, expected)
          assert.deepStrictEqual(profiles.get("default")?.get("x"), { value: "1", path: expected, line: 2 })
        }).pipe(Effect.provide([filesOf({ [expected]: "[default]\nx = 1" }).layer, environment(env)])))
    }
  })

  describe("load", () => {
    const text = "[default]\nx = 1\n"

    for (
      const [name, env, path, expected] of [
        ["HOME", { HOME: "/home/me" }, undefined, "/home/me/.aws/config"],
        ["USERPROFILE", { USERPROFILE: "C:\\Users\\me" }, undefined, "C:\\Users\\me/.aws/config"],
        ["HOME before USERPROFILE", { HOME: "/h", USERPROFILE: "/u" }, undefined, "/h/.aws/config"],
        ["USERPROFILE when HOME is empty", { HOME: "", USERPROFILE: "/u" }, undefined, "/u/.aws/config"],
        ["AWS_CONFIG_FILE", { HOME: "/h", AWS_CONFIG_FILE: "/etc/aws" }, undefined, "/etc/aws"],
        ["the default when AWS_CONFIG_FILE is empty", { HOME: "/h", AWS_CONFIG_FILE: "" }, undefined, "/h/.aws/config"],
        [
          "the default when AWS_CONFIG_FILE is blank",
          { HOME: "/h", AWS_CONFIG_FILE: " " },
          undefined,
          "/h/.aws/config"
        ],
        ["AWS_CONFIG_FILE in the home directory", { HOME: "/h", AWS_CONFIG_FILE: "~/c" }, undefined, "/h/c"],
        [
          "AWS_CONFIG_FILE in the home directory of Windows",
          { HOME: "/h", AWS_CONFIG_FILE: "~\\c" },
          undefined,
          "/h\\c"
        ],
        ["AWS_CONFIG_FILE that only begins with a tilde", { HOME: "/h", AWS_CONFIG_FILE: "~c" }, undefined, "~c"],
        ["a path before AWS_CONFIG_FILE", { HOME: "/h", AWS_CONFIG_FILE: "/etc/aws" }, "/own", "/own"],
        ["a path in the home directory", { HOME: "/h" }, "~/own", "/h/own"],
        ["AWS_CONFIG_FILE when the path is empty", { HOME: "/h", AWS_CONFIG_FILE: "/etc/aws" }, "", "/etc/aws"],
        ["the default when the path is blank", { HOME: "/h" }, " ", "/h/.aws/config"]
      ] as const
    ) {
      it.effect(`reads the file of ${name}`, () =>
        Effect.gen(function*() {
          const { configFile, profiles } = yield* SharedConfig.load({ configFile: path })
          assert.strictEqual(configFile, expected)
          assert.strictEqual(profiles.get("default")?.get("x")?.value, "1")
        }).pipe(Effect.provide([filesOf({ [expected]: text }).layer, environment(env)])))
    }

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

    it.effect("reads what is there: BOM, CRLF", () =>
      inDirectory((files, directory) =>
        Effect.gen(function*() {
          yield* files.writeFileString(`${directory}/config`, "\uFEFF[default]\r\nx = 1\r\n")
          const { profiles } = yield* SharedConfig.load({ configFile: `${directory}/config` })
          assert.strictEqual(profiles.get("default")?.get("x")?.value, "1")
        })
      ))

    it.effect("passes over a directory, and what is not there", () =>
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

const environment = (env: Record<string, string>): Layer.Layer<never> =>
  ConfigProvider.layer(ConfigProvider.fromEnv({ env, preserveEmptyStrings: true }))

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
