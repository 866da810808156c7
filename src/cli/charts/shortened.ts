/** The beginning of a text, on one line, with a mark where it was cut. */
export const shortened = (text: string, most: number): string => {
  const characters = Array.from(text.replace(/\s+/gu, " "))
  return characters.length <= most ? characters.join("") : `${characters.slice(0, most - 1).join("")}\u2026`
}
