/** A release up to publishing: versions and changelogs come from the changesets. */
import { assert, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../", import.meta.url))

it("both packages get the next version, and their changelogs list the changes", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  try {
    for (const file of ["package.json", "lab/package.json", "CHANGELOG.md", ".changeset/config.json"]) {
      fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
      fs.copyFileSync(path.join(root, file), path.join(folder, file))
    }
    const json = (file: string) => JSON.parse(fs.readFileSync(path.join(folder, file), "utf8"))
    const before: string = json("package.json").version
    fs.writeFileSync(path.join(folder, "package-lock.json"), "{}")
    fs.writeFileSync(
      path.join(folder, ".changeset/a-change.md"),
      "---\n\"effect-retry\": minor\n---\n\nRetries rest on Sundays.\n"
    )
    const run = (command: string, ...args: Array<string>) =>
      execFileSync(command, args, {
        cwd: folder,
        stdio: "pipe",
        env: { ...process.env, GIT_CONFIG_GLOBAL: os.devNull }
      })
    run("git", "init", "--quiet", "--initial-branch", "main")
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message", "a")
    run(process.execPath, path.join(root, "node_modules/@changesets/cli/bin.js"), "version")

    const [major, minor] = before.split(".").map(Number)
    const next = `${major}.${minor! + 1}.0`
    assert.deepStrictEqual([json("package.json").version, json("lab/package.json").version], [next, next])
    const changelog = fs.readFileSync(path.join(folder, "CHANGELOG.md"), "utf8")
    assert.match(changelog, new RegExp(`^## ${next}$[^]*Retries rest on Sundays\\.[^]*^## ${before}$`, "m"))
    assert.deepStrictEqual(fs.readdirSync(path.join(folder, ".changeset")), ["config.json"])
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
