import { type Choice, choices, settingNames, settings } from "../../playground/setup.ts"

/** Every policy as it is, and with each of its settings at both ends, and with all of them. */
export const everyChoice: ReadonlyArray<Choice> = choices.flatMap((name): ReadonlyArray<Choice> => [
  { name },
  { name, coolDown: true },
  ...settingNames.flatMap((setting) => [
    { name, [setting]: settings[setting].min },
    { name, [setting]: settings[setting].max }
  ]),
  { name, attempts: 5, quota: 100, concurrency: 0, coolDown: true, throttle: 2 }
])
