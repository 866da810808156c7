// A reporter of Vitest for the gate: writes what each file came to, with the errors of its hooks too, to the file $REPORT.
import { writeFileSync } from "node:fs"

const lineOf = (error) => {
  const { killed, message = error, name = "Error", signal } = error
  return `${name}: ${message}${killed ? `\nkilled: true, signal: ${signal}` : ""}`
}

/** An error and its causes, which may be a circle. */
const textOf = (error) => {
  const errors = new Set()
  for (let cause = error; cause && !errors.has(cause); cause = cause.cause) errors.add(cause)
  return [...errors].map(lineOf).join("\ncause: ")
}

export default class {
  onTestRunEnd(modules, unhandled) {
    const paths = modules.map((module) => module.moduleId)
    const files = modules.map((module) => {
      const tests = [...module.children.allTests()].map((test) => ({
        name: test.fullName,
        state: test.result().state,
        errors: (test.result().errors ?? []).map(textOf)
      }))
      const errors = [
        ...[module, ...module.children.allSuites()].flatMap((suite) => suite.errors()),
        ...unhandled.filter((error) => error.VITEST_TEST_PATH === module.moduleId)
      ]
      return { file: module.relativeModuleId, tests, errors: errors.map(textOf) }
    })
    const others = unhandled.filter((error) => !paths.includes(error.VITEST_TEST_PATH))
    writeFileSync(process.env.REPORT, JSON.stringify({ files, unhandled: others.map(textOf) }, undefined, 2))
  }
}
