/** The site of the documentation: built as anyone builds it, every link followed, opened in Chromium. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { type Browser, type BrowserContextOptions, chromium } from "playwright-core"
import { newPage } from "../utils/browsers.ts"

const site = fileURLToPath(new URL("../../docs/site/", import.meta.url))
const built = path.join(site, "dist")

const pages = () =>
  fs.readdirSync(built, { recursive: true }).map(String).filter((name) => name.endsWith(".html") && name !== "404.html")

const types: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2"
}

/** The file behind an address of the site, whose pages are named without their ending. */
const fileOf = (address: string): string | undefined =>
  [address, `${address}.html`, path.join(address, "index.html")].map((name) => path.join(built, name))
    .find((name) => fs.existsSync(name) && fs.statSync(name).isFile())

describe("the site", () => {
  let browser: Browser
  let server: http.Server
  let origin: string

  beforeAll(async () => {
    await promisify(execFile)("npm", ["run", "build"], { cwd: site, maxBuffer: 2 ** 26 })
    server = http.createServer((request, response) => {
      const file = fileOf(decodeURIComponent(new URL(request.url!, "http://site").pathname))
      if (file === undefined) return response.writeHead(404).end()
      response.writeHead(200, { "content-type": types[path.extname(file)] ?? "application/octet-stream" })
      return response.end(fs.readFileSync(file))
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await chromium.launch({
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      timeout: 0,
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    })
  })

  afterAll(async () => {
    await browser.close()
    server.close()
  })

  const opened = async (address: string, options: BrowserContextOptions = {}) => {
    const context = await browser.newContext(options)
    const page = await newPage(context)
    const said: Array<string> = []
    page.on("pageerror", (error) => said.push(String(error)))
    page.on("console", (message) => message.type() === "error" && said.push(message.text()))
    await page.goto(origin + address, { waitUntil: "networkidle" })
    return { page, said, close: () => context.close() }
  }

  it("has a page for every question, a reference for every module, every example", () => {
    const names = pages()
    const modules = Object.values(
      JSON.parse(fs.readFileSync(path.join(site, "../../package.json"), "utf8")).exports as Record<string, string>
    ).filter((file) => file.endsWith(".js"))
    assert.strictEqual(names.filter((name) => /^reference\/(?!index)/.test(name)).length, modules.length - 1)
    const examples = fs.readdirSync(path.join(site, "../../examples"), { recursive: true }).map(String)
    assert.strictEqual(
      names.filter((name) => /^examples\/(?!index)/.test(name)).length,
      examples.filter((name) => name.endsWith(".ts")).length
    )
  })

  it("has no broken links, anchors included", () => {
    const read = new Map<string, string>()
    const textOf = (file: string) => read.get(file) ?? (read.set(file, fs.readFileSync(file, "utf8")), read.get(file)!)
    const broken: Array<string> = []
    let links = 0
    for (const name of pages()) {
      for (
        const [, target, hash] of textOf(path.join(built, name)).matchAll(/<a [^>]*href="(\/[^"#]*|)(?:#([^"]*))?"/g)
      ) {
        links++
        const file = target === "" ? path.join(built, name) : fileOf(decodeURIComponent(target!))
        if (file === undefined) broken.push(`${name}: ${target}`)
        else if (hash && !textOf(file).includes(`id="${decodeURIComponent(hash)}"`)) {
          broken.push(`${name}: ${target}#${hash}`)
        }
      }
    }
    assert.isAbove(links, 1000)
    assert.deepStrictEqual(Array.from(new Set(broken)), [])
  })

  it("has a title and a description of its own on each page, and the size of each picture", () => {
    const names = pages().filter((name) => name !== "playground.html")
    const texts = names.map((name) => fs.readFileSync(path.join(built, name), "utf8"))
    for (const text of texts) assert.match(text, /<title>.+? \| effect-retry<\/title>/)
    const found = texts.map((text) => /<meta name="description" content="(.+?)">/.exec(text)?.[1])
    assert.deepStrictEqual(found.filter((text, n) => text === undefined || found.indexOf(text) !== n), [])
    const pictures = texts.flatMap((text) => text.match(/<img [^>]*>/g) ?? [])
    assert.isAbove(pictures.length, 2)
    for (const picture of pictures) assert.match(picture, / width="\d+(?:\.\d+)?" height="\d/)
  })

  it("unfolds the imports of code that does not show them", () => {
    const page = fs.readFileSync(path.join(built, "http.html"), "utf8")
    assert.isAbove(page.split("<summary>With its imports</summary>").length, 6)
  })

  it.each<[string, BrowserContextOptions]>([
    ["light", { viewport: { width: 1280, height: 900 } }],
    ["dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
    ["a phone", { viewport: { width: 390, height: 844 }, isMobile: true }]
  ])("opens: %s", async (_, options) => {
    for (const address of ["/", "/start", "/overload", "/reference/RetryPolicy", "/examples/", "/playground.html"]) {
      const { close, page, said } = await opened(address, options)
      assert.isNotEmpty(await page.locator("h1").first().innerText())
      const overflow = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
      )
      assert.deepStrictEqual([overflow, said], [0, []], address)
      await close()
    }
  })

  it("finds what is searched for", async () => {
    const { close, page } = await opened("/start")
    await page.keyboard.press("Control+k")
    await page.locator("#localsearch-input").fill("long hint herd")
    const first = page.locator(".VPLocalSearchBox .result").first()
    await first.waitFor()
    assert.isNotEmpty(await first.innerText())
    await first.click()
    await page.waitForURL((url) => url.pathname !== "/start")
    await close()
  })
})
