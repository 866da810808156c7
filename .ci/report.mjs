// What the reports of the tests say. A run that left none counts as one failure.

const none = { files: [], unhandled: ["no report"] }

const errorsOf = ({ errors, tests }) => [...errors, ...tests.flatMap((test) => test.errors)]

/** A server or a program that did not start or end in time, or a port in use. A failed assertion is none, wherever it stands. */
const isEnvironmental = (error) =>
  !error.includes("AssertionError") &&
  /^PeerError: |\blisten EADDRINUSE\b|\bspawn(Sync)? .*\bETIMEDOUT\b|\nkilled: true/.test(error)

/** The files that failed for their environment and for nothing else, each with its first error. */
export const environmental = ({ files } = none) =>
  files.filter((file) => errorsOf(file).length > 0 && errorsOf(file).every(isEnvironmental))
    .map((file) => ({ file: file.file, error: errorsOf(file)[0] }))

/** The report, in which files that ran again have their second result, and what the second run left unhandled. */
export const merged = (report, { files, unhandled } = none) => ({
  unhandled: [...report.unhandled, ...unhandled],
  files: [...new Map([...report.files, ...files].map((file) => [file.file, file])).values()]
})

/** The tests that passed and were skipped; the tests, hooks, files and promises that failed. */
export const counted = ({ files, unhandled } = none) => {
  const tests = files.flatMap((file) => file.tests)
  const inState = (state) => tests.filter((test) => test.state === state).length
  const broken = files.flatMap((file) => file.errors).length + unhandled.length
  return { passed: inState("passed"), failed: inState("failed") + broken, skipped: inState("skipped") }
}
