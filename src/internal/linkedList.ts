import * as Effect from "effect/Effect"

/** An item that can be in one list at a time. */
export interface Linked<Self> {
  /** The list it is in. */
  list: List<any> | undefined
  previous: Self | undefined
  next: Self | undefined
}

/** A list that removes any item in constant time. */
export class List<Item extends Linked<Item>> {
  first: Item | undefined = undefined
  last: Item | undefined = undefined
  size = 0

  append(item: Item): void {
    item.list = this
    item.previous = this.last
    if (this.last === undefined) this.first = item
    else this.last.next = item
    this.last = item
    this.size++
  }

  /** Returns `false` for an item that is not in the list. */
  remove(item: Item): boolean {
    if (item.list !== this) return false
    if (item.previous === undefined) this.first = item.next
    else item.previous.next = item.next
    if (item.next === undefined) this.last = item.previous
    else item.next.previous = item.previous
    item.list = item.previous = item.next = undefined
    this.size--
    return true
  }
}

/** Waits until it is woken, unless it is up already. The one that wakes it goes on first. */
export const untilWoken = (sleeper: { wake: (() => void) | undefined }, isUp: () => boolean): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (isUp()) return resume(Effect.void)
    sleeper.wake = () => {
      sleeper.wake = undefined
      resume(Effect.yieldNow)
    }
    return Effect.sync(() => {
      sleeper.wake = undefined
    })
  })
