import * as Crypto from "node:crypto"
import { darkRules, grid, ink, paper, shade, shadeInk, soft } from "./palette.ts"

const variables = (ground: "light" | "dark"): string =>
  `--ink:${ink[ground]};--soft:${soft[ground]};--grid:${grid[ground]};--paper:${paper[ground]};` +
  `--warn:${shade[ground]};--warn-ink:${shadeInk[ground]}`

/** The rules of the page. */
export const style = `
:root{color-scheme:light dark;${variables("light")}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
main{max-width:84rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .25rem}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-bottom:.3rem;border-bottom:1px solid var(--grid)}
h3{font-size:1rem;margin:0}
p{margin:.4rem 0;max-width:52rem}
.soft,figcaption p,.legend,summary,caption{color:var(--soft)}
.text{white-space:pre-line}
.warn{background:var(--warn);color:var(--warn-ink);border:1px solid currentColor;border-radius:.4rem;padding:.6rem .9rem;font-weight:600}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,34rem),1fr));gap:2rem 2.5rem;align-items:start}
figure{margin:0;min-width:0}
figcaption p{margin:.1rem 0 .35rem;font-size:.875rem}
figure svg{display:block;width:100%;height:auto}
figure svg.narrow{display:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:0 0 .4rem;padding:0;font-size:.875rem;color:var(--ink)}
.legend li{display:flex;align-items:center;gap:.45rem;min-width:0}
.legend svg{flex:none;width:44px;height:14px}
details{margin:.5rem 0}
summary{cursor:pointer;font-size:.875rem;width:fit-content}
summary:focus-visible,.scroll:focus-visible{outline:2px solid var(--ink);outline-offset:2px}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;overflow-wrap:normal;min-width:min(100%,34rem);font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 .3rem;white-space:normal}
th,td{padding:.3rem .8rem .3rem 0;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap;vertical-align:top}
th.word,td.word{text-align:left}
th:last-child,td:last-child{padding-right:0}
th[scope=row]{font-weight:600}
table bdi{white-space:normal;overflow-wrap:anywhere;display:inline-block;width:max-content;max-width:min(20rem,40vw)}
thead th.word{min-width:0}
thead th{color:var(--soft);font-weight:500;white-space:normal;overflow-wrap:anywhere;min-width:5.6rem;max-width:16rem;vertical-align:bottom}
pre{background:color-mix(in srgb,var(--grid) 45%,transparent);padding:.75rem .9rem;border-radius:.4rem;overflow-x:auto;font:.8125rem/1.45 ui-monospace,monospace;white-space:pre-wrap}
dl{display:grid;grid-template-columns:minmax(6rem,max-content) minmax(0,1fr);gap:.15rem 1.25rem;margin:.75rem 0;font-size:.9375rem}
dt{color:var(--soft);max-width:22rem}
dd{margin:0}
code{font:.9em ui-monospace,monospace}
@media screen and (max-width:34rem){
main{padding:1rem .9rem 2rem}
figure svg.wide{display:none}
figure svg.narrow{display:block}
dl{grid-template-columns:minmax(0,1fr)}
dd{margin-bottom:.4rem}
}
@media screen and (prefers-color-scheme:dark){:root{${variables("dark")}}${darkRules("svg")}}
@media print{
@page{margin:14mm}
:root{color-scheme:light}
body{font-size:10pt;print-color-adjust:exact;-webkit-print-color-adjust:exact}
main{max-width:none;padding:0}
.figures{display:block}
figure,pre,tr,.legend{break-inside:avoid}
figure{margin-bottom:1.5rem}
figure svg.wide{max-width:17cm}
h2,h3,figcaption,caption{break-after:avoid}
details:not([open]){display:none}
dl{font-size:9pt}
.scroll{overflow:visible}
table{font-size:7.5pt;width:100%;min-width:0}
th,td{padding-right:.4rem}
thead th{min-width:0;overflow-wrap:normal}
table bdi{width:auto;max-width:2.6cm}
}
`

/** The only style that the page allows. */
export const styleHash = `sha256-${Crypto.createHash("sha256").update(style).digest("base64")}`
