import type { Policy } from "./policySchema.ts"
import type { Scenario } from "./scenario.ts"

/** The scenario with another policy in all its fleets. */
export const withPolicy = (scenario: Scenario, policy: Policy): Scenario => {
  const [first, ...others] = scenario.fleets
  // A fleet that calls in the processes of another has that fleet's policy.
  const changed = others.map((fleet) => fleet.processesOf === undefined ? { ...fleet, policy } : fleet)
  return { ...scenario, fleets: [{ ...first, policy }, ...changed] }
}
