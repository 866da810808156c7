/** Has a file find the process as it is before its first `outermostOnly` policy and hedged call. */
import { afterAll, beforeAll } from "vitest"
import { shared } from "../../src/internal/shared.ts"

export const unmarked = (): void => {
  const { marking } = shared
  beforeAll(() => {
    shared.marking = false
  })
  // What other files keep, such as a policy, needs the marks.
  afterAll(() => {
    shared.marking ||= marking
  })
}
