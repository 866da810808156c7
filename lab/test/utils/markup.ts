/** A tag as it is in markup. */
export interface Tag {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
}

const pieces = /<!DOCTYPE html>|<\/([a-zA-Z]\w*)>|<([a-zA-Z]\w*)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>|([^<]+)|[\s\S]/gy
const text = /^(?:[^&]|&(?:amp|lt|gt|quot|#39);)*$/

const tagOf = (name: string, attributes: string): Tag => {
  const pairs = [...attributes.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, key = "", value = ""]) =>
    [key, value] as const
  )
  const byKey = new Map(pairs)
  if (byKey.size < pairs.length) throw new Error(`an attribute twice in <${name}${attributes}>`)
  return { name, attributes: byKey }
}

const checkText = (between: string, inside: string | undefined): void => {
  if (inside !== "style" && !text.test(between)) throw new Error(`a bare & in ${between}`)
}

/** Reads markup as strictly as XML is read, but for the text of a `<style>`; throws where it is wrong. */
export const tagsOf = (markup: string): ReadonlyArray<Tag> => {
  const tags: Array<Tag> = []
  const open: Array<string> = []
  for (const [all, closed, name, attributes = "", empty, between] of markup.matchAll(pieces)) {
    if (name !== undefined) {
      tags.push(tagOf(name, attributes))
      if (empty === "") open.push(name)
    } else if (closed !== undefined) {
      const opened = open.pop()
      if (opened !== closed) throw new Error(`</${closed}> closes <${opened}>`)
    } else if (between !== undefined) checkText(between, open.at(-1))
    else if (all.length === 1) throw new Error(`a bare ${all} in ${open.join(" > ")}`)
  }
  if (open.length > 0) throw new Error(`not closed: ${open.join(" > ")}`)
  return tags
}
