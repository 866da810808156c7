import { defineConfig } from "vitepress"
import { groups, placeOf } from "../pages.js"

/** Anchors as GitHub makes them, so that a link is right in both. */
const slugify = (heading) =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-")

export default defineConfig({
  title: "effect-retry",
  description: "Retry policies, quotas, limits and gates for Effect",
  lang: "en-US",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/icon.svg" }]],
  srcDir: "pages",
  outDir: "dist",
  cleanUrls: true,
  markdown: { anchor: { slugify }, toc: { slugify }, headers: { slugify } },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Start", link: "/start" },
      { text: "Examples", link: "/examples/" },
      { text: "Reference", link: "/reference/" },
      { text: "Playground", link: "/playground.html", target: "_self" }
    ],
    sidebar: [
      ...groups.map(({ pages, text }) => ({
        text,
        items: pages.map(([page, title]) => ({ text: title, link: `/${placeOf(page)}` }))
      })),
      { text: "More", items: [{ text: "Examples", link: "/examples/" }, { text: "Reference", link: "/reference/" }] }
    ]
  }
})
