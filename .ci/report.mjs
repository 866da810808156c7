// What the reports of the tests say. A run that left none counts as one failure.

import { readFileSync } from "node:fs"

const none = { files: [], unhandled: ["no report"] }

const errorsOf = ({ errors, tests }) => [...errors, ...tests.flatMap((test) => test.errors)]

/** A server or a program that did not start or end in time, or a port in use. A failed assertion is none, wherever it stands. */
const isEnvironmental = (error) =>
  !error.includes("AssertionError") &&
  /^PeerError: |\blisten EADDRINUSE\b|\bspawn(Sync)? .*\bETIMEDOUT\b|\nkilled: true/.test(error)

const isReport = (value) =>
  Array.isArray(value?.unhandled) && Array.isArray(value.files) &&
  value.files.every(({ errors, tests }) => Array.isArray(errors) && Array.isArray(tests))

/** The report in a file, if there is one. */
export const reportAt = (file) => {
  try {
    const value = JSON.parse(readFileSync(file, "utf8"))
    return isReport(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The files that failed for their environment and for nothing else, each with its first error. */
export const environmental = ({ files } = none) =>
  files.filter((file) => errorsOf(file).length > 0 && errorsOf(file).every(isEnvironmental))
    .map((file) => ({ file: file.file, error: errorsOf(file)[0] }))

/** The report, in which files that ran again have their second result, and what the second run left unhandled. */
export const merged = (report, { files, unhandled } = none) => ({
  unhandled: [...report.unhandled, ...unhandled],
  files: [...new Map([...report.files, ...files].map((file) => [file.file, file])).values()]
})

/** The tests that passed, and that were skipped or never ran; the tests, hooks, files and promises that failed. */
export const counted = ({ files, unhandled } = none) => {
  const tests = files.flatMap((file) => file.tests)
  const inState = (state) => tests.filter((test) => test.state === state).length
  const broken = files.flatMap((file) => file.errors).length + unhandled.length
  const skipped = inState("skipped") + inState("pending")
  return { passed: inState("passed"), failed: inState("failed") + broken, skipped }
}

/** What a run of tests came to: it is ok when tests passed, and nothing else happened. */
export const resultOf = (report) => {
  if (report === undefined) return "RED: no report"
  const { failed, passed, skipped } = counted(report)
  if (passed > 0 && failed + skipped === 0) return "ok"
  return `RED: ${passed} passed, ${failed} failed, ${skipped} skipped`
}

/** Everything that failed, a line each: the file, the test, and the first line of its first error. */
export const failures = ({ files, unhandled } = none) => [
  ...files.flatMap(({ errors, file, tests }) => [
    ...errors.map((error) => [file, "", error]),
    ...tests.filter(({ state }) => state === "failed").map((test) => [file, test.name, test.errors[0] ?? ""])
  ]),
  ...unhandled.map((error) => ["unhandled", "", error])
].map(([file, name, error]) => `${file} ${name}\n  ${error.split("\n", 1)[0].slice(0, 300)}`)
