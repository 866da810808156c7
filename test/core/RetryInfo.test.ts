import { assert, describe, it } from "@effect/vitest"
import { RetryInfo } from "effect-retry"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

class Busy extends RetryInfo.TaggedError("Busy", { throttling: true, fault: "client" })<{
  readonly table: string
  readonly retryAfter?: Duration.Input
}> {}

class Computed extends RetryInfo.TaggedError(
  "Computed",
  (error: { readonly sent: boolean }) => ({ safety: error.sent ? "Maybe" : "Yes" })
)<{
  readonly sent: boolean
}> {}

class TableBusy extends Schema.TaggedError<TableBusy>()("TableBusy", {
  table: Schema.String,
  retryAfter: Schema.optional(Schema.Duration)
}, RetryInfo.annotation({ throttling: true, fault: "server" })) {}

class WithGetter extends Schema.TaggedError<WithGetter>()("WithGetter", { final: Schema.Boolean }) {
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return this.final ? RetryInfo.notRetryable : RetryInfo.transient
  }
}

const of = (error: unknown) => Option.getOrUndefined(RetryInfo.fromError(error))

describe("RetryInfo", () => {
  describe("make", () => {
    it("defaults to a safe retry and nothing else said", () => {
      const { fault, retryAfter, safety, throttling, timeout } = RetryInfo.make()
      assert.deepStrictEqual([safety, throttling, timeout, fault, retryAfter], [
        "Yes",
        false,
        false,
        "other",
        undefined
      ])
    })

    for (const retryAfter of [NaN, -1, "soon", "-1 seconds", null, {}, [1, NaN, 2]] as ReadonlyArray<any>) {
      it(`reads a hint of ${JSON.stringify(retryAfter)} as none or zero, never as negative or NaN`, () => {
        const hint = RetryInfo.make({ retryAfter }).retryAfter
        assert.isTrue(hint === undefined || Duration.toMillis(hint) === 0)
      })
    }

    for (const [retryAfter, millis] of [[0, 0], [1500, 1500], ["2 seconds", 2000], ["Infinity", Infinity]] as const) {
      it(`takes a hint of ${retryAfter}`, () => {
        assert.strictEqual(Duration.toMillis(RetryInfo.throttled(retryAfter).retryAfter!), millis)
      })
    }
  })

  describe("TaggedError", () => {
    it.effect("makes errors that carry their facts, and are caught by tag", () =>
      Effect.gen(function*() {
        const busy = new Busy({ table: "orders", retryAfter: "3 seconds" })
        const caught = yield* Effect.catchTag(Effect.fail(busy), "Busy", (error) => Effect.succeed(error.table))
        assert.strictEqual(caught, "orders")
        assert.isTrue(busy instanceof Error)
        const info = of(busy)
        assert.isTrue(info?.throttling)
        assert.strictEqual(Duration.toMillis(info!.retryAfter!), 3000)
        assert.strictEqual(of(new Busy({ table: "orders" }))?.retryAfter, undefined)
      }))

    it("computes facts from the error", () => {
      assert.strictEqual(of(new Computed({ sent: true }))?.safety, "Maybe")
      assert.strictEqual(of(new Computed({ sent: false }))?.safety, "Yes")
    })
  })

  describe("Schema.TaggedError", () => {
    it("carries the facts of its annotation, and its own hint", () => {
      const info = of(new TableBusy({ table: "orders", retryAfter: Duration.seconds(5) }))
      assert.deepStrictEqual([info?.throttling, info?.fault], [true, "server"])
      assert.strictEqual(Duration.toMillis(info!.retryAfter!), 5000)
    })

    it("still decodes, encodes and equals as a schema", () => {
      const decoded = Schema.decodeSync(TableBusy)({ _tag: "TableBusy", table: "orders" })
      assert.isTrue(of(decoded)?.throttling)
      assert.deepStrictEqual(Schema.encodeSync(TableBusy)(decoded), { _tag: "TableBusy", table: "orders" })
    })

    it("can compute facts in a getter", () => {
      assert.strictEqual(of(new WithGetter({ final: true }))?.safety, "No")
      assert.strictEqual(of(new WithGetter({ final: false }))?.safety, "Yes")
    })
  })

  it("fromError finds nothing on other values", () => {
    for (const value of [undefined, null, 1, "x", {}, new Error("x"), Symbol("x"), { [RetryInfo.TypeId]: 1 }]) {
      assert.isTrue(Option.isNone(RetryInfo.fromError(value)))
    }
  })
})
