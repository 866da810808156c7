/** Has a file find the process as it is before its first `outermostOnly` policy, hedged call and propagated call. */
import { afterAll, beforeAll } from "vitest"
import { shared } from "../../src/internal/shared.ts"

export const unmarked = (): void => {
  const { marking, nesting, telling } = shared
  beforeAll(() => {
    Object.assign(shared, { marking: false, nesting: false, telling: false })
  })
  // What other files keep, such as a policy, needs the marks.
  afterAll(() => {
    if (marking === true) shared.marking = true
    if (telling === true) shared.telling = true
    shared.nesting ||= nesting
  })
}
