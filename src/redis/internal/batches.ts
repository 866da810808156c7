import type * as Random from "effect/Random"

/** One that may have something to send before it must. */
interface Member {
  /** Sends now what may be sent already. */
  readonly goAlong: () => void
}

/**
 * The turns of a connection: when one exchange is due, all others that may be made by then go along, each as a command
 * of its own. Clients write the commands of one step as one message, so a process has one round trip for all that it
 * shares; what becomes of each exchange is known for each.
 */
export class Batches {
  /** Where in its spread the exchanges of this turn are repeated: the same place for all, so that they meet again. */
  spread = 0
  private readonly members = new Set<Member>()

  /** It has something to send later. */
  add(member: Member): void {
    this.members.add(member)
  }

  delete(member: Member): void {
    this.members.delete(member)
  }

  /** One exchange is made now. */
  begin(random: Random.Random): void {
    this.spread = random.nextDoubleUnsafe()
    // Each leaves while it goes along, and may be back.
    const members = [...this.members]
    for (const member of members) member.goAlong()
  }
}
