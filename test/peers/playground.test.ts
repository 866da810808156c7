/** The playground, opened from its file: used with the keyboard, looked at, and compared with the command line. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { promisify } from "node:util"
import type { Browser, BrowserContext, Page } from "puppeteer-core"
import { browsers, newPage, startBrowser } from "../utils/browsers.ts"
import { shared } from "../utils/shared.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The lab as it is built into a folder: the page, and the command line. */
let folder: string
let url: string

const run = (script: string, ...args: ReadonlyArray<string>): Promise<string> =>
  promisify(execFile)(process.execPath, [script, ...args], { cwd: folder, maxBuffer: 2 ** 28 }).then(({ stdout }) =>
    stdout
  )

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  url = pathToFileURL(path.join(folder, "dist/playground.html")).href
  fs.mkdirSync(path.join(folder, "node_modules"))
  fs.symlinkSync(path.join(root, "node_modules/effect"), path.join(folder, "node_modules/effect"))
  fs.writeFileSync(path.join(folder, "package.json"), `{"type":"module"}`)
  fs.cpSync(path.join(root, "lab/scenarios"), path.join(folder, "scenarios"), { recursive: true })
  await run(path.join(root, "lab/scripts/build.mjs"), folder)
})

afterAll(() => fs.rmSync(folder, { recursive: true }))

/** The pages of one test, apart from all others, in a browser that is open. They are closed with the scope. */
const contextOf = (browser: Browser): Effect.Effect<BrowserContext, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => browser.createBrowserContext()),
    (context) => Effect.promise(() => context.close())
  )

/** A page that is open, and all errors that it reported. */
const opened = async (browser: BrowserContext, url: string, { dark = false, width = 1280 } = {}) => {
  const page = await newPage(browser)
  const said: Array<string> = []
  page.on("console", (message) => said.push(message.text()))
  page.on("pageerror", (error) => said.push(String(error)))
  await page.setViewport({ width, height: 844 })
  if (dark) await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }])
  await page.goto(url)
  return { page, said }
}

const done = (page: Page) =>
  page.waitForFunction(
    `(rows => rows.length > 0 && rows.every(row => row.getAttribute("aria-busy") === "false"))([...document.querySelectorAll(".comparison tbody tr")])`
  )

const text = (page: Page, selector: string): Promise<string> =>
  page.$eval(selector, (element) => (element as unknown as { readonly textContent: string }).textContent)

const texts = (page: Page, selector: string): Promise<ReadonlyArray<string>> =>
  page.$$eval(selector, (all) => all.map((one) => (one as unknown as { readonly textContent: string }).textContent))

/** A change by the keyboard, and how long it took until its first figures were drawn. */
const change = async (page: Page, selector: string, key: "ArrowRight" | "ArrowLeft"): Promise<number> => {
  await page.focus(selector)
  await page.evaluate("delete document.documentElement.dataset.shownMillis")
  await page.keyboard.press(key)
  const shown = await page.waitForFunction("document.documentElement.dataset.shownMillis")
  return Number(await shown.jsonValue())
}

const firstSlider = `.controls input[type="range"]`

/** How many processes share a core: on a busy machine everything takes that many times as long. */
const business = () => Math.max(1, os.loadavg()[0]! / os.availableParallelism())

for (const name of browsers) {
  describe(`the playground in ${name}`, () => {
    const started = shared(startBrowser(name))

    it.live("opens from its file, runs all policies, and shows the result", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const { page, said } = yield* Effect.promise(() => opened(browser, url))
        yield* Effect.promise(() => done(page))
        assert.deepStrictEqual(said, [])
        assert.deepStrictEqual(yield* Effect.promise(() => texts(page, "figure h3")), [
          "Load",
          "Retry quota left"
        ])
        assert.strictEqual(
          yield* Effect.promise(() => text(page, "#outcome")),
          "jitter, limit: back after 2 s; awsStandard: back after 40 s; naive: not within the run"
        )
        // All of the picture is on the first screen of a laptop.
        const bottom = yield* Effect.promise(() =>
          page.evaluate(`document.querySelector(".outcome svg").getBoundingClientRect().bottom`)
        )
        assert.isBelow(Number(bottom), 800)
        // A policy is one line until its settings are opened.
        const heights = yield* Effect.promise(() =>
          page.$$eval(".card", (cards) => cards.map((card) => (card as any).getBoundingClientRect().height))
        )
        assert.isBelow(Math.max(...heights), 60)
        assert.match(
          yield* Effect.promise(() => text(page, "[aria-live]")),
          /^naive: .* % succeed, recovers in 0 of \d+ runs\. awsStandard: .* jitter, limit: .* recovers in (\d+) of \1 runs\.$/
        )
        // A retry after a timeout costs twice what another costs.
        assert.deepStrictEqual(
          (yield* Effect.promise(() => texts(page, ".call:nth-child(2) tbody tr"))).map((row) => row.slice(-2)),
          ["10", "10"]
        )
        const rows = yield* Effect.promise(() => texts(page, ".charts figure:first-child tbody tr"))
        assert.isAbove(rows.length, 20)
        assert.match(rows[2]!, /^6\.5 s\d+\d+\d+$/)
      }).pipe(Effect.scoped))

    it.live("shows a change within 200 ms, and drops what is stale", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const { page, said } = yield* Effect.promise(() => opened(browser, url))
        yield* Effect.promise(() => done(page))
        const taken: Array<number> = []
        for (let n = 0; n < 15; n++) {
          taken.push(yield* Effect.promise(() => change(page, firstSlider, n % 2 ? "ArrowLeft" : "ArrowRight")))
        }
        const median = taken.sort((a, b) => a - b)[7]!
        assert.isBelow(median / business(), 200, `${taken.join(" ")} ms; ${business()} processes a core`)
        // Of many changes only the last counts.
        yield* Effect.promise(async () => {
          for (let n = 0; n < 10; n++) await page.keyboard.press("ArrowRight")
        })
        yield* Effect.promise(() => done(page))
        assert.match(yield* Effect.promise(async () => page.url()), /#start=21&/)
        assert.deepStrictEqual(said, [])
      }).pipe(Effect.scoped))

    it.live("marks old figures as old with the change, before anything is drawn", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const { page } = yield* Effect.promise(() => opened(browser, url))
        yield* Effect.promise(() => done(page))
        const [rows, cards, busy] = (yield* Effect.promise(() =>
          page.evaluate(`(async () => {
            document.querySelector(".card button.quiet").click()
            // Until nothing more follows in this turn of the event loop.
            for (let n = 0; n < 100; n++) await Promise.resolve()
            const rows = [...document.querySelectorAll(".comparison tbody tr")]
            return [
              rows.map((row) => row.querySelector("th").textContent.trim()),
              [...document.querySelectorAll(".card h3")].map((one) => one.textContent),
              rows.map((row) => row.getAttribute("aria-busy"))
            ]
          })()`)
        )) as ReadonlyArray<ReadonlyArray<string>>
        assert.deepStrictEqual(cards, ["awsStandard", "jitter, limit"])
        assert.deepStrictEqual(rows, cards)
        assert.deepStrictEqual(busy, ["true", "true"])
      }).pipe(Effect.scoped))

    it.live("shows the same figures however one came to them", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const { page } = yield* Effect.promise(() => opened(browser, url))
        yield* Effect.promise(() => done(page))
        yield* Effect.promise(async () => {
          await page.click(".card .fold")
          await page.focus(`.card input[type="checkbox"]`)
          await page.keyboard.press(" ")
          await page.focus(`.card input[type="number"]`)
          // More attempts: fewer runs are cheap now, of the other policies as well.
          for (let n = 0; n < 4; n++) await page.keyboard.press("ArrowUp")
          await page.keyboard.press("Tab")
        })
        yield* Effect.promise(() => page.waitForFunction(`location.hash.includes("attempts:7")`))
        yield* Effect.promise(() => done(page))
        const fresh = yield* Effect.promise(async () => opened(browser, page.url()))
        yield* Effect.promise(() => done(fresh.page))
        for (const cells of [".comparison td", "figure tbody td", "[data-language=sh]"]) {
          const found = yield* Effect.promise(() => texts(page, cells))
          assert.isNotEmpty(found)
          assert.deepStrictEqual(found, yield* Effect.promise(() => texts(fresh.page, cells)), cells)
        }
      }).pipe(Effect.scoped))

    it.live("keeps the focus, what is open, and a number that is not replaced", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const { page } = yield* Effect.promise(() => opened(browser, url))
        yield* Effect.promise(() => done(page))
        const focus = () => Effect.promise(() => page.evaluate("document.activeElement.labels?.[0]?.textContent"))
        yield* Effect.promise(async () => {
          await page.$eval("details:has([data-language=ts]) summary", (summary) => (summary as any).click())
          await page.focus("button.add")
          await page.keyboard.press("Enter")
        })
        assert.strictEqual(yield* focus(), "Policy 4")
        yield* Effect.promise(async () => {
          await page.focus(".card:nth-of-type(4) button.quiet")
          await page.keyboard.press("Enter")
        })
        assert.strictEqual(yield* focus(), "Policy 3")
        yield* Effect.promise(() => done(page))
        assert.isTrue(
          yield* Effect.promise(() => page.$eval("details:has([data-language=ts])", (one) => (one as any).open))
        )
        yield* Effect.promise(async () => {
          await page.focus(`.controls input[type="number"]`)
          await page.keyboard.down("Control")
          await page.keyboard.press("a")
          await page.keyboard.up("Control")
          await page.keyboard.press("Delete")
          await page.keyboard.press("Tab")
        })
        assert.strictEqual(
          yield* Effect.promise(() => page.$eval(`.controls input[type="number"]`, (one) => (one as any).value)),
          "10"
        )
      }).pipe(Effect.scoped))

    it.live("runs what a link says, and says what is wrong with a link", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const link = "#rate=100&capacity=150&share=50&kind=drop&policy=awsAdaptive,quota:50,coolDown&policy=none"
        const { page } = yield* Effect.promise(() => opened(browser, url + link))
        yield* Effect.promise(() => done(page))
        assert.strictEqual(yield* Effect.promise(async () => page.url()), url + link)
        assert.deepStrictEqual(yield* Effect.promise(() => texts(page, ".card h3")), [
          "awsAdaptive, quota 50, cool-down",
          "none"
        ])
        const wrong = yield* Effect.promise(() => opened(browser, `${url}#rate=0&policy=nobody`))
        assert.deepStrictEqual(yield* Effect.promise(() => texts(wrong.page, "[role=alert] li")), [
          `rate must be a number from 10 to 600, got "0"`,
          `policy must be one of none, naive, backoff, jitter, awsStandard, awsStandard2026, awsDynamoDB2026, awsAdaptive, limited, awsJavaV1, awsJavaScriptV2, awsGeneralReference, grpc, finagle, envoy, sre, got "nobody"`
        ])
        yield* Effect.promise(() => done(wrong.page))
      }).pipe(Effect.scoped))

    it.live("exports a scenario that the command line runs to the same numbers", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const { page } = yield* Effect.promise(() =>
          opened(
            browser,
            `${url}#rate=120&capacity=150&limit=140&policy=awsAdaptive&policy=envoy,concurrency:0,throttle:2&policy=none`
          )
        )
        yield* Effect.promise(() => done(page))
        fs.writeFileSync(
          path.join(folder, "scenario.json"),
          yield* Effect.promise(() => text(page, "[data-language=json]"))
        )
        const command = yield* Effect.promise(() => text(page, "[data-language=sh]"))
        const args = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!).slice(2)
        const { runs } = JSON.parse(
          yield* Effect.promise(() => run(path.join(folder, "dist/bin.js"), ...args, "--json"))
        )
        const shown = yield* Effect.promise(() => texts(page, "[data-trace] code"))
        assert.deepStrictEqual(runs.map((run: any) => run.results[0].traceHash), shown)
        const share = yield* Effect.promise(() => texts(page, `[data-figure="sends"]`))
        runs.forEach((run: any, n: number) =>
          assert.strictEqual(share[n]!.split(" ")[0]!.slice(0, 4), run.summary.sendsPerCall.mean.toFixed(2))
        )
        assert.match(
          yield* Effect.promise(() => text(page, "[data-language=ts]")),
          /^import \{ withRetry \} from "effect-retry"$/m
        )
      }).pipe(Effect.scoped))

    it.live("can be used with the keyboard alone: every control has a name", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        const { page } = yield* Effect.promise(() => opened(browser, url))
        yield* Effect.promise(() => done(page))
        const nameless = yield* Effect.promise(() =>
          page.evaluate(`[...document.querySelectorAll("input, select, button")]
            .filter((one) => !one.ariaLabel && !one.labels?.length && !one.textContent.trim()).map((one) => one.outerHTML)`)
        )
        assert.deepStrictEqual(nameless, [])
        yield* Effect.promise(async () => {
          await page.focus("button.add")
          await page.keyboard.press("Enter")
          await done(page)
        })
        assert.strictEqual((yield* Effect.promise(() => texts(page, ".card h3"))).length, 4)
        assert.isNull(yield* Effect.promise(() => page.$("button.add")))
        yield* Effect.promise(async () => {
          await page.focus(".card button.quiet")
          await page.keyboard.press("Enter")
          await done(page)
        })
        assert.deepStrictEqual(yield* Effect.promise(() => texts(page, ".comparison tbody th")), [
          " awsStandard",
          " jitter, limit",
          " none"
        ])
      }).pipe(Effect.scoped))

    it.live("fits a phone and a desk, light and dark", () =>
      Effect.gen(function*() {
        const browser = yield* contextOf(started())
        for (const width of [390, 1280]) {
          for (const dark of name === "Chromium" ? [false, true] : [false]) {
            const { page, said } = yield* Effect.promise(() => opened(browser, url, { dark, width }))
            yield* Effect.promise(() => done(page))
            const [overflow, background, plots] = (yield* Effect.promise(() =>
              page.evaluate(`[
                document.documentElement.scrollWidth - document.documentElement.clientWidth,
                getComputedStyle(document.body).backgroundColor,
                [...document.querySelectorAll(".plot svg")].map((one) => one.getBoundingClientRect().width)
              ]`)
            )) as [number, string, ReadonlyArray<number>]
            assert.strictEqual(overflow, 0)
            assert.strictEqual(background, dark ? "rgb(20, 23, 28)" : "rgb(255, 255, 255)")
            assert.strictEqual(plots.length, 3)
            for (const plot of plots) assert.isAbove(plot, width * 0.6)
            assert.deepStrictEqual(said, [])
            yield* Effect.promise(() => page.close())
          }
        }
      }).pipe(Effect.scoped))
  })
}
