/** Measures the CPU seconds of a file of tests, its imports included. */
import { afterAll } from "vitest"
import { threadSeconds } from "./cpu.ts"

const before = threadSeconds()

// oxlint-disable-next-line no-empty-pattern
afterAll(({}, { file }) => {
  file.meta.cpuSeconds = threadSeconds() - before
})
