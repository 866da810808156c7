import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The licenses of the packages that parts of a bundle come from, as text. Paths of the metafile are relative to the folder. */
export const licensesOf = ({ outputs }, from) => {
  const packages = new Set(
    Object.values(outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .flatMap(([path]) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? [])
  )
  const texts = [...packages].sort().map((path) => {
    const folder = join(from, path)
    const { license, name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    const files = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile() && /^(licen[cs]e|notice|copying)/i.test(entry.name))
      .map((entry) => entry.name)
      .sort()
    if (files.length === 0 && license !== "MIT") throw new Error(`${name} is bundled and has no license file`)
    return [`${name} ${version} (${license})`, ...files.map((file) => readFileSync(join(folder, file), "utf8").trim())]
      .join("\n\n")
  })
  return texts.join(`\n\n${"-".repeat(80)}\n\n`)
}
