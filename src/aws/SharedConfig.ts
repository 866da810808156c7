/**
 * The config file and the credentials file that the AWS SDKs share, read by their rules.
 *
 * **Details**
 *
 * | in the config file | rule |
 * | --- | --- |
 * | `[profile foo]`, `[ profile foo ]`, `[profile "foo"]` | the profile `foo`; blanks and quotes are not part of its
 * name |
 * | `[default]` | the default profile, unless there is a `[profile default]` before or after it |
 * | `[foo]`, `[sso-session foo]`, `[services foo]`, `[profile a b]` | not a profile: read, checked and dropped |
 * | the same profile again | one profile with the properties of both |
 * | `Name = value` | names become lowercase; a later property replaces one of the same name |
 * | `name =` | an empty value |
 * | an indented line | continues the previous value, on a new line, comment and all |
 * | indented lines after `s3 =` | a nested block: the value of `s3`, never properties of the profile |
 * | `#` or `;` first in a line | a comment, indented or not |
 * | `#` or `;` after a blank, or anywhere in a header | a comment up to the end of the line |
 * | byte order mark, CRLF | not part of the text |
 * | no `]`, no `=`, no name, no section before it | malformed: the file is rejected, with the number of the line |
 *
 * In the credentials file a profile has no prefix: `[foo]` is the profile `foo`, and `[profile foo]` is not a profile.
 * The rest is the same. A profile in both files has the properties of both; if both set one, the credentials file wins,
 * as in botocore and Rust (JavaScript prefers the config file).
 *
 * These are the rules of the parser tests that the AWS SDKs share, except for quotes and indented comments, which those
 * tests do not cover: botocore and JavaScript read them as here, Rust does not.
 *
 * The parser is the library's own, since no package on npm follows these rules: `ini` splits names at dots, makes
 * nested blocks properties of their profile, turns `true` into a boolean; the SDK's `@smithy/shared-ini-file-loader`
 * agrees with 36 of the 65 shared tests (it loses `[profile foo ]` and keeps the case of names); neither knows line
 * numbers, without which no error can say where it is. This one takes time linear in the size of the file.
 *
 * @since 0.1.0
 */

import * as ByteSize from "effect/ByteSize"
import type * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { checksOf } from "../internal/checks.ts"
import { render } from "../internal/format.ts"
import { inCode, validOptions } from "../internal/options.ts"
import * as Files from "./internal/configFiles.ts"

/**
 * An unusable value in the environment or a shared file: where it is, and what is wrong with it. It shows nothing of a
 * file, where any line may hold a secret.
 *
 * @category errors
 * @since 0.1.0
 */
export class AwsConfigError extends Data.TaggedError("AwsConfigError")<{
  /** A variable, such as `"AWS_MAX_ATTEMPTS"`; a line, such as `"/home/me/.aws/config:7"`; or a file. */
  readonly at: string
  /** The value of a variable, the bytes of a file that is too large; `undefined` for a line. */
  readonly value: string | number | undefined
  /** What is wrong with it, such as `"max_attempts must be a whole number of at least 1"`. */
  readonly problem: string
}> {
  override get message(): string {
    return `${this.at}: ${this.problem}${this.value === undefined ? "" : `, got ${render(this.value)}`}`
  }
}

/**
 * Which of the two files it is: they differ in their section headers.
 *
 * @category models
 * @since 0.1.0
 */
export type { Kind } from "./internal/configFiles.ts"

/**
 * A property of a profile: its value, the file that sets it, and its line, from 1.
 *
 * @category models
 * @since 0.1.0
 */
export type { Property } from "./internal/configFiles.ts"

/**
 * The properties of a profile, by lowercase name.
 *
 * @category models
 * @since 0.1.0
 */
export type { Profile } from "./internal/configFiles.ts"

/**
 * Profiles by name: empty if there is no file.
 *
 * @category models
 * @since 0.1.0
 */
export type Profiles = ReadonlyMap<string, Files.Profile>

/**
 * The two files, read together.
 *
 * @category models
 * @since 0.1.0
 */
export interface SharedConfig {
  /** The expected path of the config file; `undefined` if neither a path nor a home directory is known. */
  readonly configFile: string | undefined
  /** The expected path of the credentials file, likewise. */
  readonly credentialsFile: string | undefined
  readonly profiles: Profiles
}

/**
 * The paths of the files. An empty or blank one counts as not set.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The path of the config file. Instead of `AWS_CONFIG_FILE`; an empty string counts as not set. Default
   * `"~/.aws/config"`.
   */
  readonly configFile?: string | undefined
  /**
   * The path of the credentials file. Instead of `AWS_SHARED_CREDENTIALS_FILE`; an empty string counts as not set.
   * Default `"~/.aws/credentials"`.
   */
  readonly credentialsFile?: string | undefined
}

/** The largest file read, in bytes: people with hundreds of accounts have a few hundred thousand. */
const maxSize = 1_048_576

const tooLarge = (path: string, size: number, kind: Files.Kind) =>
  Effect.fail(new AwsConfigError({ at: path, value: size, problem: `a ${kind} file has at most ${maxSize} bytes` }))

/**
 * Parses the text of a file. Fails with an `AwsConfigError` that names the first malformed line, or the length of a
 * text of more than 1,048,576 characters. The error shows nothing of the text. Never throws.
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse = (
  text: string,
  /** The file, as named in errors. */
  path: string,
  /** Which file it is. Default `"config"`. */
  kind: Files.Kind = "config"
): Effect.Effect<Profiles, AwsConfigError> =>
  text.length > maxSize ? tooLarge(path, text.length, kind) : Effect.try({
    try: () => {
      let number = 0
      const reader = new Files.Reader(path, kind, (problem) => {
        throw new AwsConfigError({ at: `${path}:${number}`, value: undefined, problem })
      })
      const lines = (text.startsWith("\uFEFF") ? text.slice(1) : text).split("\n")
      for (const line of lines) reader.read(line.endsWith("\r") ? line.slice(0, -1) : line, ++number)
      return reader.finish()
    },
    catch: (error) => error as AwsConfigError
  })

const variables = { config: "AWS_CONFIG_FILE", credentials: "AWS_SHARED_CREDENTIALS_FILE" }

/** The path of a file: as given, else from the variable, else in the home directory. */
const locate = Effect.fnUntraced(function*(kind: Files.Kind, option: string | undefined) {
  const path = Files.unlessBlank(option) ?? (yield* Files.variable(variables[kind])) ?? `~/.aws/${kind}`
  if (!/^~[/\\]/.test(path)) return path
  const directory = (yield* Files.variable("HOME")) ?? (yield* Files.variable("USERPROFILE"))
  if (directory !== undefined) return directory + path.slice(1)
  yield* Effect.logDebug(`no AWS ${kind} file: neither HOME nor USERPROFILE names a home directory`)
  return undefined
})

const skipped = (path: string, kind: Files.Kind, why: string) =>
  Effect.as(Effect.logDebug(`AWS ${kind} file ${path} is skipped: ${why}`), "")

/** The text of a file, or none if there is no readable file. */
const read = (path: string, kind: Files.Kind) =>
  Effect.gen(function*() {
    const files = yield* FileSystem.FileSystem
    const { size, type } = yield* files.stat(path)
    if (type !== "File") return yield* skipped(path, kind, `it is not a file but a ${type}`)
    const bytes = Number(ByteSize.toBigInt(size))
    return bytes > maxSize ? yield* tooLarge(path, bytes, kind) : yield* files.readFileString(path)
  }).pipe(
    Effect.catchTag("PlatformError", ({ message }) => skipped(path, kind, message))
  )

const loaded = Effect.fnUntraced(function*(kind: Files.Kind, option: string | undefined) {
  const path = yield* locate(kind, option)
  const profiles: Profiles = path === undefined ? new Map() : yield* parse(yield* read(path, kind), path, kind)
  return { path, profiles }
})

/** The profiles of both, with the properties of both: if both set one, the second wins. */
const merged = (first: Profiles, second: Profiles): Profiles => {
  const all = new Map(first)
  for (const [name, properties] of second) all.set(name, new Map([...(first.get(name) ?? []), ...properties]))
  return all
}

/**
 * Reads the config file and the credentials file.
 *
 * **Details**
 *
 * The config file is `configFile`, else the path in `AWS_CONFIG_FILE`, else `~/.aws/config`. The credentials file is
 * `credentialsFile`, else the path in `AWS_SHARED_CREDENTIALS_FILE`, else `~/.aws/credentials`. A leading `~` is the
 * home directory: `HOME`, else `USERPROFILE`. Variables are read through `Config`, so a test can provide its own.
 *
 * A file that is missing, is a directory or a device, or cannot be read, counts as empty: it is common not to have one.
 * It is logged at Debug.
 *
 * Fails with an `AwsConfigError` for a malformed line or a file of more than 1,048,576 bytes, which is not read, and
 * with a `ConfigError` if the `ConfigProvider` fails.
 *
 * **Gotchas**
 *
 * The properties include those of the credentials file, secrets too: do not log them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const load = Effect.fnUntraced(function*(
  options: Options = {}
): Effect.fn.Return<SharedConfig, AwsConfigError | Config.ConfigError, FileSystem.FileSystem> {
  validOptions(checksOf("SharedConfig.load", options), { configFile: inCode, credentialsFile: inCode }, options)
  const config = yield* loaded("config", options.configFile)
  const credentials = yield* loaded("credentials", options.credentialsFile)
  return {
    configFile: config.path,
    credentialsFile: credentials.path,
    profiles: merged(config.profiles, credentials.profiles)
  }
})
