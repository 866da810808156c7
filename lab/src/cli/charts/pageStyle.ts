import { bad, darkRules, doubtful, good, grid, ink, paper, shade, shadeInk, soft } from "./palette.ts"
import { stopRules } from "./timePanel.ts"

const variables = (ground: "light" | "dark"): string =>
  `--ink:${ink[ground]};--soft:${soft[ground]};--grid:${grid[ground]};--paper:${paper[ground]};` +
  `--warn:${shade[ground]};--warn-ink:${shadeInk[ground]};` +
  `--good:${good[ground]};--doubtful:${doubtful[ground]};--bad:${bad[ground]}`

/** The rules of the page. */
export const style = `
:root{color-scheme:light dark;${variables("light")}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
main{max-width:80rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .25rem}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-bottom:.3rem;border-bottom:1px solid var(--grid)}
h3{font-size:1rem;margin:0}
h4{font-size:.8125rem;margin:0 0 .1rem;font-weight:600}
p{margin:.4rem 0;max-width:60rem}
small{color:var(--soft);font-size:.6875rem;display:block;line-height:1.2}
.soft,figcaption p,.legend,summary,caption,.description{color:var(--soft)}
.soft,.description{font-size:.875rem}
.text{white-space:pre-line}
.verdict{font-size:1.25rem;line-height:1.45;margin:1rem 0 .5rem}
.warn{background:var(--warn);color:var(--warn-ink);border:1px solid currentColor;border-radius:.4rem;padding:.6rem .9rem;font-weight:600}
.setup{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.75rem 1.5rem;margin:1rem 0;padding:.75rem 0;border:solid var(--grid);border-width:1px 0;font-size:.875rem}
.setup div{min-width:0}
.setup dt{color:var(--soft);font-size:.75rem}
.figures{display:grid;gap:2.25rem 2rem;align-items:start}
.figures.one{grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr))}
.figures.one .panels{display:block}
figure{margin:0;min-width:0}
figcaption p{margin:.1rem 0 .35rem;font-size:.875rem}
figure svg[role=img]{display:block;width:100%;height:auto;max-width:36rem}
.success{margin:1rem 0}
figure.success svg[role=img]{max-width:none}
.narrow{display:none}
h1 small{font-size:1rem;font-weight:600;line-height:1.4;margin-top:.25rem}
.panels{display:grid;gap:1rem 1.25rem}
.panels>div{min-width:0}
.c2{grid-template-columns:repeat(2,minmax(0,1fr))}
.c3{grid-template-columns:repeat(3,minmax(0,1fr))}
.c4{grid-template-columns:repeat(4,minmax(0,1fr))}
.c5{grid-template-columns:repeat(5,minmax(0,1fr))}
${stopRules}
.key{width:.75rem;height:.75rem;margin-right:.4rem;vertical-align:-.05rem;flex:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:0 0 .4rem;padding:0;font-size:.875rem}
.legend li{display:flex;align-items:center;min-width:0}
details{margin:.35rem 0}
summary{cursor:pointer;font-size:.8125rem;width:fit-content}
summary:focus-visible,.scroll:focus-visible,.panels:focus-visible{outline:2px solid var(--ink);outline-offset:2px}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;overflow-wrap:normal;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 .3rem;white-space:normal;font-size:.8125rem}
th,td{padding:.3rem .9rem .3rem 0;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap;vertical-align:top}
th:last-child,td:last-child{padding-right:0}
th[scope=row],th[scope=rowgroup]{font-weight:600;text-align:left}
table bdi{white-space:normal;overflow-wrap:anywhere;display:inline-block;width:max-content;max-width:min(18rem,40vw);vertical-align:top}
thead th{color:var(--soft);font-weight:500;white-space:normal;overflow-wrap:break-word;min-width:4.6rem;max-width:12rem;vertical-align:bottom}
thead th:first-child{text-align:left}
.rank{width:100%}
.rank td,.rank th{padding:.45rem .75rem .45rem 0}
.rank .best{background:color-mix(in srgb,var(--good) 9%,transparent)}
.all th[scope=row]{font-weight:400;color:var(--soft);padding-left:.75rem;white-space:normal;min-width:10rem}
.all th[scope=rowgroup]{padding-top:1rem}
.badge{display:inline-block;border:1px solid currentColor;border-radius:1rem;padding:0 .6rem;font-weight:600;font-size:.8125rem}
.good{color:var(--good)}.doubtful{color:var(--doubtful)}.bad{color:var(--bad)}
.bar{display:block;width:100%;min-width:5rem;height:.5rem;margin:.25rem 0 .1rem}
.bar .ground{fill:var(--grid)}.bar .full{fill:var(--good)}.bar .range{stroke:var(--ink);stroke-width:2;fill:none}
pre{background:color-mix(in srgb,var(--grid) 45%,transparent);padding:.75rem .9rem;border-radius:.4rem;overflow-x:auto;font:.8125rem/1.45 ui-monospace,monospace;white-space:pre-wrap}
dl.again{display:grid;grid-template-columns:minmax(6rem,max-content) minmax(0,1fr);gap:.15rem 1.25rem;margin:.75rem 0;font-size:.9375rem}
.again dt{color:var(--soft);max-width:22rem}
dd{margin:0}
code{font:.9em ui-monospace,monospace}
@media screen and (max-width:64rem){
.c3,.c4,.c5{grid-template-columns:repeat(auto-fill,minmax(15rem,1fr))}
}
@media screen and (max-width:34rem){
h1{font-size:1.25rem}
.wide{display:none}
.narrow{display:block}
main{padding:1rem .9rem 2rem}
.verdict{font-size:1.0625rem}
.setup{grid-template-columns:minmax(0,1fr)}
.many .panels,.map .panels{display:flex;overflow-x:auto;scroll-snap-type:x proximity;padding-bottom:.4rem}
.many .panels>div,.map .panels>div{flex:0 0 17rem;scroll-snap-align:start}
.panels>.first{order:-1}
dl.again{grid-template-columns:minmax(0,1fr)}
.again dd{margin-bottom:.4rem}
.rank,.rank tbody,.rank caption{display:block;width:auto}
.rank thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.rank tr{display:grid;grid-template-columns:1fr 1fr;gap:.1rem 1rem;padding:.6rem 0;border-bottom:1px solid var(--grid)}
.rank th[scope=row],.rank td{border:0;padding:0;text-align:left;white-space:normal}
.rank th[scope=row]{align-self:center}
.rank td::before{content:attr(data-head);display:block;color:var(--soft);font-size:.6875rem}
.rank td:first-of-type{text-align:right}
.rank td:first-of-type::before{content:none}
.rank .best{margin:0 -.5rem;padding:.6rem .5rem}
}
@media screen and (prefers-color-scheme:dark){:root{${variables("dark")}}${darkRules("svg")}}
@media print{
@page{margin:12mm}
:root{color-scheme:light;font-size:13px}
body{print-color-adjust:exact;-webkit-print-color-adjust:exact}
main{max-width:none;padding:0}
.verdict{font-size:12pt}
.figures{display:block}
.figures.one{columns:2}
.panels{gap:.5rem .75rem}
.c5{grid-template-columns:repeat(3,minmax(0,1fr))}
.panels>div,pre,tr,.legend,.figures.one figure{break-inside:avoid}
figure{margin-bottom:1.25rem}
h2,h3,figcaption,caption{break-after:avoid}
details:not([open]),.t,.h{display:none}
.scroll{overflow:visible}
table{font-size:7.5pt;width:100%}
th,td{padding-right:.4rem;white-space:normal}
thead th{min-width:0;overflow-wrap:normal}
small{font-size:6.5pt}
.badge{white-space:nowrap;font-size:7.5pt}
table bdi{width:auto;max-width:2.8cm}
}
`
