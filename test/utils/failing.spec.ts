/** Tests that fail, each in a way of its own: `GateReport.test.ts` runs them and reads what the reporter writes. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { AssertionError } from "node:assert"
import { execFile } from "node:child_process"
import * as net from "node:net"
import { promisify } from "node:util"

it.live("a program that takes too long", () =>
  Effect.promise(() => promisify(execFile)("sleep", ["300"], { timeout: 1 })))

it.live("an assertion that is a cause", () => {
  const wrong = new AssertionError({ message: "wrong" })
  return Effect.die(new Error("outer", { cause: new Error("inner", { cause: wrong }) }))
})

it("an error that is its own cause", () => {
  const error = new Error("its own cause")
  throw Object.assign(error, { cause: error })
})

it("passes, and leaves an error that nothing handles", async () => {
  const first = net.createServer()
  await new Promise<void>((resolve) => first.listen(0, "127.0.0.1", resolve))
  const second = net.createServer().listen((first.address() as net.AddressInfo).port, "127.0.0.1")
  await new Promise<void>((resolve) => process.once("uncaughtExceptionMonitor", () => resolve()))
  second.close()
  first.close()
})
