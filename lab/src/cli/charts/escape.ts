const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "\"": "&quot;",
  "'": "&#39;"
}

/** The text of what {@link escaped} gave. */
export const unescaped = (text: string): string =>
  Object.entries(entities).reduceRight((rest, [character, entity]) => rest.replaceAll(entity, character), text)

/** Characters that no document may hold, control characters and lone surrogates, and those that reverse the order of text. */
const forbidden =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\p{Surrogate}/gu

/** Text as it may stand between tags and in quoted attributes, in HTML and in XML. */
export const escaped = (text: string): string =>
  text.replace(forbidden, "\ufffd").replace(/[&<>"']/g, (character) => entities[character]!)
