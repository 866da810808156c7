import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** What the compiler reports for the lines, each of which is a call with a policy. */
const compiled = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  const folder = fs.mkdtempSync(join(root, "test/.compiled-"))
  try {
    const program = `
import { attempt, awsAdaptive, awsStandard, RetryPolicy, Backoff, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

class NotFound { readonly _tag = "NotFound" }
declare const call: Effect.Effect<number, NotFound>

${lines.map((line, index) => `export const line${index} = ${line}`).join("\n")}
`
    fs.writeFileSync(join(folder, "program.ts"), program)
    fs.writeFileSync(join(folder, "tsconfig.json"), `{ "extends": "${root}/tsconfig.json", "include": ["program.ts"] }`)
    const manifest = fileURLToPath(import.meta.resolve("typescript/package.json"))
    const tsc = join(dirname(manifest), "bin/tsc")
    const { stdout } = spawnSync(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { encoding: "utf8" })
    const errors = stdout.split(/^(?=\S+\(\d+,\d+\): error)/m)
    const first = program.split("\n").findIndex((line) => line.startsWith("export const line0")) + 1
    return lines.map((_, index) => errors.find((error) => error.includes(`(${first + index},`)) ?? "")
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
}

describe("what the compiler says where attempt is forgotten", () => {
  const wrong = [
    "Effect.retry(call, awsStandard)",
    "call.pipe(Effect.retry(awsStandard))",
    "Effect.retry(call, awsAdaptive)",
    "Effect.retry(call, Backoff.fixed({ delay: 1 }).pipe(RetryPolicy.quotaGated({ cost: 5 })))",
    "Effect.retry(Effect.fail(\"text\"), awsStandard)",
    "Effect.retryOrElse(call, awsStandard, () => Effect.void)",
    "Stream.fromEffect(call).pipe(Stream.retry(awsStandard))"
  ]
  const options = "Effect.retry(call, { schedule: awsStandard, times: 2 })"
  const right = [
    options.replace("call", "attempt(call)"),
    "Effect.retry(attempt(call), awsStandard)",
    "call.pipe(attempt, Effect.retry(awsAdaptive))",
    "withRetry(call, awsStandard)",
    "Effect.retry(call, Backoff.fixed({ delay: 1 }))",
    "Effect.retry(call, Backoff.fixed({ delay: 1 }).pipe(RetryPolicy.honorRetryAfter))"
  ]
  const found = compiled([...wrong, ...right, options])

  for (const [index, line] of wrong.entries()) {
    it(`${line}: what to do, within six lines`, () => {
      const message = found[index]!.trimEnd().split("\n")
      assert.isAtMost(message.length, 6, found[index])
      assert.include(message.join("\n"), "wrap the call: Effect.retry(attempt(call), policy), or use withRetry")
    })
  }

  for (const [index, line] of right.entries()) {
    it(`${line}: nothing`, () => assert.strictEqual(found[wrong.length + index], ""))
  }

  it(`${options}: what docs/not-retried.md explains`, () => {
    const page = fs.readFileSync(join(root, "docs/not-retried.md"), "utf8")
    for (
      const words of ["Attempted<\"wrap the call: Effect.retry(attempt(call), policy), or use withRetry\">", options]
    ) {
      assert.include(page, words)
    }
    const words = "'schedule' does not exist in type"
    assert.include(found.at(-1), words)
    assert.include(page, words)
  })
})
