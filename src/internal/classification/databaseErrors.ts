import { short } from "../tryGet.ts"

/**
 * SQLSTATEs, words of pg, a code of SQLite, and labels of MongoDB. In the group is what had no effect: the transaction was rolled back, or
 * nothing ran. Source: PostgreSQL, "PostgreSQL Error Codes", classes 40, 53, 57P, 08; pg 8, `lib/client.js`;
 * mongodb/specifications, `client-backpressure.md`, `transactions.md`.
 */
const words =
  /^(?:(40(?!00[23])\w{3}|53\w{3}|57P03|0800[14]|SQLITE_CANTOPEN\w*|RetryableError|TransientTransactionError)|40003|57P0[125]|08(?!P01)\w{3}|Connection terminated unexpectedly|SystemOverloadedError)$/

const read = (word: unknown) => words.exec(short(word))

const isReadable = (word: unknown): boolean => read(word) !== null

/** What an error of a database says: of PostgreSQL, of a driver with `sqlState` such as mysql2, or of MongoDB. */
export const databaseInfo = (error: any) => {
  const labels = error.errorLabels
  if (labels === undefined && !isReadable(error.code) && !isReadable(error.sqlState) && !isReadable(error.message)) {
    return undefined
  }
  const texts = [error.code, error.sqlState, error.message, ...labels ?? []].filter(isReadable)
  return texts.length === 0 ? undefined : {
    safety: texts.some((word) => read(word)![1]) ? "Yes" : "Maybe",
    throttling: texts.includes("SystemOverloadedError"),
    fault: "server",
    retryAfter: error.retryAfterMS ?? error.baseBackoffMS
  } as const
}
