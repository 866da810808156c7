import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import puppeteer, { type Browser } from "puppeteer-core"
import { PeerError } from "./peers.ts"

/** Browsers as they are installed. Playwright drives Chromium alone of those. */
const executables = {
  Chromium: { browser: "chrome", executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium" },
  Firefox: { browser: "firefox", executablePath: process.env["FIREFOX"] ?? "/usr/bin/firefox-esr" }
} as const

export const browsers = ["Chromium", "Firefox"] as const

/** A browser without a window. It is closed with the scope. */
export const startBrowser = (name: typeof browsers[number]): Effect.Effect<Browser, PeerError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        puppeteer.launch({
          ...executables[name],
          headless: true,
          timeout: 0,
          protocolTimeout: 0,
          args: name === "Chromium" ? ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] : []
        }),
      catch: (error) => new PeerError({ message: String(error) })
    }),
    (browser) => Effect.promise(() => browser.close())
  )

/** A page that waits as long as its test does. */
export const newPage = async <Page extends { setDefaultTimeout: (millis: number) => void }>(
  browser: { readonly newPage: () => Promise<Page> }
): Promise<Page> => {
  const page = await browser.newPage()
  page.setDefaultTimeout(0)
  return page
}

/** Serves pages by their path, and answers with the origin. */
export const serving = (pages: Readonly<Record<string, string>>): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<http.Server>((resolve) => {
          const server = http.createServer((request, response) => {
            const page = pages[request.url ?? ""]
            response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" })
            response.end(page)
          })
          server.listen(0, "127.0.0.1", () => resolve(server))
        })
      ),
      (server) =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )
