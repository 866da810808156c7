// The addresses of the project, from one setting, `.config/addresses.json`, which is empty until it has any: `repository`,
// such as of a Git host, without `.git`, and `site`, where `npm run site` is published. Without them the READMEs link to
// the files next to them, and the packages name no address. `apply` writes them into what is packed.
import { readFileSync, writeFileSync } from "node:fs"
import { groups, placeOf } from "../docs/site/pages.js"

const root = new URL("../", import.meta.url)
const read = (path) => readFileSync(new URL(path, root), "utf8")

export const addresses = JSON.parse(read(".config/addresses.json"))

const pages = groups.flatMap(({ pages }) => pages.map(([page]) => page))

/** Where the site is below its host, such as `/effect-retry/`. */
export const baseOf = ({ site }) => site === "" ? "/" : new URL(site.replace(/\/*$/, "/")).pathname

/** Where a file of the repository is on the web; nothing where it is nowhere. */
export const addressOf = (path, { repository, site }, kind = "blob") => {
  if (site !== "" && kind === "blob" && pages.includes(path)) return `${site.replace(/\/+$/, "")}/${placeOf(path)}`
  return repository === "" ? undefined : `${repository}/${kind}/HEAD/${path}`
}

/** A page with absolute addresses in place of links to files. `folder` is that of the page, such as `lab/`. */
export const linked = (text, addresses, folder = "") => {
  const absolute = (link, kind) => {
    const { hash, pathname } = new URL(link, `file:///${folder}`)
    const address = addressOf(pathname.slice(1), addresses, kind)
    return address === undefined ? link : `${address}${hash}`
  }
  return text
    .replace(/\]\((?!\w+:|#)([^)\s]+)\)/g, (_, link) => `](${absolute(link, /\.(?:svg|png)$/.test(link) ? "raw" : "blob")})`)
    .replace(/\b(src|srcset)="(?!\w+:)([^"]+)"/g, (_, name, link) => `${name}="${absolute(link, "raw")}"`)
}

/** The fields of a package that name an address. */
export const fieldsOf = ({ repository, site }, folder = "") => ({
  ...(site === "" && repository === "" ? {} : { homepage: site === "" ? `${repository}#readme` : site }),
  ...(repository === "" ? {} : {
    repository: { type: "git", url: `git+${repository}.git`, ...(folder === "" ? {} : { directory: folder.slice(0, -1) }) },
    bugs: { url: `${repository}/issues` }
  })
})

/** What is packed, with its addresses: the text of each file that has any. */
export const withAddresses = (addresses) =>
  Object.fromEntries(["", "lab/"].flatMap((folder) => {
    const { description, keywords, name, version, ...rest } = JSON.parse(read(`${folder}package.json`))
    const manifest = { name, version, description, keywords, ...fieldsOf(addresses, folder), ...rest }
    return [
      [`${folder}package.json`, `${JSON.stringify(manifest, null, 2)}\n`],
      [`${folder}README.md`, linked(read(`${folder}README.md`), addresses, folder)]
    ]
  }))

/** Writes them, and returns what brings the files back. */
export const apply = (addresses) => {
  const written = withAddresses(addresses)
  const before = Object.keys(written).map((path) => [path, read(path)])
  for (const [path, text] of Object.entries(written)) writeFileSync(new URL(path, root), text)
  return () => {
    for (const [path, text] of before) writeFileSync(new URL(path, root), text)
  }
}
