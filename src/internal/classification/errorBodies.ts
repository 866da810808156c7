import { get, look } from "../tryGet.ts"

/** A longer body, or text of one, is not read. */
const maxBodyLength = 65_536

const parsed = (body: unknown): unknown =>
  typeof body === "string" && body.length <= maxBodyLength ? look(() => JSON.parse(body)) : body

const sectionsOf = (body: unknown, depth: number): ReadonlyArray<unknown> => {
  const value = parsed(body)
  if (typeof value !== "object" || value === null) return []
  const inside = depth === 0 ? [] : [0, "error", "message"].flatMap((key) => sectionsOf(get(value, key), depth - 1))
  return [value, ...inside]
}

/** The objects in bodies: each itself, the first of a list, its `error`, the JSON in its `message`, and those in these. */
export const sectionsIn = (bodies: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  bodies.flatMap((body) => sectionsOf(body, 4))

const detailsOf = (part: unknown): string | undefined => {
  const details = get(part, "details")
  return Array.isArray(details) ? look(() => JSON.stringify(details).slice(0, maxBodyLength)) : undefined
}

/** What a pattern finds in the `details` of bodies, as JSON. Source: google.rpc, `error_details.proto`. */
export const inDetails = (bodies: ReadonlyArray<unknown>, pattern: RegExp): RegExpExecArray | null | undefined =>
  sectionsIn(bodies).map((part) => pattern.exec(detailsOf(part) ?? "")).find(Boolean)
