import { assert, describe, it } from "@effect/vitest"
import { Laboratory, type Slot, type Start } from "../../playground/laboratory.ts"
import type { Ask, Figures, Message } from "../../playground/messages.ts"
import { begin } from "../../playground/setup.ts"

/** A laboratory whose workers only note what they are asked. */
const laboratory = () => {
  const asked: Array<Ask> = []
  let slots: ReadonlyArray<Slot> = []
  let tell: (message: Message) => void = () => {}
  const start: Start = (hear) => {
    tell = hear
    return (ask) => asked.push(ask)
  }
  const made = new Laboratory(start, 1, (changed) => {
    slots = changed
  })
  return { asked, made, slots: () => slots, tell }
}

const figures = (runs: number) => ({ runs, isPartial: false, attempts: 100_000 }) as Figures

describe("the laboratory of the playground", () => {
  it("ends although one of the policies is refused, after a change of another one too", () => {
    const { asked, made, slots, tell } = laboratory()
    const settle = () => {
      for (let next = asked.shift(); next !== undefined; next = asked.shift()) {
        const { id, runs, slot } = next
        if (slot === 0) tell({ slot, id, kind: "refused", problem: "no" })
        else tell({ slot, id, kind: "figures", figures: figures(runs), isDone: true })
      }
    }
    made.show({ ...begin, policies: [{ name: "none" }, { name: "naive" }] })
    settle()
    assert.deepStrictEqual(slots().map(({ isDone }) => isDone), [true, true])
    made.show({ ...begin, policies: [slots()[0]!.choice, { name: "grpc" }] })
    settle()
    assert.deepStrictEqual(slots().map(({ isDone }) => isDone), [true, true])
  })
})
