import { remembering } from "../../internal/remembering.ts"
import * as Compiling from "../compiled.ts"
import { chain, Decider } from "../decider.ts"
import type { Failing } from "../delay.ts"
import { costOf } from "../verdict.ts"
import { joined } from "./providedPolicy.ts"

/** The policies that would retry after this failure, and those that stop. */
interface Votes {
  readonly going: Array<Decider>
  readonly stopped: Array<Decider>
}

/** What a retry of a policy may take from the quota after the last failure, also by policies inside it. */
const priceOf = ({ compiled, run }: Decider): number => costOf(Compiling.limitsOf(compiled).quota, run.info)

/**
 * Asks all of them, even if one has stopped: each counts every failure. Once the answer is certain, the others wait for no
 * tokens, and one that refuses gives no reason.
 */
const votes = (
  deciders: ReadonlyArray<Decider>,
  rank: (price: number) => number,
  isCertain: (votes: Votes) => boolean,
  counted: (votes: Votes) => boolean
): Compiling.Answer => {
  const so: Votes = { going: [], stopped: [] }
  const asked = deciders
    .filter((decider) => decider.counts() || so.stopped.push(decider) === 0)
    .sort((one, other) => rank(priceOf(one)) - rank(priceOf(other)))
  const from = (index: number): Compiling.Answer => {
    const decider = asked[index]
    if (decider === undefined) return counted(so)
    decider.isIdle = isCertain(so)
    return chain(decider.affords(), (goes) => {
      if (goes) so.going.push(decider)
      else if (decider.isIdle === false) so.stopped.push(decider)
      return from(index + 1)
    })
  }
  return from(0)
}

/** Their deadlines count from where the policy around them begins. */
const within = (around: Compiling.Surrounding, compiled: Compiling.Compiled): Decider =>
  new Decider(compiled, around.run, around.startMillis, around.deadlineAtMillis)

/** It has seen all failures since this many, also those that others were chosen to decide about. */
const caughtUp = (around: Compiling.Surrounding, decider: Decider, begun = 0): Decider => {
  const missed = Math.max(0, around.attempt - 1 - begun - decider.attempt)
  decider.attempt += missed
  decider.step += missed
  return decider
}

/** Point by point: `max` is all of them, the longest and the dearest; `min` any of them, the shortest and the cheapest. */
export const joining = (op: "max" | "min", of: ReadonlyArray<Compiling.Compiled>): Compiling.Source => ({
  begin: (around) => {
    const deciders = of.map((compiled) => within(around, compiled))
    const isMax = op === "max"
    const [most, least] = isMax ? [Math.max, Math.min] : [Math.min, Math.max]
    // First those that pay nothing. The dearest then pays for the others too; the cheapest does without them.
    const rank = (price: number) => isMax && price > 0 ? 1 / price : price
    const isCertain = (votes: Votes) => around.isIdle === true || votes[isMax ? "stopped" : "going"].length > 0
    return () => {
      for (const decider of deciders) caughtUp(around, decider)
      return votes(deciders, rank, isCertain, ({ going, stopped }) => {
        if (going.length < (isMax ? deciders.length : 1)) {
          const first = deciders.find((decider) => stopped.includes(decider))
          return around.refuses(
            first?.reason ?? "schedule",
            Math.max(0, ...stopped.map((decider) => decider.holdMillis))
          )
        }
        return around.accepts({
          delayMillis: most(...going.map((decider) => decider.delayMillis)),
          cost: most(...going.map((decider) => decider.cost)),
          untilMillis: least(...going.map((decider) => decider.untilMillis)),
          maxAttempts: least(...going.map((decider) => decider.maxAttempts))
        })
      })
    }
  },
  isTimed: of.some(Compiling.isTimed),
  limited: of.map(Compiling.limitsOf).reduce(op === "max" ? Compiling.meet : Compiling.join),
  lifted: (limit) => joining(op, of.map((compiled) => Compiling.changed(compiled, replacing(limit))))
})

/** A limit, or none, in place of those of a policy, and of the policies inside that it holds for as a whole. */
export const replacing =
  <Name extends Compiling.Limit>(name: Name, limit: (typeof Compiling.free)[Name] = Compiling.free[name]) =>
  ({ source }: Compiling.Compiled): Partial<Compiling.Compiled> => {
    const inside = typeof source === "function" ? undefined : source.lifted?.(name)
    return { [name]: limit, ...inside && { source: inside } }
  }

/** Does what one of them decides. Others may follow it with more attempts. */
const obeying = (
  around: Compiling.Surrounding,
  decider: Decider,
  more = 0,
  stopped?: () => Compiling.Answer | undefined
): Compiling.Answer => {
  decider.isIdle = around.isIdle
  return chain(decider.decides(), (goes) => {
    if (!goes) return stopped?.() ?? around.refuses(decider.reason, decider.holdMillis)
    const { cost, delayMillis, maxAttempts, untilMillis } = decider
    return around.accepts({ cost, delayMillis, maxAttempts: maxAttempts + more, untilMillis })
  })
}

/** One, then the other: it begins with the failure that ended the one before. */
export const following = (first: Compiling.Compiled, second: Compiling.Compiled): Compiling.Source => ({
  begin: (around) => {
    let decider = within(around, first)
    let isLast = false
    let begun = 0
    const next = (): Compiling.Answer =>
      obeying(around, caughtUp(around, decider, begun), isLast ? 0 : Compiling.limitsOf(second).maxAttempts - 1, () => {
        // One that only does not wait for tokens has not ended.
        if (isLast || (around.isIdle && decider.reason === "quota-exhausted")) return undefined
        isLast = true
        // Where earlier failures are only repeated, around it has seen none of them.
        begun = (around.attempt || Infinity) - 1
        decider = new Decider(second, around.run, undefined, around.deadlineAtMillis)
        return next()
      })
    return next
  },
  isTimed: Compiling.isTimed(first),
  limited: Compiling.sequence(Compiling.limitsOf(first), Compiling.limitsOf(second))
})

/** How many policies a choice remembers: of more, the one chosen first begins again. */
const maxChosen = 100

/** The one that each failure chooses. */
export const choosing = (compiledFor: (failing: Failing) => Compiling.Compiled): Compiling.Source => ({
  begin: (around) => {
    const deciders = new Map<Compiling.Compiled, Decider>()
    return () => {
      const compiled = compiledFor(around)
      const decider = deciders.get(compiled) ?? within(around, compiled)
      deciders.set(compiled, decider)
      // Policies that are made for each failure do not add up.
      if (deciders.size > maxChosen) deciders.delete(deciders.keys().next().value!)
      // They share one count: each of them sees all failures.
      decider.attempt = around.attempt - 1
      decider.step = around.step - 1
      return chain(joined(around.run, compiled.services, () => obeying(around, decider)), (goes) => {
        if (decider.step === 0) around.restart()
        return goes
      })
    }
  },
  lifted: (limit) => {
    const lifted = remembering((compiled: Compiling.Compiled) => Compiling.changed(compiled, replacing(limit)))
    return choosing((failing) => lifted(compiledFor(failing)))
  }
})
