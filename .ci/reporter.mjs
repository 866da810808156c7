// A reporter of Vitest for the gate: writes what each file came to, with the errors of its hooks too, to the file $REPORT.
import { writeFileSync } from "node:fs"

const textOf = ({ message, name }) => `${name}: ${message}`

export default class {
  onTestRunEnd(modules, unhandled) {
    const files = modules.map((module) => {
      const tests = [...module.children.allTests()].map((test) => ({
        name: test.fullName,
        state: test.result().state,
        errors: (test.result().errors ?? []).map(textOf)
      }))
      const errors = [module, ...module.children.allSuites()].flatMap((suite) => suite.errors()).map(textOf)
      return { file: module.relativeModuleId, tests, errors }
    })
    writeFileSync(process.env.REPORT, JSON.stringify({ files, unhandled: unhandled.map(textOf) }, undefined, 2))
  }
}
