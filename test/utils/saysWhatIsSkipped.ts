import type { TestProject } from "vitest/node"

/** Vitest calls it once before the tests. */
export const setup = (project: TestProject): void => {
  if (project.vite.config.mode === "peers") return
  console.log(
    "Skipped: the tests against real peers. `npm run test:peers` runs them; it needs nginx, haproxy, redis-server, faketime, chromium, firefox-esr, prometheus, postgresql and `npm ci --prefix test/runtimes && npm ci --prefix docs/site`."
  )
}
