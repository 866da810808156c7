import type { Policy, ScenarioInput } from "../src/Simulator.ts"
import type { Choice, Setup } from "./setup.ts"

type Outage = NonNullable<ScenarioInput["services"][number]["outages"]>[number]

const outagesOf = ({ factor, kind, length, share, start }: Setup): ReadonlyArray<Outage> => {
  const window = { from: `${start} seconds`, to: `${start + length} seconds` }
  switch (kind) {
    case "none":
      return []
    case "hold":
      return [{ kind, ...window }]
    case "slow":
      return [{ kind, ...window, factor }]
    default:
      return [{ kind, ...window, share: share / 100 }]
  }
}

/** The longest name that a scenario accepts. */
const longestName = 80

/** The name of a choice among others. */
export const labelOf = ({ attempts, concurrency, coolDown, name, quota, throttle }: Choice): string =>
  [
    name,
    ...attempts === undefined ? [] : [`${attempts} attempt${attempts === 1 ? "" : "s"}`],
    ...quota === undefined ? [] : [quota === 0 ? "no quota" : `quota ${quota}`],
    ...concurrency === undefined ? [] : [concurrency === 0 ? "limit" : `limit ${concurrency}`],
    ...coolDown ? ["cool-down"] : [],
    ...throttle === undefined ? [] : [`throttle ${throttle}`]
  ].join(", ").slice(0, longestName)

/** The scenario of a set-up, with one of its policies. */
export const scenarioOf = (setup: Setup, policy: Policy): ScenarioInput => {
  const { capacity, duration, limit, processes, rate, seed, timeout, work } = setup
  return {
    name: "playground",
    seed,
    duration: `${duration} seconds`,
    drain: "10 seconds",
    fleets: [{ name: "clients", to: "service", processes, rate, timeout, network: 5, policy }],
    services: [{
      name: "service",
      capacity,
      latency: { exponential: work },
      ...limit > 0 && { limit: { requests: limit, retryAfter: "1 second" } },
      outages: outagesOf(setup)
    }]
  }
}

const quotedForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const argument = (policy: Policy): string =>
  typeof policy === "string" ? policy : quotedForShell(JSON.stringify(policy))

/** The command that runs the exported scenario, whose policy is the first, with all policies. */
export const commandOf = (policies: ReadonlyArray<Policy>, runs: number): string => {
  const others = policies.slice(1).map((policy) => ` --policy ${argument(policy)}`).join("")
  return `npx effect-retry ${others === "" ? "simulate" : "compare"} scenario.json${others} --runs ${runs}`
}
