import { look } from "../safe.ts"

const number = (value: unknown): number | undefined => typeof value === "number" ? value : undefined

/**
 * The HTTP status of an error, wherever its maker put it: AWS SDK v3 in `$metadata`, AWS SDK v2 and most clients in
 * `statusCode` or `status`, others in their `response`, Effect's HTTP client in the response of its `reason`.
 */
export const statusOf = (error: any): number | undefined =>
  number(look(() => error.$metadata?.httpStatusCode)) ??
    number(look(() => error.statusCode)) ??
    number(look(() => error.status)) ??
    number(look(() => error.response?.status)) ??
    number(look(() => error.reason?.response?.status))
