import * as Simulator from "@effect-retry/lab/Simulator"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"
import * as TestClock from "effect/testing/TestClock"
import * as TestConsole from "effect/testing/TestConsole"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, vi } from "vitest"
import * as Display from "../../examples/outage/Display.ts"
import * as Fleet from "../../examples/outage/Fleet.ts"
import * as Page from "../../examples/outage/Page.ts"
import * as Report from "../../examples/outage/Report.ts"
import * as Script from "../../examples/outage/Script.ts"
import * as Service from "../../examples/outage/Service.ts"
import { firstOf } from "../utils/budget.ts"
import { inMemory } from "../utils/outage.ts"

describe("outage", () => {
  describe("Script", () => {
    it("phases follow each other, and the last one stays", () => {
      const names = [0, 2.999, 3, 15, 19, 22, 30, 1e9].map((at) => Script.phaseAt(Script.outage, at).name)
      assert.deepStrictEqual(
        names,
        [
          "service up",
          "service up",
          "service throttles",
          "service down",
          "service slow",
          "service back",
          "service back",
          "service back"
        ]
      )
      assert.strictEqual(Script.totalSeconds(Script.outage), 30)
    })
  })

  describe("Service", () => {
    it.each([
      { name: "an empty line", fullUntil: 0, seconds: 1, expected: 11 },
      { name: "behind others", fullUntil: 10.5, seconds: 0.25, expected: 10.75 },
      { name: "up to the bound", fullUntil: 11, seconds: 1, expected: 12 },
      { name: "beyond the bound", fullUntil: 11, seconds: 1.001, expected: undefined }
    ])("vector: $name", ({ expected, fullUntil, seconds }) => {
      assert.strictEqual(Service.admit({ fullUntil, bound: 2 }, 10, seconds), expected)
    })

    it.effect("answers 429 with Retry-After beyond the limit, each path for itself", () =>
      Effect.gen(function*() {
        const service = yield* Service.make([phase({ limitPerSecond: 8 })])
        const first = yield* Effect.forkChild(service.handle("/a"))
        const second = yield* Effect.forkChild(service.handle("/a"))
        const third = yield* Effect.forkChild(service.handle("/a"))
        const other = yield* Effect.forkChild(service.handle("/b"))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(
          (yield* Effect.forEach([first, second, third, other], Fiber.join)).map(({ status }) => status),
          [200, 200, 429, 200]
        )
        assert.strictEqual((yield* Fiber.join(third)).headers["retry-after"], "1")
        assert.deepStrictEqual([service.requests("/a"), service.requests("/b"), service.requests("/c")], [3, 1, 0])
      }))

    it.effect("works off one request after the other, also for callers that hung up", () =>
      Effect.gen(function*() {
        const service = yield* Service.make([phase({ workMillis: 100 })])
        const first = yield* Effect.forkChild(service.handle("/a"))
        yield* TestClock.adjust(1)
        yield* Fiber.interrupt(first)
        const second = yield* Effect.forkChild(service.handle("/a"))
        yield* TestClock.adjust(198)
        assert.isUndefined(second.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.strictEqual((yield* Fiber.join(second)).status, 200)
      }))

    it.effect("answers 503 when the queue is full, and in an outage", () =>
      Effect.gen(function*() {
        const service = yield* Service.make([phase({ workMillis: 601 }), phase({ failing: 1 })])
        assert.strictEqual((yield* service.handle("/a")).status, 503)
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* service.handle("/b")).status, 503)
      }))
  })

  describe("Report", () => {
    it.each([
      { values: [], share: 0.5, expected: NaN },
      { values: [1], share: 0.99, expected: 1 },
      { values: [1, 2, 3, 4], share: 0, expected: 1 },
      { values: [1, 2, 3, 4], share: 0.5, expected: 2 },
      { values: [1, 2, 3, 4], share: 0.51, expected: 3 },
      { values: [1, 2, 3, 4], share: 1, expected: 4 }
    ])("vector: percentile $share of $values", ({ expected, share, values }) => {
      assert.deepStrictEqual(Report.percentile(values, share), expected)
    })

    it("figures are shares of the calls that ended, the load is that of all calls", () => {
      const tally = Object.assign(new Fleet.Tally(), { calls: 10, attempts: 12, failed: 2, latencies: [0.3, 0.1] })
      assert.deepStrictEqual(Report.figures("naive", tally, 15), {
        name: "naive",
        calls: 10,
        inFlight: 6,
        succeeded: 0.5,
        requestsPerCall: 1.5,
        p50: 0.1,
        p99: 0.3,
        balance: undefined,
        refused: undefined,
        fillRate: undefined,
        recent: NaN,
        recentRequests: NaN,
        history: []
      })
    })

    it("the live table shows the last seconds, so that a recovery can be seen", () => {
      const tally = new Fleet.Tally()
      for (let second = 0; second < 40; second++) {
        for (const event of ["calls", "attempts", second < 33 ? "failed" : "succeeded"] as const) {
          tally.count(event, second)
        }
      }
      tally.count("attempts", 39.5)
      const { history, recent, recentRequests } = Report.figures("naive", tally, 41)
      assert.deepStrictEqual([recent, recentRequests, history.length], [1, 1.2, 30])
      const [, line] = Report.live([Report.figures("naive", tally, 41)])
      assert.strictEqual(line, `naive  100.0 %           1.20     7  ${"▁".repeat(23)}${"█".repeat(7)}`)
    })

    it("the table is aligned, in 80 columns", () => {
      const lines = Report.table([naive, quota])
      assert.deepStrictEqual(lines.slice(0, 4), [
        "fleet  calls  succeed  requests/call    p50     p99  refused",
        "------------------------------------------------------------",
        "naive   1000   50.0 %           2.50  10 ms  900 ms        -",
        "quota   1000   80.0 %           1.20  10 ms  900 ms       40"
      ])
      const long = { ...quota, name: "a fleet of 16 let", p50: 8, p99: 8, calls: 12_345 }
      const all = [long]
      for (
        const line of [
          ...Report.table(all),
          ...Report.live(all),
          ...Report.liveLines(all),
          ...Report.verdict(all, 12_345)
        ]
      ) {
        assert.isAtMost(line.length, 80, line)
      }
    })

    it("says in words what each fleet does, and what the live table shows, in 80 columns", () => {
      const lines = Report.abouts(Fleet.all())
      assert.strictEqual(lines[1], "  naive retry: up to 3 more, immediately")
      for (const line of lines) assert.isAtMost(line.length, 80, line)
      assert.include(Report.live([quota])[0]!, "succeed  requests/call  open  succeed, the last 30 s")
    })

    it("gives no verdict on a busy machine, where timers were late", () => {
      assert.include(Report.verdict([naive, quota], 50).join(" "), "Most calls succeed with quota")
      const busy = Report.verdict([naive, quota], 51.4).join(" ")
      assert.include(busy, "One timer in a hundred was 51 ms late or more")
      assert.notInclude(busy, "Most calls succeed")
    })

    it("the sentence names the fleet with the most success and the one that sends most, in 80 columns", () => {
      assert.deepStrictEqual(Report.verdict([naive, quota], 0), [
        "Most calls succeed with quota: 80.0 % at 1.20 requests per call;",
        "naive sends 2.50, and 50.0 % succeed."
      ])
      assert.deepStrictEqual(Report.verdict([{ ...naive, requestsPerCall: 1.1 }, quota], 0), [
        "Most calls succeed with quota: 80.0 % at 1.20 requests per call."
      ])
      const long = { ...quota, name: "a fleet of 16 let", succeeded: 1, requestsPerCall: 21 }
      for (const line of Report.verdict([long, { ...long, requestsPerCall: 31 }], 0)) {
        assert.isAtMost(line.length, 80, line)
      }
      assert.isEmpty(Fleet.all().filter(({ name }) => name.length > 17))
    })

    it("ends with what one remembers, if it was so in this run, and the machine was not busy", () => {
      const none = { ...naive, name: "no retry", requestsPerCall: 1, succeeded: 0.754 }
      assert.deepStrictEqual(Report.lesson([none, naive, quota], 50), [
        "Naive made it worse than no retry: 50 against 75 % of calls succeed."
      ])
      assert.deepStrictEqual(Report.lesson([none, naive, quota], 51), [])
      assert.deepStrictEqual(Report.lesson([none, { ...naive, succeeded: 0.76 }], 0), [])
      assert.deepStrictEqual(Report.lesson([], 0), [])
    })

    it("nothing is invented before a call has ended", () => {
      const none = Report.figures("naive", new Fleet.Tally(), 0)
      assert.deepStrictEqual(Report.verdict([none], 0), ["No call has ended, so the table shows nothing."])
      assert.strictEqual(Report.table([none])[2], "naive      0        -              -    -    -        -")
      assert.deepStrictEqual(Report.liveLines([none]), ["  naive: no call has ended, - requests per call, 0 open"])
    })
  })

  describe("Page", () => {
    // The program that writes the page leaves its own folders among the temporary files.
    let folder: string
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "effect-retry-"))
      vi.stubEnv("TMPDIR", folder)
    })
    afterAll(() => {
      vi.unstubAllEnvs()
      rmSync(folder, { recursive: true })
    })

    it("counts what happened in each second since the first call, for as long as asked, and how long calls took", () => {
      const tally = new Fleet.Tally()
      tally.startedAt = 100
      tally.count("calls", 100)
      tally.count("attempts", 100.9)
      tally.count("attempts", 101)
      tally.count("succeeded", 102.5)
      tally.count("calls", 101.25)
      tally.count("failed", 101.99)
      const none = { calls: 0, attempts: 0, succeeded: 0, failed: 0 }
      assert.deepStrictEqual(Page.measured(tally, 4), {
        series: [
          { ...none, calls: 1, attempts: 1 },
          { ...none, calls: 1, attempts: 1, failed: 1 },
          { ...none, succeeded: 1 },
          none
        ],
        arrivals: [0, 1250]
      })
      tally.latencies.push(2, 0.1)
      assert.deepInclude(Page.measured(tally, 3), { p50: 100, p99: 2000 })
      assert.deepStrictEqual([tally.calls, tally.attempts, tally.failed], [2, 2, 1])
    })

    it.live("writes a page with the charts of all fleets, and returns its path", () =>
      Effect.gen(function*() {
        const fleets = Fleet.all()
        for (const { tally } of fleets) {
          for (const event of ["calls", "attempts", "succeeded"] as const) tally.count(event, 0.5)
        }
        const path = yield* Page.write(fleets)
        const page = readFileSync(path, "utf8")
        assert.strictEqual(page.match(/<svg[^>]*role="img"/g)!.length, 2 * fleets.length)
        for (const { name } of fleets) assert.include(page, name)
      }).pipe(Effect.provide(NodeServices.layer)))

    it.live("says why there is no page, and leaves no folder", () =>
      Effect.gen(function*() {
        const made: Array<string> = []
        const fs = yield* FileSystem.FileSystem
        const noting = FileSystem.FileSystem.of({
          ...fs,
          makeTempDirectory: (options) =>
            Effect.tap(fs.makeTempDirectory(options), (path) => Effect.sync(() => made.push(path)))
        })
        const writing = Effect.provideService(Page.write(Fleet.all()), FileSystem.FileSystem, noting)
        assert.include(yield* Effect.flip(writing), "series")
        assert.deepStrictEqual(made.map((path) => existsSync(path)), [false])
      }).pipe(Effect.provide(NodeServices.layer)))
  })

  describe("Display", () => {
    it.effect("adds a line every two seconds if there is no terminal", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* shown(false, "5 seconds"), [])
        assert.deepStrictEqual(yield* TestConsole.logLines, ["a line", "a line"])
      }))

    it.effect("redraws the block in a terminal, within its width, and restores the cursor", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* shown(true, "500 millis"), [
          "\u001b[?25l",
          "a block\nof more th\n",
          "\u001b[2A\r\u001b[Ja block\nof more th\n",
          "\u001b[2A\r\u001b[J\u001b[?25h"
        ])
      }))
  })

  it.live.each(firstOf([{ seed: 1 }, { seed: 2 }, { seed: 3 }], 1))(
    "law: naive retry keeps its service down, a quota does not (seed $seed)",
    ({ seed }) =>
      Effect.gen(function*() {
        const [none, naive, standard, adaptive, gated] = yield* Simulator.inVirtualTime(inMemory, { seed })
        for (const { calls, inFlight } of [none!, naive!, standard!, adaptive!, gated!]) {
          assert.deepStrictEqual([calls, inFlight], [1200, 0])
        }
        assert.strictEqual(none!.requestsPerCall, 1)
        assert.isAbove(naive!.requestsPerCall, 2)
        assert.isBelow(naive!.succeeded, none!.succeeded)
        for (const { balance, requestsPerCall, succeeded } of [standard!, adaptive!, gated!]) {
          assert.isBelow(requestsPerCall, 1.35)
          assert.isAbove(succeeded, none!.succeeded)
          assert.isAbove(balance!, 0)
        }
        assert.closeTo(standard!.succeeded, 0.84, 0.02)
        assert.closeTo(gated!.succeeded, 0.9, 0.05)
        assert.isBelow(gated!.requestsPerCall, 1.25)
        for (const { refused } of [standard!, adaptive!]) assert.isAbove(refused!, 0)
        assert.isDefined(adaptive!.fillRate)
        assert.isUndefined(standard!.fillRate)
      })
  )
})

const phase = (changes: Partial<Script.Phase>): Script.Phase => ({
  name: "test",
  seconds: 1,
  limitPerSecond: 1000,
  workMillis: 1,
  failing: 0,
  ...changes
})

const naive: Report.Figures = {
  name: "naive",
  calls: 1000,
  inFlight: 0,
  succeeded: 0.5,
  requestsPerCall: 2.5,
  p50: 0.01,
  p99: 0.9,
  balance: undefined,
  refused: undefined,
  fillRate: undefined,
  recent: 0.5,
  recentRequests: 2.5,
  history: [0, 1]
}

const quota: Report.Figures = {
  ...naive,
  name: "quota",
  succeeded: 0.8,
  requestsPerCall: 1.2,
  balance: 300,
  refused: 40
}

/** What the display writes until it is interrupted. */
const shown = Effect.fnUntraced(function*(isTerminal: boolean, duration: "5 seconds" | "500 millis") {
  const written: Array<string> = []
  const terminal = Terminal.make({
    columns: Effect.succeed(10),
    rows: Effect.succeed(10),
    size: Effect.die("not used"),
    readInput: Effect.die("not used"),
    readLine: Effect.die("not used"),
    display: (text) => Effect.sync(() => void written.push(text))
  })
  const stdio = Stdio.make({
    args: Effect.succeed([]),
    stdout: () => Sink.drain,
    stderr: () => Sink.drain,
    stdin: Effect.die("not used") as never,
    stdoutIsTerminal: Effect.succeed(isTerminal)
  })
  const view = { block: Effect.succeed(["a block", "of more than ten"]), line: Effect.succeed("a line") }
  const fiber = yield* Display.show(view).pipe(
    Effect.provideService(Terminal.Terminal, terminal),
    Effect.provideService(Stdio.Stdio, stdio),
    Effect.forkChild
  )
  yield* TestClock.adjust(duration)
  yield* Fiber.interrupt(fiber)
  return written
})
