import { escaped } from "./charts/escape.ts"
import { type Checked, expectationText, failedOf, foundText, runsText } from "./judgments.ts"

const attributes = (values: { readonly [name: string]: string | number }): string =>
  Object.entries(values).map(([name, value]) => ` ${name}="${escaped(String(value))}"`).join("")

const suiteOf = (checked: Checked): string => {
  const { judgments, name, seeds, source, warnings } = checked
  const { failed, of } = failedOf([checked])
  const cases = judgments.map((judgment) => {
    const opening = `    <testcase${
      attributes({ name: expectationText(judgment), classname: `${name} (${source})`, time: 0 })
    }`
    if (judgment.holds) return `${opening}/>`
    const message = `expected ${expectationText(judgment)}, found ${foundText(judgment)}`
    return `${opening}>\n      <failure${attributes({ message, type: "expectation" })}>${
      escaped(`${message}; ${runsText(seeds)}`)
    }</failure>\n    </testcase>`
  })
  const warned = warnings.length === 0 ? [] : [`    <system-err>${escaped(warnings.join("\n"))}</system-err>`]
  return [
    `  <testsuite${attributes({ name, tests: of, failures: failed, errors: 0, skipped: 0, time: 0 })}>`,
    ...cases,
    ...warned,
    "  </testsuite>"
  ].join("\n")
}

/** The expectations of scenarios as JUnit XML: a suite for each scenario, a test for each expectation. */
export const checkJUnit = (all: ReadonlyArray<Checked>): string => {
  const { failed, of } = failedOf(all)
  return [
    `<?xml version="1.0" encoding="UTF-8"?>`,
    `<testsuites${attributes({ name: "effect-retry check", tests: of, failures: failed, errors: 0, time: 0 })}>`,
    ...all.map(suiteOf),
    "</testsuites>",
    ""
  ].join("\n")
}
