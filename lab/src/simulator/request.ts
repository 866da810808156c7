import type { Actor } from "./agenda.ts"
import type { Failure } from "./failure.ts"

/** One attempt, as a service sees it. It is the actor of its own events, and the service says what they do. */
export interface Request extends Actor {
  /** The client has its answer, or has given up. */
  readonly settled: boolean
  /** It comes on a new connection: its client's others are in use. */
  readonly fresh: boolean
  /** The instance that works on it. */
  server: number
  /** The ticket that cancels its timeout in a queue. */
  ticket: number
  /** How long its turn is, if that is decided on arrival; otherwise below 0. */
  turnMillis: number
  /** How many services have been called for it. */
  asked: number
  /** The answer it will get. */
  outcome: Failure | undefined
  /** The service answers, with success or a failure. */
  readonly answer: (failure: Failure | undefined) => void
}

/** The actions of a request; the service decides what follows. */
export const arrives = 0
export const isAnswered = 1
export const timesOut = 2
export const firstOfService = 3

/** A service, as its clients see it. */
export interface Target {
  readonly name: string
  /** When a send made at this time leaves for the service; `Infinity` if it never does. */
  readonly deliversAt: (nowMillis: number, fresh: boolean) => number
  /** A request arrives. */
  readonly receive: (request: Request) => void
  /** What was planned for a request. */
  readonly goesOn: (request: Request, what: number) => void
}

/** Callers, and what each call is for. */
export interface Caller<in For> {
  /** A call has ended. */
  readonly ended: (of: For, succeeded: boolean) => void
}
