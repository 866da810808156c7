import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Random from "effect/Random"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"
import * as TestClock from "effect/testing/TestClock"
import * as TestConsole from "effect/testing/TestConsole"
import * as Display from "../../examples/outage/Display.ts"
import * as Fleet from "../../examples/outage/Fleet.ts"
import * as Report from "../../examples/outage/Report.ts"
import * as Script from "../../examples/outage/Script.ts"
import * as Service from "../../examples/outage/Service.ts"

describe("outage", () => {
  describe("Script", () => {
    it("phases follow each other, and the last one stays", () => {
      const names = [0, 2.999, 3, 15, 19, 22, 30, 1e9].map((at) => Script.phaseAt(Script.outage, at).name)
      assert.deepStrictEqual(
        names,
        ["healthy", "healthy", "throttling", "outage", "cold start", "recovery", "recovery", "recovery"]
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
        attemptsPerCall: 1.2,
        extraLoad: 0.5,
        p50: 0.1,
        p99: 0.3,
        balance: undefined,
        refused: undefined,
        fillRate: undefined
      })
    })

    it("the table is aligned", () => {
      assert.deepStrictEqual(Report.table([naive, quota]), [
        "fleet  calls  succeeded  attempts/call  extra load    p50     p99  balance  refused",
        "-----------------------------------------------------------------------------------",
        "naive   1000     50.0 %           2.50      +150 %  10 ms  900 ms        -        -",
        "quota   1000     80.0 %           1.20       +20 %  10 ms  900 ms      300       40"
      ])
    })

    it("the sentence names the heaviest fleet, what the others reached, what the quota refused", () => {
      assert.strictEqual(
        Report.sentence([naive, quota]),
        "naive loaded its server most, +150 %, and 50.0 % of its calls succeeded; it was 80.0 % at +20 % with quota; " +
          "a retry quota refused 40 calls of quota another attempt."
      )
      assert.strictEqual(
        Report.sentence([{ ...naive, extraLoad: 0.1 }, { ...quota, refused: 0 }]),
        "quota loaded its server most, +20 %, and 80.0 % of its calls succeeded; it was 50.0 % at +10 % with naive."
      )
    })

    it("nothing is made up before a call has ended", () => {
      const none = Report.figures("naive", new Fleet.Tally(), 0)
      assert.strictEqual(Report.sentence([none]), "No call has ended, so the table shows nothing.")
      assert.strictEqual(
        Report.table([none])[2],
        "naive      0          -              -           -    -    -        -        -"
      )
      assert.strictEqual(Report.liveLine([none]), "naive - x-, 0 in flight")
    })
  })

  describe("Display", () => {
    it.effect("adds a line every two seconds where there is no terminal", () =>
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

  it.effect.each([{ seed: "a" }, { seed: "b" }, { seed: "c" }])(
    "law: naive retry keeps its service down, a quota does not (seed $seed)",
    ({ seed }) =>
      Effect.gen(function*() {
        const [none, naive, standard, adaptive] = yield* simulated
        for (const { calls, inFlight } of [none!, naive!, standard!, adaptive!]) {
          assert.deepStrictEqual([calls, inFlight], [1200, 0])
        }
        assert.strictEqual(none!.extraLoad, 0)
        assert.isAbove(naive!.extraLoad, 1)
        assert.isBelow(naive!.succeeded, none!.succeeded)
        for (const { balance, extraLoad, refused, succeeded } of [standard!, adaptive!]) {
          assert.isBelow(extraLoad, 0.35)
          assert.isAbove(succeeded, none!.succeeded)
          assert.isAbove(balance!, 0)
          assert.isAbove(refused!, 0)
        }
        assert.isDefined(adaptive!.fillRate)
        assert.isUndefined(standard!.fillRate)
      }).pipe(Random.withSeed(seed))
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
  attemptsPerCall: 2.5,
  extraLoad: 1.5,
  p50: 0.01,
  p99: 0.9,
  balance: undefined,
  refused: undefined,
  fillRate: undefined
}

const quota: Report.Figures = {
  ...naive,
  name: "quota",
  succeeded: 0.8,
  attemptsPerCall: 1.2,
  extraLoad: 0.2,
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

/** The figures of the whole example in virtual time, with the service called in memory. */
const simulated = Effect.gen(function*() {
  const service = yield* Service.make(Script.outage)
  const client = HttpClient.make((request, url) =>
    Effect.map(
      service.handle(url.pathname),
      (response) => HttpClientResponse.fromWeb(request, HttpServerResponse.toWeb(response))
    )
  ).pipe(HttpClient.mapRequest(HttpClientRequest.prependUrl("http://service")))
  const fleets = Fleet.all()
  const running = yield* Effect.forEach(fleets, ({ run }) => run(Script.totalSeconds(Script.outage)), {
    concurrency: "unbounded"
  }).pipe(Effect.provideService(HttpClient.HttpClient, client), Effect.forkChild)
  yield* TestClock.adjust("1 minute")
  yield* Fiber.join(running)
  return fleets.map(({ name, path, tally }) => Report.figures(name, tally, service.requests(path)))
})
