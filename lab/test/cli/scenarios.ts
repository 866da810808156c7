import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import type { Run } from "../../src/cli/charts/report.ts"
import { retrying } from "../utils/simulate.ts"

/** Ten seconds with an outage of two, a quota, a queue and a hint of what is to come. */
export const short = {
  name: "short",
  description: "An outage.",
  seed: 7,
  duration: "10 seconds",
  drain: "5 seconds",
  fleets: [{
    name: "app",
    to: "db",
    rate: 40,
    timeout: "500 millis",
    network: 5,
    policy: retrying({ label: "quota", cost: 5, quota: { capacity: 50 } })
  }],
  services: [{ name: "db", capacity: 60, outages: [{ kind: "hold", from: "3 seconds", to: "5 seconds" }] }]
}

/** Texts that want to be markup, script or style. */
export const hostile = {
  name: "</title><script>alert(1)</script>",
  description: `]]></style></svg><img src=x onerror="alert(2)">&amp; style="color:red" \u202e\u0007\ud800 {a|b} zr0-c0`,
  fleet: "<svg/onload=alert(3)>'&",
  service: "</desc></svg><script>alert(4)</script> {b|x}",
  other: "'onclick='alert(5)' class='x'",
  label: "--><b onclick=alert(6)>\u2028{a|b}</b>",
  command: `effect-retry simulate '</code><script>alert(7)</script>' --report "x"`
}

/** A scenario whose every name is hostile. */
export const hostileScenario = {
  ...short,
  name: hostile.name,
  description: hostile.description,
  fleets: [{
    ...short.fleets[0],
    name: hostile.fleet,
    to: hostile.service,
    policy: retrying({ label: hostile.fleet, cost: 5 })
  }],
  services: [
    { ...short.services[0], name: hostile.service, calls: [{ to: hostile.other, policy: "naive" }] },
    { name: hostile.other, failureRate: 0.2 }
  ]
}

/** Runs a scenario, with another policy if one is named. */
export const runOf = (label: string, input: unknown, policy?: Simulator.Policy): Effect.Effect<Run, unknown> =>
  Effect.gen(function*() {
    const scenario = yield* Simulator.decode(input)
    const result = yield* Simulator.run(policy === undefined ? scenario : Simulator.withPolicy(scenario, policy))
    return { label, result, results: [result] }
  })
