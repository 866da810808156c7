import { short } from "../tryGet.ts"

/**
 * SQLSTATEs, words of pg, a code of SQLite, and labels of MongoDB. `undone` is what had no effect: the transaction was rolled back, or
 * nothing ran. `final` is what the same statement does again: its data, a constraint, its syntax, what it may access.
 * Source: PostgreSQL, "PostgreSQL Error Codes", classes 40, 53, 57P, 08, 22, 23, 42; pg 8, `lib/client.js`;
 * mongodb/specifications, `client-backpressure.md`, `transactions.md`.
 */
const words =
  /^(?:(?<undone>40(?!00[23])\w{3}|53\w{3}|57P03|0800[14]|SQLITE_CANTOPEN\w*|RetryableError|TransientTransactionError)|(?<final>(?:2[23]|42)\w{3})|40003|57P0[125]|08(?!P01)\w{3}|Connection terminated unexpectedly|SystemOverloadedError)$/

const isReadable = (text: unknown): boolean => words.test(short(text))

/** What an error of a database says: of PostgreSQL, of a driver with `sqlState` such as mysql2, or of MongoDB. */
export const databaseInfo = (error: any) => {
  const { code, errorLabels, message, sqlState } = error
  // Most errors are of something else: for them nothing is allocated.
  if (errorLabels === undefined && !isReadable(code) && !isReadable(sqlState) && !isReadable(message)) return undefined
  const texts: ReadonlyArray<unknown> = [code, sqlState, message, ...errorLabels ?? []]
  const found = texts.map((text) => words.exec(short(text))).filter((found) => found !== null)
  if (found.length === 0) return undefined
  if (found.some(({ groups }) => groups!.final)) return { safety: "No" } as const
  return {
    safety: found.some(({ groups }) => groups!.undone) ? "Yes" : "Maybe",
    throttling: found.some(([word]) => word === "SystemOverloadedError"),
    fault: "server",
    retryAfter: error.retryAfterMS ?? error.baseBackoffMS
  } as const
}
