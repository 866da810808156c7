import { defineConfig } from "vitepress"
import { addresses, baseOf } from "../../../.ci/addresses.mjs"
import { groups, placeOf } from "../pages.js"
import { indexed, searchOptions } from "../search.js"

/** Anchors as GitHub makes them, so that a link is right in both. */
const slugify = (heading) =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-")

/** Evidence and what maintainers read are folded. */
const isFolded = ({ kind }) => kind === "evidence" || kind === "maintain"

export default defineConfig({
  title: "effect-retry",
  description: "Retry policies, quotas, limits and gates for Effect",
  lang: "en-US",
  base: baseOf(addresses),
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${baseOf(addresses)}icon.svg` }]],
  srcDir: "pages",
  outDir: "dist",
  cleanUrls: true,
  ...(addresses.site === "" ? {} : { sitemap: { hostname: addresses.site } }),
  markdown: {
    anchor: { slugify },
    toc: { slugify },
    headers: { slugify },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" }
  },
  transformHead: ({ description, title }) => [
    ["meta", { property: "og:type", content: "website" }],
    ["meta", { property: "og:site_name", content: "effect-retry" }],
    ["meta", { property: "og:title", content: title }],
    ["meta", { property: "og:description", content: description }],
    ["meta", { name: "twitter:card", content: "summary" }]
  ],
  themeConfig: {
    search: {
      provider: "local",
      options: {
        miniSearch: { searchOptions },
        _render: (source, env, md) => md.render(indexed(env.relativePath, source), env)
      }
    },
    outline: [2, 3],
    nav: [
      { text: "Start", link: "/start" },
      { text: "Examples", link: "/examples/" },
      { text: "Reference", link: "/reference/" },
      { text: "Playground", link: "/playground.html", target: "_self" }
    ],
    ...(addresses.repository === "" ? {} : { socialLinks: [{ icon: "git", link: addresses.repository }] }),
    sidebar: groups.map((group) => ({
      text: group.text,
      ...(isFolded(group) ? { collapsed: true } : {}),
      items: [
        ...group.pages.map(([page, title]) => ({ text: title, link: `/${placeOf(page)}` })),
        ...(group.kind === "reference"
          ? [{ text: "Examples", link: "/examples/" }, { text: "Reference", link: "/reference/" }]
          : [])
      ]
    }))
  }
})
