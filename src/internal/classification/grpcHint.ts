import { get, look, short } from "../tryGet.ts"

/** What a server asks of gRPC clients by pushback: a delay in milliseconds, no retry, or nothing (`undefined`). */
export type Pushback = number | "stop" | undefined

/** The longest pushback: a signed 32-bit number. */
const maxPushbackMillis = 2 ** 31 - 1

/** The values of a key in the metadata of gRPC clients: grpc-js, nice-grpc, `Headers`, or a plain record. */
const metadataValues = (error: unknown, key: string): ReadonlyArray<unknown> => {
  const metadata: any = get(error, "metadata") ?? get(error, "trailers") ?? {}
  const read = [metadata.getAll, metadata.get].find((read) => typeof read === "function")
  return [(read === undefined ? metadata[key] : read.call(metadata, key)) ?? []].flat()
}

const wholeMillis = /^\s*\d{1,256}\s*$/

/**
 * What the values of `grpc-retry-pushback-ms` ask for. More than one value, or any that is not a whole number of
 * milliseconds below 2^31, stops retrying, as a negative one does.
 */
export const pushbackOf = (values: ReadonlyArray<unknown>): Pushback => {
  const [value] = values
  if (values.length === 0) return undefined
  const millis = values.length === 1 && wholeMillis.test(short(value, 512)) ? Number(value) : Infinity
  return millis > maxPushbackMillis ? "stop" : millis
}

/** The `grpc-retry-pushback-ms` of an error. */
export const pushback = (error: unknown): Pushback => pushbackOf(metadataValues(error, "grpc-retry-pushback-ms"))

/** A status with details is at most this long, in bytes. */
const maxStatusLength = 65_536

/** The wire types of a protobuf message: numbers, and bytes of any length. The others are skipped. */
const [ofNumber, ofFixed64, ofBytes, ofFixed32] = [0, 1, 2, 5]

/** The values of one field of a protobuf message that have this wire type. Throws if the bytes are not a valid message. */
const valuesOf = <A>(input: Uint8Array, field: number, ofType: number): ReadonlyArray<A> => {
  const values: Array<any> = []
  let at = 0
  const varint = (): number => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = BigInt(input[at++]!)
      value |= (byte & 127n) << shift
      if (byte < 128n) return Number(BigInt.asIntN(64, value))
    }
    throw new RangeError()
  }
  const take = (length: number): Uint8Array => {
    if (!(length >= 0 && at + length <= input.length)) throw new RangeError()
    return input.subarray(at, at += length)
  }
  while (at < input.length) {
    const tag = varint()
    const type = tag % 8
    const value = type === ofNumber
      ? varint()
      : take(type === ofBytes ? varint() : type === ofFixed64 ? 8 : type === ofFixed32 ? 4 : Number.NaN)
    if (tag === field * 8 + ofType) values.push(value)
  }
  return values
}

const lastNumber = (message: Uint8Array, field: number): number =>
  valuesOf<number>(message, field, ofNumber).at(-1) ?? 0

const last = (message: Uint8Array, field: number): Uint8Array =>
  valuesOf<Uint8Array>(message, field, ofBytes).at(-1) ?? new Uint8Array()

const retryInfoType = "google.rpc.RetryInfo"

/** A longer type name is not read. */
const maxTypeLength = 256

/** The `retry_delay` of an encoded `google.rpc.RetryInfo`, in milliseconds; it may be negative. */
const retryDelay = (retryInfo: Uint8Array): number => {
  const delay = last(retryInfo, 1)
  return Math.min(lastNumber(delay, 1) * 1000 + lastNumber(delay, 2) / 1e6, Number.MAX_SAFE_INTEGER)
}

const typeOf = (any: Uint8Array): string => String.fromCharCode(...last(any, 1).subarray(0, maxTypeLength))

/** The `google.rpc.RetryInfo` among the details of an encoded `google.rpc.Status`. */
const inStatus = (status: Uint8Array): Uint8Array | undefined => {
  const any = valuesOf<Uint8Array>(status, 3, ofBytes).find((any) => typeOf(any).endsWith(`/${retryInfoType}`))
  return any && last(any, 2)
}

/** The bytes of binary metadata, which `Headers` hold as base64. */
const binary = (value: unknown): Uint8Array | undefined => {
  if (value instanceof Uint8Array) return value.length <= maxStatusLength ? value : undefined
  if (typeof value !== "string" || value.length > 2 * maxStatusLength) return undefined
  return Uint8Array.from(atob(value), (char) => char.charCodeAt(0))
}

/** The `google.rpc.RetryInfo` that Connect took from the status. */
const inDetails = (details: any): Uint8Array | undefined =>
  binary(get(details?.find?.((detail: unknown) => get(detail, "type") === retryInfoType), "value"))

/**
 * How long the `google.rpc.RetryInfo` of a gRPC error asks to wait, in milliseconds. Never throws, whatever the bytes.
 */
export const retryInfoMillis = (error: unknown): number | undefined =>
  look(() => {
    const status = binary(metadataValues(error, "grpc-status-details-bin")[0])
    const retryInfo = inDetails(get(error, "details")) ?? (status && inStatus(status))
    return retryInfo && retryDelay(retryInfo)
  })
