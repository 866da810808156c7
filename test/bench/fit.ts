/**
 * `effect-retry fit` on a log of a gigabyte, as it is installed: seconds, CPU time and memory of the process, for each format.
 *
 * `npm run build:lab && npx tsx test/bench/fit.ts`; with names of formats only those; with `--quick` on 64 MB. It fails above 60
 * seconds for a gigabyte, and above 200 MB of memory.
 */
import { spawnSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Chance } from "../../lab/src/simulator/chance.ts"
import { beginMillis, heads, writers } from "../../lab/test/fit/generated.ts"

const megabyte = 1024 * 1024
const size = (process.argv.includes("--quick") ? 64 : 1024) * megabyte
const mostSeconds = 60
const mostMegabytes = 200
const command = fileURLToPath(new URL("../../lab/dist/bin.js", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "effect-retry-fit-"))

/** A hundred requests a second, until the file is full. */
const writeLog = (format: keyof typeof writers, path: string): void => {
  const chance = new Chance(1, format)
  const file = openSync(path, "w")
  let bytes = writeSync(file, heads[format] ?? "")
  let nowMillis = beginMillis
  for (let call = 0; bytes < size;) {
    const lines: Array<string> = []
    for (; lines.length < 10_000; call++) {
      nowMillis += 10 * chance.exponential()
      const startMillis = nowMillis - 20 * chance.exponential()
      const status = chance.nextDoubleUnsafe() < 0.05 ? 503 : 200
      lines.push(writers[format]({ startMillis, endMillis: nowMillis, status, attempt: 1, call }))
    }
    bytes += writeSync(file, `${lines.join("\n")}\n`)
  }
  closeSync(file)
}

const tell = `process.on("exit", () => {
  const { maxRSS, systemCPUTime, userCPUTime } = process.resourceUsage()
  process.stderr.write("used " + maxRSS + " kB, " + (systemCPUTime + userCPUTime) + " us\\n")
})`

const measure = (format: keyof typeof writers): boolean => {
  const path = join(folder, `${format}.log`)
  writeLog(format, path)
  const since = process.hrtime.bigint()
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(tell)}`, command, "fit", path],
    { encoding: "utf8" }
  )
  const seconds = Number(process.hrtime.bigint() - since) / 1e9
  const [, kilobytes, micros] = /used (\d+) kB, (\d+) us/.exec(stderr) ?? []
  const megabytes = Number(kilobytes) / 1024
  const cpuSeconds = Number(micros) / 1e6
  const gigabytes = statSync(path).size / megabyte / 1024
  rmSync(path)
  const well = status === 0 && seconds / gigabytes < mostSeconds && megabytes < mostMegabytes
  console.log(
    `${stdout.split("\n")[0]}: ${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s of CPU time) for ${
      gigabytes.toFixed(2)
    } GB, ${megabytes.toFixed(0)} MB${well ? "" : `: too much\n${stderr}`}`
  )
  return well
}

try {
  const all = Object.keys(writers) as Array<keyof typeof writers>
  const asked = all.filter((format) => process.argv.includes(format))
  const formats = asked.length > 0 ? asked : all
  if (!formats.map(measure).every((well) => well)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}
