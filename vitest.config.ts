import { createHash } from "node:crypto"
import { availableParallelism } from "node:os"
import { basename } from "node:path"
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

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

const tests = ["test/**/*.test.ts", "lab/test/**/*.test.ts"]
const peers = ["test/peers/**/*.test.ts", "lab/test/cli/installed.test.ts"]

/** Peers that measure time, which nothing may run beside. */
const measuring = ["test/peers/aws-sdk.test.ts", "test/peers/redis-scale.test.ts", "test/peers/reality/stopped.test.ts"]

/**
 * Peers whose place in the order matters; "*" is that of all others, which is random. Those that take minutes begin first, the
 * longest before the others, or one of them would run alone at the end. The one that needs a quiet machine is the last.
 */
const order = [
  "playground",
  "digits",
  "installed",
  "durable",
  "site",
  "examples",
  "limit",
  "redis-limiter",
  "*",
  "stopped"
]

class InOrder extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const { seed } = this.ctx.config.sequence
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = order.indexOf(basename(moduleId, ".test.ts"))
      const random = createHash("sha1").update(`${seed} ${moduleId}`).digest().readUInt32BE() / 2 ** 32
      return random + (place === -1 ? order.indexOf("*") : place)
    }
    return files.sort((a, b) => placeOf(a) - placeOf(b))
  }
}

/** Tests of what is one per process, which other files would change: each has a thread of its own. */
const alone = [
  "test/Gates.test.ts",
  "test/core/Unshared.test.ts",
  "test/examples/{outageNow,sharing}.test.ts"
]

/** Comparisons and simulations that take long: with LAWS=full, as the gate runs them, and not in the small run. */
const long = process.env["LAWS"] === "full" ? [] : [
  "lab/test/simulator/{anchors,concurrency,demo,overload}.test.ts",
  "lab/test/cli/threads.test.ts",
  "test/gates/SmithyRateLimiter.test.ts"
]

const project = (
  name: string,
  test: TestProjectInlineConfiguration["test"]
): TestProjectInlineConfiguration => ({ extends: true, test: { name, ...test } })

// In the mode "peers" the tests against real servers and clocks run, and no others.
export default defineConfig(({ mode }) => ({
  resolve: { tsconfigPaths: true },
  test: {
    projects: mode === "peers" ?
      [
        project("peers", { include: peers, exclude: measuring, maxWorkers: 2 }),
        project("measuring", { include: measuring, maxWorkers: 1 })
      ] :
      [
        project("alone", { include: alone }),
        project("shared", {
          include: tests,
          exclude: [...alone, ...peers, ...long],
          isolate: false,
          sequence: { groupOrder: 1 }
        })
      ],
    setupFiles: ["test/utils/cpuOfFile.ts"],
    globalSetup: ["test/utils/cpuReport.ts"],
    sequence: { shuffle: { files: true, tests: true }, ...mode === "peers" ? { sequencer: InOrder } : {} },
    pool: "threads",
    maxWorkers: availableParallelism(),
    // What hangs is found; what is slow is not late. A loop that never ends blocks the thread of these timers as well:
    // only the limit of the gate's step finds it.
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
}))
