import type { About, Ask, Figures, Message } from "./messages.ts"
import { labelOf } from "./scenario.ts"
import type { Choice, Setup } from "./setup.ts"

/** The results of a policy: those of the previous runs while new ones are in progress. */
export interface Slot {
  readonly choice: Choice
  readonly label: string
  readonly id: number
  readonly figures: Figures | undefined
  /** Whether the figures are those of this set-up, not of the previous one. */
  readonly isCurrent: boolean
  readonly about: About | undefined
  readonly problem: string | undefined
  /** Whether the figures are those of the set-up, and final. */
  readonly isDone: boolean
  /** Whether the first run of the set-up has ended. */
  readonly isFirstDone: boolean
}

const mostRuns = 10
const leastRuns = 3
/** This many attempts take a second or two. */
const affordable = 600_000

const runsOf = (slots: ReadonlyArray<Slot>): number => {
  const attempts = Math.max(1, ...slots.map(({ figures }) => figures?.attempts ?? 0))
  return Math.max(leastRuns, Math.min(mostRuns, Math.floor(affordable / attempts)))
}

/** Everything that decides what the runs of a policy show. */
const keyOf = ({ policies: _, ...setup }: Setup, choice: Choice): string => JSON.stringify([setup, choice])

/** Starts a worker, whose responses go to `receive`; returns how to ask it. */
export type Start = (receive: (message: Message) => void) => (ask: Ask) => void

/** Runs policies in workers: first one run of each, then with as many further seeds as are cheap. */
export class Laboratory {
  private readonly workers: ReadonlyArray<(ask: Ask) => void>
  private readonly onChange: (slots: ReadonlyArray<Slot>) => void
  private setup: Setup | undefined
  private slots: ReadonlyArray<Slot> = []
  private keys: ReadonlyArray<string> = []
  private ids = 0

  constructor(start: Start, workers: number, onChange: (slots: ReadonlyArray<Slot>) => void) {
    this.onChange = onChange
    this.workers = Array.from({ length: workers }, () => start((message) => this.receive(message)))
  }

  /** Runs the policies of a set-up. Runs in progress for another one are abandoned. */
  show(setup: Setup): void {
    const keys = setup.policies.map((choice) => keyOf(setup, choice))
    const before = this.slots
    this.setup = setup
    const isSame = (place: number) => keys[place] === this.keys[place] && before[place]?.isFirstDone === true
    this.slots = setup.policies.map((choice, place) => {
      const old = before[place]
      if (old !== undefined && isSame(place)) return { ...old, isDone: old.problem !== undefined }
      const id = ++this.ids
      const label = labelOf(choice)
      const shared = { id, choice, label, problem: undefined, isCurrent: false, isDone: false, isFirstDone: false }
      return { figures: old?.figures, about: old?.choice === choice ? old.about : undefined, ...shared }
    })
    this.keys = keys
    this.slots.forEach((slot, place) => !slot.isFirstDone && this.ask(place, 1))
    this.onChange(this.slots)
    this.more()
  }

  private ask(place: number, runs: number): void {
    const { choice, id } = this.slots[place]!
    const ask: Ask = { slot: place, id, setup: this.setup!, choice, runs }
    this.workers[place % this.workers.length]!(ask)
  }

  private receive(message: Message): void {
    const slot = this.slots[message.slot]
    if (slot?.id !== message.id) return
    const changed = this.changed(slot, message)
    this.slots = this.slots.map((other) => other === slot ? changed : other)
    this.onChange(this.slots)
    if (changed.isFirstDone && !slot.isFirstDone) this.more()
  }

  private changed(slot: Slot, message: Message): Slot {
    switch (message.kind) {
      case "about":
        return { ...slot, about: message.about }
      case "refused":
        return {
          ...slot,
          problem: message.problem,
          figures: undefined,
          isCurrent: true,
          isDone: true,
          isFirstDone: true
        }
      case "figures": {
        const isFirstDone = slot.isFirstDone || message.isDone
        const isDone = message.isDone && message.figures.runs > 1
        return { ...slot, figures: message.figures, isCurrent: true, isFirstDone, isDone }
      }
    }
  }

  /** Once every policy has been run once, all of them are run with the same further seeds. */
  private more(): void {
    if (!this.slots.every(({ isFirstDone }) => isFirstDone)) return
    const runs = runsOf(this.slots)
    this.slots.forEach((slot, place) => slot.problem === undefined && this.ask(place, runs))
  }
}
