/** A request, as a line of a log records it. */
export interface Entry {
  /** When it was answered, in milliseconds since 1970. */
  readonly endMillis: number
  /** How long that took; `undefined` where the log does not say. */
  readonly durationMillis: number | undefined
  /** The status of HTTP; 0 where the client has left before there was one. */
  readonly status: number
  /** Which attempt of its call it is, from 1; `undefined` where the log does not say. */
  readonly attempt: number | undefined
  /** What the attempts of one call have in common; `undefined` where the log does not say. */
  readonly call: string | undefined
  /** The instance behind a proxy that answered; empty where the proxy did itself; `undefined` where the log does not say. */
  readonly upstream: string | undefined
}

/** Receives the requests of a line. */
export type Sink = (entry: Entry) => void

/** Reads the lines of a format. */
export interface Reader {
  /** Passes the requests of a line to the sink; `false` when the line is not of the format. */
  readonly read: (line: string, sink: Sink) => boolean
}
