import { spawnSync } from "node:child_process"

/** Kills all processes of a group. */
const kill = (group) => {
  try {
    process.kill(-group, "SIGKILL")
  } catch {
    // None is left.
  }
}

/** Runs a command. After its limit it is killed with everything that it started. */
export const run = (minutes, command, ...args) => {
  const { error, pid, signal, status } = spawnSync(command, args, {
    detached: true,
    killSignal: "SIGKILL",
    stdio: ["ignore", "inherit", "inherit"],
    timeout: 60_000 * minutes
  })
  if (error?.code === "ETIMEDOUT") {
    kill(pid)
    return `RED: still running after ${minutes} minutes`
  }
  return status === 0 ? "ok" : `RED: ${error?.message ?? signal ?? `exit code ${status}`}`
}
