import * as Explain from "@effect-retry/lab/Explain"
import { assert, describe, it } from "@effect/vitest"
import { awsStandard } from "effect-retry/aws/AwsModes"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { explainSvg } from "../../lab/src/cli/charts/explainChart.ts"
import { report } from "../../lab/src/cli/charts/report.ts"
import { hostile, hostileScenario, runOf, short } from "../../lab/test/cli/scenarios.ts"
import { newPage } from "../utils/browsers.ts"
import { PeerError, temporaryFolder } from "../utils/peers.ts"
import { shared } from "../utils/shared.ts"

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium"

/** Chromium without a window. It is closed with the scope. */
const startChromium: Effect.Effect<Browser, PeerError, Scope.Scope> = Effect.acquireRelease(
  Effect.tryPromise({
    try: () =>
      chromium.launch({
        executablePath,
        timeout: 0,
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
      }),
    catch: (error) => new PeerError({ message: String(error) })
  }),
  (browser) => Effect.promise(() => browser.close())
)

/** A page that is open, and everything that was said and asked for while it opened. */
interface Opened {
  readonly page: Page
  readonly said: ReadonlyArray<string>
  readonly requests: ReadonlyArray<string>
}

const open = (browser: Browser, url: string, options: BrowserContextOptions = {}): Effect.Effect<Opened> =>
  Effect.promise(async () => {
    const page = await newPage(await browser.newContext(options))
    const said: Array<string> = []
    const requests: Array<string> = []
    page.on("console", (message) => said.push(message.text()))
    page.on("pageerror", (error) => said.push(String(error)))
    page.on("dialog", (dialog) => {
      said.push(`dialog ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on("request", (request) => requests.push(request.url()))
    await page.goto(url)
    return { page, said, requests }
  })

/** What is seen of the page. */
const look = ({ page }: Opened) =>
  Effect.promise(() =>
    page.evaluate(`({
      background: getComputedStyle(document.body).backgroundColor,
      ink: getComputedStyle(document.body).color,
      axis: getComputedStyle(document.querySelector("figure svg[role=img] text")).fill,
      text: document.body.innerText,
      overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      figures: document.querySelectorAll("figure").length,
      scripts: document.querySelectorAll("script, img, iframe, [onload], [onclick], [onerror]").length,
      unnamed: [...document.querySelectorAll("svg[role=img], [role=region], [role=group]")]
        .filter((one) => (one.getAttribute("aria-label") ?? "").length < 5).length,
      verdict: document.querySelector(".verdict").getBoundingClientRect().bottom,
      badges: [...document.querySelectorAll(".rank .badge")].map((badge) => badge.getBoundingClientRect().right),
      charts: [...document.querySelectorAll("figure svg[role=img]")]
        .map((svg) => svg.getBoundingClientRect())
        .filter(({ width, height }) => width > 0 && height > 0)
        .map(({ width, height }) => ({ width, height })),
      outside: [...document.querySelectorAll("figure svg[role=img] text")].filter((text) => {
        const inner = text.getBoundingClientRect()
        const outer = text.closest("svg").getBoundingClientRect()
        return getComputedStyle(text).visibility === "visible" && inner.width > 0 && (inner.left < outer.left - 2 || inner.right > outer.right + 2)
      }).map((text) => text.textContent)
    })`).then((seen) => seen as Seen)
  )

interface Seen {
  readonly background: string
  readonly ink: string
  readonly axis: string
  readonly text: string
  readonly overflow: number
  readonly figures: number
  readonly scripts: number
  /** Pictures, tables and groups without an accessible name. */
  readonly unnamed: number
  /** Where the verdict ends. */
  readonly verdict: number
  /** Where the badges with what becomes of the calls are, from the left. */
  readonly badges: ReadonlyArray<number>
  readonly charts: ReadonlyArray<{ readonly width: number; readonly height: number }>
  readonly outside: ReadonlyArray<string>
}

const hostileRuns = Effect.all([
  runOf(hostile.label, hostileScenario),
  runOf("naive", hostileScenario, "naive")
])

const write = Effect.gen(function*() {
  const folder = yield* temporaryFolder
  const write = (name: string, text: string) => {
    const file = path.join(folder, name)
    fs.writeFileSync(file, text)
    return pathToFileURL(file).href
  }
  const [first, ...others] = yield* hostileRuns
  return {
    plain: write("plain.html", report([yield* runOf("quota", short)], { command: "effect-retry simulate short" })),
    hostile: write("hostile.html", report([first, ...others], { command: hostile.command })),
    strict: write(
      "strict.xhtml",
      report([first, ...others], { command: hostile.command }).replace(
        "<html",
        `<html xmlns="http://www.w3.org/1999/xhtml"`
      )
    ),
    picture: write("explain.svg", explainSvg({ ...Explain.explain(awsStandard), name: hostile.name }))
  }
})

/** The same page in all the ways that it is looked at. */
const ways: ReadonlyArray<readonly [name: string, options: BrowserContextOptions]> = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["without JavaScript", { colorScheme: "light", javaScriptEnabled: false }],
  ["narrow", { colorScheme: "light", viewport: { width: 390, height: 800 } }]
]

describe("report in Chromium", () => {
  const written = shared(write)
  const started = shared(startChromium)

  it.live("shows every chart in every way, requests nothing else, and nothing in it runs", () =>
    Effect.gen(function*() {
      const [files, browser] = [written(), started()]
      for (const file of [files.plain, files.hostile]) {
        const seen = new Map<string, Seen>()
        for (const [name, options] of ways) {
          const opened = yield* open(browser, file, options)
          const sight = yield* look(opened)
          assert.deepStrictEqual(opened.said, [], name)
          assert.deepStrictEqual(opened.requests, [file], name)
          assert.isAbove(sight.figures, 4)
          assert.isAtLeast(sight.charts.length, sight.figures, name)
          for (const { height, width } of sight.charts) {
            assert.isTrue(width > 230 && height > 60, `${name} ${width} x ${height}`)
          }
          assert.deepStrictEqual(sight.outside, [], name)
          assert.isAtMost(sight.overflow, 0, name)
          assert.strictEqual(sight.scripts, 0)
          assert.strictEqual(sight.unnamed, 0)
          assert.isBelow(sight.verdict, 800, name)
          assert.isAbove(sight.badges.length, 0)
          for (const right of sight.badges) assert.isAtMost(right, options.viewport?.width ?? 1280, name)
          seen.set(name, sight)
          yield* Effect.promise(() => opened.page.context().close())
        }
        const [light, dark, still] = ["light", "dark", "without JavaScript"].map((name) => seen.get(name)!)
        assert.deepStrictEqual(still, light)
        assert.strictEqual(light!.background, "rgb(255, 255, 255)")
        assert.strictEqual(dark!.background, "rgb(20, 23, 28)")
        assert.notStrictEqual(dark!.axis, light!.axis)
        assert.notStrictEqual(dark!.ink, light!.ink)
      }
    }).pipe(Effect.scoped))

  it.live("shows the numbers of one time in all pictures under a pointer, without a script", () =>
    Effect.gen(function*() {
      const [files, browser] = [written(), started()]
      const { page } = yield* open(browser, files.hostile, { javaScriptEnabled: true })
      const told = () =>
        Effect.promise(() =>
          page.evaluate(`[...document.querySelectorAll("g.t")]
            .filter((one) => getComputedStyle(one).visibility === "visible")
            .map((one) => one.textContent.split(":")[0])`).then((found) => found as ReadonlyArray<string>)
        )
      assert.deepStrictEqual(yield* told(), [])
      const pictures = yield* Effect.promise(() => page.locator("figure svg[role=img]:has(.h)").count())
      yield* Effect.promise(() => page.locator("figure svg[role=img] .h5").nth(1).hover())
      const found = yield* told()
      assert.strictEqual(found.length, pictures)
      assert.strictEqual(new Set(found.map((time) => Math.round(Number.parseFloat(time)))).size, 1)
    }).pipe(Effect.scoped))

  it.live("shows names as they are, is XML too, fits on paper, and so does the picture of a policy", () =>
    Effect.gen(function*() {
      const [files, browser] = [written(), started()]
      const page = yield* open(browser, files.hostile, { viewport: { width: 690, height: 900 } })
      const { text } = yield* look(page)
      for (const name of [hostile.name, hostile.fleet, hostile.service, hostile.other, hostile.command]) {
        assert.include(text, name)
      }
      yield* Effect.promise(() => page.page.emulateMedia({ media: "print", colorScheme: "dark" }))
      const printed = yield* look(page)
      assert.strictEqual(printed.background, "rgb(255, 255, 255)")
      assert.isAtMost(printed.overflow, 0)

      for (const file of [files.strict, files.picture]) {
        const opened = yield* open(browser, file)
        const errors = yield* Effect.promise(() =>
          opened.page.evaluate(`document.querySelectorAll("parsererror, script").length`)
        )
        assert.deepStrictEqual({ errors, said: opened.said, requests: opened.requests }, {
          errors: 0,
          said: [],
          requests: [file]
        })
      }
    }).pipe(Effect.scoped))
})
