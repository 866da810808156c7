// Packs both packages, and the site for any static host, into the folder `release`, with their hashes. With --dry-run, as in the gate, npm then goes through
// the publication of each, and an address that is missing is only reported.
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { addresses, apply } from "./addresses.mjs"

process.chdir(fileURLToPath(new URL("..", import.meta.url)))
const isDry = process.argv.includes("--dry-run")
const npm = (...args) => execFileSync("npm", args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })

/** The registry refuses a provenance that is from another repository than the package names, or from none. */
if (addresses.repository === "") {
  console.error(
    `.config/addresses.json has no "repository", without which npm publishes nothing with provenance
The project has no address yet: it cannot be released.`
  )
  if (!isDry) process.exit(1)
}

const folder = "release"
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
if (!isDry) for (const step of ["verify", "release:check"]) npm("run", step)
npm("run", "--silent", "build")
const restore = apply(addresses)
let packed
try {
  packed = [[], ["--workspace", "@effect-retry/lab"]].flatMap((which) =>
    Object.values(JSON.parse(npm("pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...which)))
  )
} finally {
  restore()
}

const sumOf = (filename) =>
  `${createHash("sha512").update(readFileSync(`${folder}/${filename}`)).digest("hex")}  ${filename}\n`

const sums = packed.map(({ entryCount, filename, size }) => {
  console.log(`${filename}: ${entryCount} files, ${Math.round(size / 1000)} kB`)
  if (isDry) npm("publish", "--dry-run", "--ignore-scripts", "--access", "public", `./${folder}/${filename}`)
  return sumOf(filename)
})

// In a dry run it is the site that the tests have built.
const site = "docs/site/dist"
if (!isDry) npm("run", "--silent", "site")
if (existsSync(site)) {
  execFileSync("tar", ["-czf", `${folder}/site.tgz`, "-C", site, "."])
  console.log("site.tgz: the site, for a static host")
  sums.push(sumOf("site.tgz"))
}
writeFileSync(`${folder}/SHA512SUMS`, sums.join(""))
