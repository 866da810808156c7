/** The CPU time of a thread, and of a process with its children: speed that a busy machine does not change. */
import * as fs from "node:fs"

/** In `stat` of Linux, user and system time follow each other, counted in hundredths of a second. */
const secondsIn = (stat: string, field: number): number => {
  const fields = fs.readFileSync(stat, "utf8").replace(/^.*\) /s, "").split(" ")
  return (Number(fields[field]) + Number(fields[field + 1])) / 100
}

const hasStat = fs.existsSync("/proc/thread-self/stat")

/** The CPU seconds of this thread; where there is no `/proc`, of the process. */
export const threadSeconds = (): number => {
  if (hasStat) return secondsIn("/proc/thread-self/stat", 11)
  const { system, user } = process.cpuUsage()
  return (user + system) / 1e6
}

/** The CPU seconds that this takes. What else the machine does is no part of it. */
export const secondsOf = (work: () => void): number => {
  const before = threadSeconds()
  work()
  return threadSeconds() - before
}

/** The CPU seconds of the children that have ended; where there is no `/proc`, none. */
export const childrenSeconds = (): number => hasStat ? secondsIn("/proc/self/stat", 13) : 0
