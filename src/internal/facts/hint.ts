import { get } from "../safe.ts"

/** A header longer than this is not read. */
const maxHeaderLength = 256

const digits = /^\d+$/

/** A count of whole units, without sign, fraction, exponent or other digits: `undefined` for anything else. */
const count = (header: unknown): number | undefined => {
  if (typeof header !== "string" || header.length > maxHeaderLength) return undefined
  const trimmed = header.trim()
  return digits.test(trimmed) ? Math.min(Number(trimmed), Number.MAX_SAFE_INTEGER) : undefined
}

interface Headers {
  readonly [name: string]: unknown
}

/** A header of a plain record, in lower case or as HTTP writes it, or of a `Headers` object. */
export const header = (headers: Headers, name: string): unknown => {
  const value = headers[name] ?? headers[name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())]
  return value === undefined && typeof headers.get === "function" ? headers.get(name) : value
}

/**
 * What the response in an error asks to wait, in milliseconds: `x-amz-retry-after` (milliseconds) before `retry-after` in
 * seconds. The date form of `retry-after` needs a clock and is read by the HTTP adapter.
 */
export const retryAfterMillis = (error: any): number | undefined => {
  const headers = error.$response?.headers ?? error.response?.headers ?? error.headers
  if (typeof headers !== "object" || headers === null) return undefined
  const amazon = count(header(headers, "x-amz-retry-after"))
  if (amazon !== undefined) return amazon
  const seconds = count(header(headers, "retry-after"))
  return seconds === undefined ? undefined : Math.min(seconds * 1000, Number.MAX_SAFE_INTEGER)
}

/** What a server asks of gRPC clients by pushback: a delay in milliseconds, or no retry. `undefined`: nothing. */
export type Pushback = number | "stop" | undefined

/** The longest pushback: a signed number of 32 bits. */
const maxPushbackMillis = 2 ** 31 - 1

/** The values of a key in the metadata of gRPC clients: grpc-js, nice-grpc, `Headers`, or a plain record. */
const metadataValues = (error: unknown, key: string): ReadonlyArray<unknown> => {
  const metadata: any = get(error, "metadata") ?? get(error, "trailers")
  if (typeof metadata !== "object" || metadata === null) return []
  const value = typeof metadata.getAll === "function"
    ? metadata.getAll(key)
    : typeof metadata.get === "function"
    ? metadata.get(key)
    : metadata[key]
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value]
}

/**
 * The `grpc-retry-pushback-ms` of an error. Several values, and any value that is no whole number of milliseconds below
 * 2^31, stop retrying, as a negative one does.
 */
export const pushback = (error: unknown): Pushback => {
  const values = metadataValues(error, "grpc-retry-pushback-ms")
  if (values.length === 0) return undefined
  const millis = values.length === 1 ? count(values[0]) : undefined
  return millis === undefined || millis > maxPushbackMillis ? "stop" : millis
}

/** A status with details is at most this long, in bytes. */
const maxStatusLength = 65_536

/** A protobuf message, field by field: the last value of each number field, all values of each field of bytes. */
interface Message {
  readonly numbers: ReadonlyMap<number, bigint>
  readonly bytes: ReadonlyMap<number, ReadonlyArray<Uint8Array>>
}

/** Decodes the wire format of protobuf. Throws `RangeError` when the bytes are none. */
const decode = (input: Uint8Array): Message => {
  const numbers = new Map<number, bigint>()
  const bytes = new Map<number, Array<Uint8Array>>()
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = input[at++]
      if (byte === undefined) break
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return BigInt.asIntN(64, value)
    }
    throw new RangeError("no varint")
  }
  const take = (length: number): Uint8Array => {
    if (!(length >= 0 && at + length <= input.length)) throw new RangeError("too short")
    return input.subarray(at, at += length)
  }
  const add = (field: number, value: Uint8Array) => {
    const values = bytes.get(field)
    if (values === undefined) bytes.set(field, [value])
    else values.push(value)
  }
  while (at < input.length) {
    const tag = Number(varint())
    const field = Math.floor(tag / 8)
    const type = tag % 8
    if (type === 0) numbers.set(field, varint())
    else if (type === 1 || type === 5) take(type === 1 ? 8 : 4)
    else if (type === 2) add(field, take(Number(varint())))
    else throw new RangeError("no wire type")
  }
  return { numbers, bytes }
}

const last = (message: Message, field: number): Uint8Array => message.bytes.get(field)?.at(-1) ?? new Uint8Array()

const retryInfoType = "google.rpc.RetryInfo"

/** The `retry_delay` of an encoded `google.rpc.RetryInfo`, in milliseconds; it may be negative. */
const retryDelay = (retryInfo: Uint8Array): number => {
  const { numbers } = decode(last(decode(retryInfo), 1))
  const millis = Number(numbers.get(1) ?? 0n) * 1000 + Number(numbers.get(2) ?? 0n) / 1e6
  return Math.min(millis, Number.MAX_SAFE_INTEGER)
}

const typeOf = (any: Message): string => String.fromCharCode(...last(any, 1).subarray(0, maxHeaderLength))

/** The `google.rpc.RetryInfo` among the details of an encoded `google.rpc.Status`. */
const inStatus = (status: Uint8Array): Uint8Array | undefined => {
  const any = decode(status).bytes.get(3)?.map(decode).find((any) => typeOf(any).endsWith(`/${retryInfoType}`))
  return any === undefined ? undefined : last(any, 2)
}

/** The bytes of binary metadata, which `Headers` hold in base64. */
const binary = (value: unknown): Uint8Array | undefined => {
  if (value instanceof Uint8Array) return value.length <= maxStatusLength ? value : undefined
  if (typeof value !== "string" || value.length > 2 * maxStatusLength) return undefined
  return Uint8Array.from(atob(value), (char) => char.charCodeAt(0))
}

/** The `google.rpc.RetryInfo` that Connect has taken from the status. */
const inDetails = (details: unknown): Uint8Array | undefined =>
  Array.isArray(details)
    ? binary(get(details.find((detail) => get(detail, "type") === retryInfoType), "value"))
    : undefined

/** What the `google.rpc.RetryInfo` of a gRPC error asks to wait, in milliseconds. Whatever the bytes, it never throws. */
export const retryInfoMillis = (error: unknown): number | undefined => {
  try {
    const status = binary(metadataValues(error, "grpc-status-details-bin")[0])
    const retryInfo = inDetails(get(error, "details")) ?? (status === undefined ? undefined : inStatus(status))
    return retryInfo === undefined ? undefined : retryDelay(retryInfo)
  } catch {
    return undefined
  }
}
