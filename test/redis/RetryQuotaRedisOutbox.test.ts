import { assert, describe, it } from "@effect/vitest"
import { Outbox } from "../../src/redis/internal/outbox.ts"

describe("what a shared quota has to tell Redis, while it cannot", () => {
  it("is one number for however many deposits, at most the capacity", () => {
    let signals = 0
    const outbox = new Outbox(500, 1000, () => signals++)
    for (let i = 0; i < 100_000; i++) outbox.deposit(1)
    const { sections } = outbox.close(0)
    assert.strictEqual(sections.length, 1)
    assert.strictEqual(sections[0]!.deposit, 500)
    assert.strictEqual(signals, 100_000)
  })

  it("is kept for its time, however often it is sent, and given up then", () => {
    const outbox = new Outbox(500, 1000, () => {})
    const told: Array<number> = []
    for (let now = 0; now < 100_000; now += 100) {
      outbox.spend(outbox.nextId())
      told.push(outbox.close(now).sections.length)
    }
    assert.strictEqual(Math.max(...told), 10)
    assert.isFalse(outbox.isEmpty)
    assert.strictEqual(outbox.close(200_000).sections.length, 0)
    assert.isTrue(outbox.isEmpty)
  })

  it("is nothing for a lease that went back and was taken again, and a new lease once that has been sent", () => {
    const outbox = new Outbox(500, 1000, () => {})
    const id = outbox.nextId()
    outbox.giveBack(id)
    assert.strictEqual(outbox.takeAgain(id, 5), id)
    assert.isTrue(outbox.isEmpty)
    outbox.giveBack(id)
    outbox.close(0)
    const next = outbox.takeAgain(id, 5)
    assert.notStrictEqual(next, id)
    outbox.giveBack(next)
    assert.strictEqual(outbox.close(0).sections.length, 1)
  })
})
