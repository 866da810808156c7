import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { inspect } from "node:util"

const json = (value: unknown): string => {
  try {
    return String(JSON.stringify(value, (_, part: unknown) => typeof part === "bigint" ? String(part) : part))
  } catch (error) {
    return String(error)
  }
}

/** A value in all the ways in which programs print one, hidden properties too. */
export const renderings = (value: unknown): string =>
  [
    String(value),
    json(value),
    inspect(value, { depth: Infinity }),
    inspect(value, { depth: Infinity, customInspect: false, showHidden: true })
  ].join("\n")

/** Third-party errors. */
export interface Foreign {
  readonly has: (error: unknown) => boolean
}

/** How an effect ends, without third-party errors. */
const ending = (exit: Exit.Exit<unknown, unknown>, foreign: Foreign): string => {
  if (Exit.isSuccess(exit)) return "success"
  const own = Cause.fromReasons(
    exit.cause.reasons.filter((reason) =>
      !(Cause.isFailReason(reason) && foreign.has(reason.error)) &&
      !(Cause.isDieReason(reason) && foreign.has(reason.defect))
    )
  )
  return [Cause.pretty(own), json(own), ...own.reasons.map(renderings), renderings(Cause.squash(own))].join("\n")
}

/**
 * All that can be seen of an effect: log lines with their annotations and causes; of spans the names, attributes, events,
 * links and exits; and how it ends, except for errors that are `foreign`.
 */
export const told = <A, E, R>(self: Effect.Effect<A, E, R>, foreign: Foreign = new Set()) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>((options) => {
      lines.push(
        renderings(Logger.formatStructured.log(options)),
        renderings(options.message),
        renderings(options.cause)
      )
    })
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const exit = yield* Effect.exit(self.pipe(
      Effect.withSpan("call"),
      Effect.withTracer(tracer),
      Effect.provideService(References.MinimumLogLevel, "All"),
      Effect.provide(Logger.layer([logger]))
    ))
    for (const { attributes, events, links, name, status } of spans) {
      const ended = status._tag === "Ended" ? ending(status.exit, foreign) : status._tag
      lines.push(name, ...[[...attributes], events, links.map((link) => link.attributes)].map(renderings), ended)
    }
    return { exit, spans: spans.length, text: [...lines, ending(exit, foreign)].join("\n") }
  })
