import { assert, describe, it } from "@effect/vitest"
import { Outbox } from "../../src/redis/internal/quotaClient.ts"

describe("what a shared quota has to report to Redis, while it cannot", () => {
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
      outbox.spend(`${now}:5`)
      told.push(outbox.close(now).sections.length)
    }
    assert.strictEqual(Math.max(...told), 10)
    assert.isFalse(outbox.isEmpty)
    assert.strictEqual(outbox.close(200_000).sections.length, 0)
    assert.isTrue(outbox.isEmpty)
  })

  it("is sent again until it has arrived, along with what was added since", () => {
    const outbox = new Outbox(500, 1000, () => {})
    outbox.giveBack("1:5")
    outbox.deposit(3)
    const first = outbox.close(0)
    outbox.spend("2:5")
    const second = outbox.close(10)
    assert.deepStrictEqual(
      second.sections.map(({ deposit, returned, sequence, spent }) => [sequence, deposit, returned, spent]),
      [[1, 3, ["1:5"], []], [2, 0, [], ["2:5"]]]
    )
    outbox.arrived(first.sequence)
    assert.deepStrictEqual(outbox.close(20).sections.map(({ sequence }) => sequence), [2])
    outbox.arrived(second.sequence)
    assert.isTrue(outbox.isEmpty)
  })

  it("is urgent if it is about a lease: a deposit can go along later", () => {
    const urgent: Array<boolean> = []
    const outbox = new Outbox(500, 1000, (isLease) => urgent.push(isLease))
    const seen = () => [urgent.splice(0), outbox.hasLeases, outbox.isEmpty]
    assert.deepStrictEqual(seen(), [[], false, true])
    outbox.deposit(0)
    assert.deepStrictEqual(seen(), [[], false, true])
    outbox.deposit(1)
    assert.deepStrictEqual(seen(), [[false], false, false])
    outbox.spend("1:5")
    assert.deepStrictEqual(seen(), [[true], true, false])
    const { sequence } = outbox.close(0)
    assert.deepStrictEqual(seen(), [[], true, false])
    outbox.arrived(sequence)
    assert.deepStrictEqual(seen(), [[], false, true])
    outbox.giveBack("2:5")
    assert.deepStrictEqual(seen(), [[true], true, false])
  })

  it("follows a change of its capacity and of the time for which it is kept", () => {
    const outbox = new Outbox(500, 1000, () => {})
    outbox.change(10, 50)
    outbox.deposit(100)
    assert.strictEqual(outbox.close(0).sections[0]!.deposit, 10)
    assert.deepStrictEqual([outbox.close(49).sections.length, outbox.close(50).sections.length], [1, 0])
  })
})
