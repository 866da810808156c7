import type { Failure } from "./failure.ts"

/** One attempt, as a service sees it. */
export interface Request {
  /** The client has its answer, or has given up. */
  readonly settled: boolean
  /** The service answers: well, or with a failure. */
  readonly answer: (failure: Failure | undefined) => void
}

/** A service, as its clients see it. */
export interface Target {
  readonly name: string
  /** When what is sent at a time leaves for the service. */
  readonly deliversAt: (nowMillis: number) => number
  /** A request arrives. */
  readonly receive: (request: Request) => void
}
