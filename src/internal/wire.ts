import { get } from "./safe.ts"

const number = (value: unknown): number | undefined => typeof value === "number" ? value : undefined

/**
 * The HTTP status of an error, wherever its maker put it: AWS SDK v3 in `$metadata`, AWS SDK v2 and most clients in
 * `statusCode` or `status`, others in their `response`, Effect's HTTP client in the response of its `reason`.
 */
export const statusOf = (error: unknown): number | undefined =>
  number(get(get(error, "$metadata"), "httpStatusCode")) ??
    number(get(error, "statusCode")) ??
    number(get(error, "status")) ??
    number(get(get(error, "response"), "status")) ??
    number(get(get(get(error, "reason"), "response"), "status"))
