import * as Ref from "effect/Ref"

/** What keeps its state in a `Ref` of an immutable record. A plain write of the `Ref` wakes no waiter. */
export abstract class Stateful<State> {
  readonly ref: Ref.Ref<State>

  constructor(state: State) {
    this.ref = Ref.makeUnsafe(state)
  }

  /** Read and written in one step with what follows from it, without an effect. */
  protected get state(): State {
    return this.ref.ref.current
  }

  protected set state(state: State) {
    this.ref.ref.current = state
  }
}
