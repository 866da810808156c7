import { RetryInfo, type SendGate } from "effect-retry"
import { type Criticality, CurrentCriticality } from "effect-retry/Criticality"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

interface SendOptions {
  readonly attempt?: number
  readonly failureClass?: SendGate.Send["failureClass"]
  readonly criticality?: Criticality
  /** The time that the gate is given on entry. Default: that of the clock. */
  readonly nowMillis?: number
}

/** A gate that is driven by hand, under a `TestClock`; `log` says when each send passed, or why it was refused. */
export const gated = <Gate extends SendGate.SendGate<any>>(gate: Gate) =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => {
      const clock = Context.get(context, Clock.Clock)
      const nowMillis = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
      const log: Array<string> = []
      const passes = new Map<string, SendGate.Pass>()
      const passOf = (name: string) => {
        const pass = passes.get(name)
        if (pass === undefined) throw new Error(`${name} has not passed: ${log.join(", ")}`)
        return pass
      }
      /** Asks the gate now; the effect waits, if it has to. */
      const enter = (name: string, options: SendOptions = {}): Effect.Effect<void> => {
        const entered: void | Effect.Effect<void, { readonly reason?: string }> = gate.enter({
          attempt: options.attempt ?? 1,
          failureClass: options.failureClass,
          context: Context.add(context, CurrentCriticality, options.criticality ?? "normal"),
          get nowMillis() {
            return options.nowMillis ?? nowMillis()
          },
          hold: (pass) => {
            passes.set(name, pass)
            log.push(`${name} at ${nowMillis()}`)
          }
        })
        return Effect.catch(entered ?? Effect.void, ({ reason }) =>
          Effect.sync(() => {
            log.push(`${name} ${reason ?? "refused"} at ${nowMillis()}`)
          }))
      }
      const fork = (wait: Effect.Effect<void>) => Effect.forkChild(wait, { startImmediately: true })
      return {
        gate,
        log,
        enter,
        fork,
        send: (name: string, options?: SendOptions): Effect.Effect<Fiber.Fiber<void>> =>
          fork(Effect.suspend(() => enter(name, options))),
        end: (name: string, tag: SendGate.Outcome["_tag"] = "Success", of: Partial<SendGate.Outcome> = {}) =>
          passOf(name).settle({
            _tag: tag,
            value: undefined,
            error: undefined,
            info: tag === "Failure" ? RetryInfo.transient : undefined,
            nowMillis: nowMillis(),
            ...of
          }),
        cancel: (name: string) => passOf(name).cancel()
      }
    })
  )
