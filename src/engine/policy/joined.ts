import { chain, Decider } from "../decider.ts"
import type { Failing } from "../delay.ts"
import {
  type Answer,
  changed,
  join,
  limitsOf,
  meet,
  type Parts,
  sequence,
  type Source,
  type Surrounding
} from "../parts.ts"
import { joined } from "./provided.ts"

/** The policies that would retry after this failure, and one of those that stop. */
interface Votes {
  readonly going: Array<Decider>
  stopped: Decider | undefined
  holdMillis: number
}

/** Asks all of them, even if one has stopped: each counts every failure. */
const votes = (deciders: ReadonlyArray<Decider>, counted: (votes: Votes) => boolean): Answer => {
  const so: Votes = { going: [], stopped: undefined, holdMillis: 0 }
  const from = (index: number): Answer => {
    const decider = deciders[index]
    if (decider === undefined) return counted(so)
    return chain(decider.decides(), (goes) => {
      if (goes) so.going.push(decider)
      else {
        so.stopped ??= decider
        so.holdMillis = Math.max(so.holdMillis, decider.holdMillis)
      }
      return from(index + 1)
    })
  }
  return from(0)
}

/** Their deadlines count from where the policy around them begins. */
const within = (around: Surrounding, parts: Parts): Decider =>
  new Decider(parts, around.run, around.startMillis, around.deadlineAtMillis)

/** Point by point: `max` is all of them, the longest and the dearest; `min` any of them, the shortest and the cheapest. */
export const joining = (op: "max" | "min", of: ReadonlyArray<Parts>): Source => ({
  begin: (around) => {
    const deciders = of.map((parts) => within(around, parts))
    const [most, least] = op === "max" ? [Math.max, Math.min] : [Math.min, Math.max]
    return () =>
      votes(deciders, ({ going, holdMillis, stopped }) => {
        if (op === "max" ? stopped !== undefined : going.length === 0) {
          return around.refuses(stopped?.reason ?? "schedule", holdMillis)
        }
        return around.accepts({
          delayMillis: most(...going.map((decider) => decider.delayMillis)),
          cost: most(...going.map((decider) => decider.cost)),
          untilMillis: least(...going.map((decider) => decider.untilMillis)),
          maxAttempts: least(...going.map((decider) => decider.maxAttempts))
        })
      })
  },
  limited: of.map(limitsOf).reduce(op === "max" ? meet : join),
  lifted: (free) => joining(op, of.map((parts) => changed(parts, lifting(free))))
})

/** Lifts a limit from a policy, and from those inside that it holds for as a whole. */
export const lifting = (free: Partial<Parts>) => ({ source }: Parts): Partial<Parts> => {
  const inside = typeof source === "function" ? undefined : source.lifted?.(free)
  return inside === undefined ? free : { ...free, source: inside }
}

/** Does what one of them decides. */
const obeying = (around: Surrounding, decider: Decider, stopped?: () => Answer): Answer =>
  chain(
    decider.decides(),
    (goes) => goes ? around.accepts(decider) : stopped?.() ?? around.refuses(decider.reason, decider.holdMillis)
  )

/** One, then the other: it begins with the failure that ended the one before. */
export const following = (first: Parts, second: Parts): Source => ({
  begin: (around) => {
    let decider = within(around, first)
    let isLast = false
    const next = (): Answer =>
      obeying(
        around,
        decider,
        isLast ? undefined : () => {
          isLast = true
          decider = new Decider(second, around.run, undefined, around.deadlineAtMillis)
          return next()
        }
      )
    return next
  },
  limited: sequence(limitsOf(first), limitsOf(second))
})

/** How many policies a choice remembers: of more, the one chosen first begins again. */
const maxChosen = 100

/** The one that each failure chooses. */
export const choosing = (partsFor: (failing: Failing) => Parts): Source => ({
  begin: (around) => {
    const deciders = new Map<Parts, Decider>()
    return () => {
      const parts = partsFor(around)
      const decider = deciders.get(parts) ?? within(around, parts)
      deciders.set(parts, decider)
      // Policies that are made for each failure do not add up.
      if (deciders.size > maxChosen) deciders.delete(deciders.keys().next().value!)
      // They share one count: each of them sees all failures.
      decider.attempt = around.attempt - 1
      decider.step = around.step - 1
      return chain(joined(around.run, parts.services, () => obeying(around, decider)), (goes) => {
        if (decider.step === 0) around.restart()
        return goes
      })
    }
  },
  lifted: (free) => choosing(remembering(partsFor, (parts) => changed(parts, lifting(free))))
})

/** The same parts for the same parts. */
const remembering = (partsFor: (failing: Failing) => Parts, change: (parts: Parts) => Parts) => {
  const changes = new WeakMap<Parts, Parts>()
  return (failing: Failing): Parts => {
    const parts = partsFor(failing)
    const found = changes.get(parts) ?? change(parts)
    changes.set(parts, found)
    return found
  }
}
