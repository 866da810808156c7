import type { Policy } from "../src/Simulator.ts"
import { settingsOf } from "../src/simulator/policy.ts"
import { labelOf } from "./scenario.ts"
import type { Choice } from "./setup.ts"

type Settings = Exclude<Policy, string>
type Steps = Settings["steps"]
type Step = Steps[number]

const isStep = (step: Step, name: string): boolean => typeof step === "object" && Object.hasOwn(step, name)

const once: Settings = {
  label: "none",
  steps: [{ fixed: { delay: 0 } }, { maxAttempts: 1 }, "whileRetryable"]
}

/** The steps with this many attempts, with or without a quota. */
const stepsOf = (steps: ReadonlyArray<Step>, { attempts, quota }: Choice): ReadonlyArray<Step> => {
  const counted = attempts === undefined
    ? steps
    : steps.map((step) => isStep(step, "maxAttempts") ? { maxAttempts: attempts } as Step : step)
  if (quota === 0) return counted.filter((step) => !isStep(step, "quotaGated"))
  const isGated = counted.some((step) => isStep(step, "quotaGated"))
  return quota === undefined || isGated ? counted : [...counted, { quotaGated: { cost: 5 } } as Step]
}

/** The gates of a choice. */
const gatesOf = ({ concurrency, coolDown, throttle }: Choice): Partial<Settings> => ({
  ...concurrency !== undefined && { concurrency: concurrency === 0 ? {} : { limit: concurrency } },
  ...coolDown && { coolDown: {} },
  ...throttle !== undefined && { throttle: { k: throttle } }
})

const quotaOf = ({ quota }: Choice, own: Settings["quota"]): Settings["quota"] => {
  if (quota === undefined) return own
  return quota === 0 ? undefined : { capacity: quota } as Settings["quota"]
}

/** The policy of a choice, as a scenario has it: its name, or its settings if any differ. */
export const policyOf = (choice: Choice): Policy => {
  if (labelOf(choice) === choice.name) return choice.name
  const { quota: own, ...settings } = (settingsOf(choice.name) ?? once) as Settings
  const quota = quotaOf(choice, own)
  return {
    ...settings,
    label: labelOf(choice),
    steps: stepsOf(settings.steps, choice) as Steps,
    ...quota && { quota },
    ...gatesOf(choice)
  }
}
