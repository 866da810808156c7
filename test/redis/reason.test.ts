/** Why Redis did not answer, in words that repeat nothing of what was sent. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import { reasonOf } from "../../src/redis/internal/exchange.ts"

const of = (error: unknown) => reasonOf(Cause.fail(error))
const reply = (message: string) => new Error(message)
const caused = (error: object, cause: unknown) => Object.assign(error, { cause })

class ConnectionTimeoutError extends Error {}
class Plain extends Error {}

describe("the reason", () => {
  const replies = [
    ["NOAUTH Authentication required.", "NOAUTH"],
    ["READONLY You can't write against a read only replica.", "READONLY"],
    ["READONLY", "READONLY"],
    ["OOM, command not allowed", "OOM"],
    ["ERR: secret", "ERR"],
    ["ERR secret", "ERR"],
    ["ERR invalid password secret", "ERR invalid password"],
    ["ERR unknown command `EVALSHA`, with args beginning with: secret", "ERR unknown command 'EVALSHA'"],
    ["ERR unknown command 'secret'", "ERR"],
    [
      "ERR AUTH <password> called without any password configured for the default user",
      "ERR AUTH <password> called without any password configured"
    ],
    ["MOVED 3999 127.0.0.1:6381", "MOVED"],
    ["WRONGPASS secret", "WRONGPASS"],
    ["READONLYsecret", "an unknown error"],
    ["readonly", "an unknown error"],
    ["secret READONLY", "an unknown error"],
    ["", "an unknown error"]
  ] as const
  for (const [message, reason] of replies) {
    it(`of the reply ${JSON.stringify(message)} is ${reason}`, () => assert.strictEqual(of(reply(message)), reason))
  }

  const errors = [
    ["a code of the system", { code: "ECONNREFUSED", message: "connect redis://:secret@host" }, "ECONNREFUSED"],
    ["a code of Node", { code: "ERR_INVALID_URL" }, "ERR_INVALID_URL"],
    ["a code of OpenSSL", { code: "CERT_HAS_EXPIRED" }, "CERT_HAS_EXPIRED"],
    ["a code with a number", { code: "E2BIG" }, "an unknown error"],
    ["a code that is text", { code: "secret" }, "an unknown error"],
    ["a code with more", { code: "ECONNREFUSED secret" }, "an unknown error"],
    ["a code before", { code: "secret ECONNREFUSED" }, "an unknown error"],
    ["no text as a code", { code: 5 }, "an unknown error"],
    ["a name of the driver", { name: "SocketClosedUnexpectedlyError" }, "SocketClosedUnexpectedlyError"],
    ["the name of its class", new ConnectionTimeoutError("secret"), "ConnectionTimeoutError"],
    ["a name that says nothing", new Plain("secret"), "an unknown error"],
    ["the name of all errors", new Error("secret"), "an unknown error"],
    ["a name that is text", { name: "my secret Error" }, "an unknown error"],
    ["a message that is no text", { message: { secret: 1 } }, "an unknown error"],
    ["no error", "secret", "an unknown error"],
    ["nothing", undefined, "an unknown error"],
    ["null", null, "an unknown error"]
  ] as const
  for (const [name, error, reason] of errors) {
    it(`of an error with ${name} is ${reason}`, () => assert.strictEqual(of(error), reason))
  }

  it("is that of the deepest cause that has one, and a name only where nothing else is known", () => {
    const refused = { code: "ECONNREFUSED" }
    assert.strictEqual(of(caused(new ConnectionTimeoutError(), refused)), "ECONNREFUSED")
    assert.strictEqual(of(caused(reply("LOADING secret"), refused)), "ECONNREFUSED")
    assert.strictEqual(of(caused(reply("LOADING secret"), new ConnectionTimeoutError())), "LOADING")
    assert.strictEqual(of({ originalError: refused }), "ECONNREFUSED")
    assert.strictEqual(of({ cause: null, originalError: refused }), "ECONNREFUSED")
    assert.strictEqual(reasonOf(Cause.die(refused)), "ECONNREFUSED")
  })

  it("is looked for in five errors, also where they go round in a circle", () => {
    const chain = (depth: number): object => depth === 0 ? { code: "EPIPE" } : { cause: chain(depth - 1) }
    assert.deepStrictEqual([of(chain(4)), of(chain(5))], ["EPIPE", "an unknown error"])
    const circle: { cause?: unknown } = {}
    circle.cause = circle
    assert.strictEqual(of(circle), "an unknown error")
  })
})
