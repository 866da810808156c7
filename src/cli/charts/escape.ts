const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "\"": "&quot;",
  "'": "&#39;"
}

/** What no document may hold: control characters and halves of surrogate pairs. */
// oxlint-disable-next-line no-control-regex
const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff]|\p{Surrogate}/gu

/** Text as it may stand between tags and in quoted attributes, in HTML and in XML. */
export const escaped = (text: string): string =>
  text.replace(forbidden, "\ufffd").replace(/[&<>"']/g, (character) => entities[character]!)
