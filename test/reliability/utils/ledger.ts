import { RetryQuota, type RetryQuotaStore, SendGate } from "effect-retry"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Chance } from "./random.ts"

/** What one reservation or pass has been through, in order. */
type Story = Array<"sent" | "giveBack" | "spend" | "settle" | "cancel">

/** A record of what was granted, and of how each piece of it was settled. */
export class Ledger {
  readonly capacity = 300
  readonly reservations: Array<{ readonly cost: number; readonly story: Story }> = []
  readonly passes: Array<Story> = []
  taken = 0
  deposited = 0

  get balance(): number {
    return this.capacity - this.taken
  }

  /** What is wrong in the end. */
  get faults(): ReadonlyArray<string> {
    const faults: Array<string> = []
    let spent = 0
    for (const { cost, story } of this.reservations) {
      const settled = story.filter((step) => step !== "sent")
      if (settled.length !== 1) faults.push(`a reservation was settled ${settled.length} times: ${story.join(", ")}`)
      if (settled[0] === "spend") spent += cost
      if (settled[0] === "spend" && !story.includes("sent")) faults.push("tokens were spent on a send that never was")
    }
    for (const story of this.passes) {
      if (story.length !== 1) faults.push(`a pass was settled ${story.length} times: ${story.join(", ")}`)
    }
    if (this.taken !== spent) faults.push(`${this.taken} tokens are missing, ${spent} were spent`)
    return faults
  }

  private take(cost: number): RetryQuotaStore.Reservation {
    const story: Story = []
    this.reservations.push({ cost, story })
    this.taken += cost
    const once = (step: "giveBack" | "spend") => () => {
      const isFirst = !story.includes("giveBack") && !story.includes("spend")
      story.push(step)
      if (isFirst && step === "giveBack") this.taken -= cost
      return isFirst
    }
    return { cost, sent: () => void story.push("sent"), giveBack: once("giveBack"), spend: once("spend") }
  }

  /** A quota that answers immediately, or is asked and answers later, at times with a refusal. */
  quota(chance: Chance, asks: boolean): RetryQuota.Service {
    return RetryQuota.fromStore({
      capacity: this.capacity,
      successIncrement: 0,
      firstAttemptCost: 0,
      onExceeded: "stop",
      reserve: (cost) => {
        if (this.balance < cost) return undefined
        if (!asks) return this.take(cost)
        return (_, hold) =>
          Effect.andThen(
            Effect.sleep(chance.below(30)),
            Effect.sync(() => {
              if (this.balance >= cost && !chance.isLikely(0.1)) hold(this.take(cost))
            })
          )
      },
      deposit: () => {},
      balance: () => this.balance
    })
  }

  /** A gate that lets sends pass, makes them wait, or refuses them. */
  gate(chance: Chance, order: number): SendGate.SendGate<GateClosed> {
    const pass = (send: SendGate.Send) => {
      const story: Story = []
      this.passes.push(story)
      send.hold({ settle: () => void story.push("settle"), cancel: () => void story.push("cancel") })
    }
    return {
      order,
      enter: (send) => {
        const kind = chance.next()
        if (kind < 0.6) return pass(send)
        if (kind < 0.95) return Effect.andThen(Effect.sleep(chance.below(40)), Effect.sync(() => pass(send)))
        return Effect.fail(new GateClosed())
      }
    }
  }
}

/** What a gate refuses with: the send was never made. */
export class GateClosed extends Data.TaggedError("GateClosed") {
  readonly [SendGate.Refused] = true
}

export class FirstGate extends SendGate.Service<FirstGate, GateClosed>()("test/FirstGate") {}
export class SecondGate extends SendGate.Service<SecondGate, GateClosed>()("test/SecondGate") {}
