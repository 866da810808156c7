import * as Effect from "effect/Effect"

/** What a waiter waits for. */
export interface Grant {
  /** Takes what is wanted and returns 0, or returns the milliseconds (at least 1) until it could be there. */
  readonly take: () => number
  /** Puts back what was taken and never used. */
  readonly undo: () => void
}

class Waiter {
  previous: Waiter | undefined = undefined
  next: Waiter | undefined = undefined
  state: "new" | "queued" | "granted" | "used" = "new"
  signalled = false
  wake: (() => void) | undefined = undefined
  readonly grant: Grant
  constructor(grant: Grant) {
    this.grant = grant
  }
}

/** How long a waiter is ready to wait. */
export interface Patience<out E> {
  /** Refuses to wait at all; it is told how long it could take if the waiter is the first. */
  readonly refuses?: ((millis: number) => E | undefined) | undefined
  /** Refuses to wait longer than this. */
  readonly atMost?: { readonly millis: number; readonly expired: () => E } | undefined
}

/**
 * A queue in which the first to come is the first to be served. Only the head has a timer; it hands its place on when it
 * leaves, granted or interrupted, and what it was granted but never used goes back.
 */
export class Waiters {
  private head: Waiter | undefined = undefined
  private tail: Waiter | undefined = undefined
  /** How many are waiting. */
  size = 0
  private waking = false
  private wakeAgain = false

  /** Lets the head look again: what it waits for may be there earlier than it thought. */
  wakeHead(): void {
    this.wakeAgain = true
    // A head that is woken runs at once, and wakes the next one: here in turn, not each inside the one before it.
    if (this.waking) return
    this.waking = true
    try {
      while (this.wakeAgain) {
        this.wakeAgain = false
        this.signalHead()
      }
    } finally {
      this.waking = false
    }
  }

  private signalHead(): void {
    const head = this.head
    if (head === undefined) return
    if (head.wake === undefined) {
      head.signalled = true
    } else {
      head.wake()
    }
  }

  /**
   * Runs `use` once it has been granted. What was granted goes back unless `use` calls the function it is given, which
   * says that it is used from now on.
   */
  run<A, E, R, E2 = never>(
    grant: Grant,
    use: (used: () => void) => Effect.Effect<A, E, R>,
    patience: Patience<E2> = {}
  ): Effect.Effect<A, E | E2, R> {
    return Effect.suspend(() => {
      const waiter = new Waiter(grant)
      const used = () => {
        waiter.state = "used"
      }
      const { atMost, refuses } = patience
      const turn = this.turn(waiter, refuses)
      const patient = atMost === undefined ? turn : Effect.timeoutOrElse(turn, {
        duration: atMost.millis,
        orElse: () => Effect.fail(atMost.expired())
      })
      const granted = Effect.flatMap(patient, () => use(used))
      return Effect.onExit(granted, () => Effect.sync(() => this.leave(waiter)))
    })
  }

  private turn<E2>(waiter: Waiter, refuses?: (millis: number) => E2 | undefined): Effect.Effect<void, E2> {
    return Effect.suspend(() => {
      const first = this.head === undefined || this.head === waiter
      const millis = first ? waiter.grant.take() : 0
      if (first && millis === 0) {
        this.remove(waiter)
        waiter.state = "granted"
        this.wakeHead()
        return Effect.void
      }
      if (waiter.state === "new") {
        const refusal = refuses?.(millis)
        if (refusal !== undefined) return Effect.fail(refusal)
        this.append(waiter)
      }
      const signal = this.signal(waiter)
      return Effect.flatMap(
        first ? Effect.raceFirst(Effect.sleep(millis), signal) : signal,
        () => this.turn(waiter, refuses)
      )
    })
  }

  private signal(waiter: Waiter): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (waiter.signalled) {
        waiter.signalled = false
        return resume(Effect.void)
      }
      waiter.wake = () => {
        waiter.wake = undefined
        resume(Effect.void)
      }
      return Effect.sync(() => {
        waiter.wake = undefined
      })
    })
  }

  private leave(waiter: Waiter): void {
    if (waiter.state === "granted") waiter.grant.undo()
    if (waiter.state === "queued") {
      const wasHead = this.head === waiter
      this.remove(waiter)
      if (wasHead) this.wakeHead()
    } else if (waiter.state === "granted") {
      this.wakeHead()
    }
  }

  private append(waiter: Waiter): void {
    waiter.state = "queued"
    waiter.previous = this.tail
    if (this.tail === undefined) {
      this.head = waiter
    } else {
      this.tail.next = waiter
    }
    this.tail = waiter
    this.size++
  }

  private remove(waiter: Waiter): void {
    if (waiter.state !== "queued") return
    if (waiter.previous === undefined) {
      this.head = waiter.next
    } else {
      waiter.previous.next = waiter.next
    }
    if (waiter.next === undefined) {
      this.tail = waiter.previous
    } else {
      waiter.next.previous = waiter.previous
    }
    waiter.previous = waiter.next = undefined
    this.size--
  }
}
