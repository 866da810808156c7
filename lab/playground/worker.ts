import * as RetryInfo from "effect-retry/RetryInfo"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import { explain } from "../src/Explain.ts"
import { codeOf } from "../src/policyCode.ts"
import * as Simulator from "../src/Simulator.ts"
import { resolve } from "../src/simulator/policy.ts"
import { seedsOf } from "../src/simulator/runs.ts"
import { figuresOf } from "./figures.ts"
import type { About, Ask, Message } from "./messages.ts"
import { policyOf } from "./policy.ts"
import { scenarioOf } from "./scenario.ts"

/** A browser runs at most one timer per 4 ms: waiting for it between stretches of a run would take most of the time. */
const channel = new MessageChannel()
const next: Array<() => void> = []
channel.port1.onmessage = () => next.shift()?.()
const scheduler = new Scheduler.MixedScheduler("async", (run) => {
  let isWanted = true
  next.push(() => isWanted && run())
  channel.port2.postMessage(undefined)
  return () => {
    isWanted = false
  }
})

const send = (message: Message) => Effect.sync(() => postMessage(message))

/** A slow run shows its results so far. */
const betweenMillis = 50

interface Job {
  readonly id: number
  readonly fiber: Fiber.Fiber<void>
  readonly results: Array<Simulator.SimulationResult>
}

const jobs = new Map<number, Job>()

const report = (ask: Ask, results: ReadonlyArray<Simulator.SimulationResult>, isDone = false) => {
  const [first, ...others] = results
  if (first === undefined) return Effect.void
  return send({ slot: ask.slot, id: ask.id, kind: "figures", figures: figuresOf([first, ...others]), isDone })
}

const aboutOf = ({ choice, setup }: Ask): About => {
  const policy = policyOf(choice)
  const { policy: made, quota } = resolve(policy)
  const options = { attempt: setup.timeout, failure: RetryInfo.timedOut, quota, samples: 400 }
  return { policy, code: codeOf(policy), explanation: made && explain(made, options) }
}

/** Runs a seed; the first one is shown while it runs. */
const ran = Effect.fnUntraced(function*(ask: Ask, scenario: Simulator.Scenario, isFirst: boolean) {
  const simulation = yield* Simulator.make(scenario)
  let shownMillis = 0
  return yield* simulation.run({
    onProgress: ({ elapsedMillis }) => {
      if (!isFirst || elapsedMillis - shownMillis < betweenMillis) return Effect.void
      shownMillis = elapsedMillis
      return Effect.flatMap(simulation.result, (result) => report(ask, [result]))
    }
  })
})

const work = Effect.fnUntraced(function*(ask: Ask, results: Array<Simulator.SimulationResult>) {
  const { choice, id, runs, setup, slot } = ask
  const scenario = yield* Simulator.decode(scenarioOf(setup, policyOf(choice)))
  for (const [index, seeded] of seedsOf(scenario, runs).entries()) {
    if (index < results.length) continue
    results.push(yield* ran(ask, seeded, index === 0))
    if (index === 0) {
      yield* report(ask, results)
      yield* Effect.yieldNow
      yield* send({ slot, id, kind: "about", about: aboutOf(ask) })
    }
  }
  // It may have more than are asked for now: every policy is shown with the same runs.
  yield* report(ask, results.slice(0, runs), true)
})

onmessage = ({ data: ask }: MessageEvent<Ask>) => {
  const before = jobs.get(ask.slot)
  before?.fiber.interruptUnsafe()
  const results = before?.id === ask.id ? before.results : []
  const { id, slot } = ask
  const job = Effect.catchCause(work(ask, results), (cause) => {
    const problem = cause.reasons.map((reason) => "error" in reason ? String(reason.error) : "").join("\n")
    return cause.reasons.every(({ _tag }) => _tag === "Interrupt")
      ? Effect.void
      : send({ slot, id, kind: "refused", problem })
  })
  jobs.set(slot, { id, results, fiber: Effect.runFork(job, { scheduler }) })
}
