import { build } from "esbuild"
import { gzipSync } from "node:zlib"
const root = process.cwd()
const prog = process.argv[2] === "own" ?
  `import { withRetry } from "effect-retry/Attempt"
import * as Backoff from "effect-retry/Backoff"
import * as RetryClassifier from "effect-retry/RetryClassifier"
import * as RetryInfo from "effect-retry/RetryInfo"
import * as RetryPolicy from "effect-retry/RetryPolicy"
console.log(withRetry, Backoff.exponential, RetryPolicy.maxAttempts, RetryPolicy.whileRetryable, RetryClassifier.layer, RetryInfo.transient)` :
  `import { awsStandard, RetryQuota, withRetry } from "effect-retry"
console.log(awsStandard, RetryQuota.layer, withRetry)`
const r = await build({
  stdin: { contents: prog, resolveDir: root, loader: "js" },
  absWorkingDir: root,
  bundle: true,
  minify: true,
  format: "esm",
  platform: "node",
  target: "es2022",
  write: false,
  external: ["effect/*"],
  metafile: true,
  logLevel: "silent",
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: false } },
  alias: {
    "effect-retry": root + "/src/index.ts",
    "effect-retry/Attempt": root + "/src/Attempt.ts",
    "effect-retry/Backoff": root + "/src/Backoff.ts",
    "effect-retry/RetryClassifier": root + "/src/RetryClassifier.ts",
    "effect-retry/RetryInfo": root + "/src/RetryInfo.ts",
    "effect-retry/RetryPolicy": root + "/src/RetryPolicy.ts"
  }
})
const text = r.outputFiles[0]!.text
console.log(text.length, (gzipSync(text, { level: 9 }).length / 1024).toFixed(3))
import { writeFileSync } from "node:fs"
writeFileSync("/tmp/jb/out-" + (process.argv[2] ?? "std") + ".js", text)
