/** How the site is searched: words as typed before their beginnings, guides before the reference. */

/** Headings of the reference that say nothing of what is below them. They are found by the name above. */
const empty = /^(?:Parameters|Properties|Returns|Call Signature|Type Parameters|Type Declaration|Methods|Constructors?|Extends|Inherited from|Overrides|Example|Default)$/

/**
 * A page without folded code, and one of the reference without such headings and without those below them, such as the
 * names of parameters.
 */
export const indexed = (path, page) => {
  if (!path.startsWith("reference/")) return page.replace(/^<details class="whole">[^]*?<\/details>\n/gm, "")
  let below = 0
  return page.split("\n").map((line) => {
    const [, marks, title] = /^(#{2,6}) (.*)$/.exec(line) ?? []
    if (marks === undefined) return line
    if (below > 0 && marks.length > below) return title
    below = empty.test(title.replace(/[\\?]/g, "")) ? marks.length : 0
    return below > 0 ? "" : line
  }).join("\n")
}

/** These run in the browser: each stands alone. */
export const searchOptions = {
  prefix: (term) => term.length > 3,
  fuzzy: (term) => term.length > 5 ? 0.15 : false,
  boost: { title: 6, titles: 2, text: 1 },
  boostDocument: (id) => {
    if (/(?:^|\/)(?:reference|examples|changelog)\b/.test(id)) return 0.2
    return /(?:^|\/)(?:evidence|maintaining|contributing|migrating|aws-modes|modules)\b/.test(id) ? 0.3 : 1
  }
}
