/** The beginning of a text, on one line, with a mark where it was cut. */
export const shortened = (text: string, most: number): string => {
  const characters = Array.from(text.replace(/\s+/gu, " "))
  return characters.length <= most ? characters.join("") : `${characters.slice(0, most - 1).join("")}\u2026`
}

const widthOfOne = (character: string): number => {
  if (/[MWmw@%\u2026]|\p{Extended_Pictographic}|[\u2e80-\uffff]/u.test(character)) return 12.5
  return /[\p{Lu}<>+=#&]/u.test(character) ? 10.2 : 7.8
}

/** How wide a text of 12 pixels is at most in usual fonts, in pixels. */
export const widthOf = (text: string): number =>
  Array.from(text).reduce((width, character) => width + widthOfOne(character), 0)
