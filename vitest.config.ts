import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

// Vitest 5 reports failures with Map.groupBy, which Node 20 lacks.
if (!("groupBy" in Map)) {
  const groupBy = <K, A>(items: Iterable<A>, keyOf: (item: A, index: number) => K): Map<K, Array<A>> => {
    const groups = new Map<K, Array<A>>()
    let index = 0
    for (const item of items) {
      const key = keyOf(item, index++)
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [item])
      else group.push(item)
    }
    return groups
  }
  Object.assign(Map, { groupBy })
}

// In the mode "peers" the tests in test/peers run, against real servers and clocks, one file after the other.
export default defineConfig(({ mode }) => ({
  resolve: { tsconfigPaths: true },
  test: {
    include: ["test/**/*.test.ts", "lab/test/**/*.test.ts"],
    globalSetup: ["test/utils/saysWhatIsSkipped.ts"],
    pool: "threads",
    fileParallelism: mode !== "peers",
    maxWorkers: mode === "peers" ? 1 : availableParallelism(),
    testTimeout: mode === "peers" ? 120_000 : 30_000,
    hookTimeout: 30_000
  }
}))
