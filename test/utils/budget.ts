/**
 * How much the laws and the simulations try: all of it with `LAWS=full`, as the gate does; else the first few seeds,
 * samples or cells, which are the same each time.
 */
const isFull = process.env["LAWS"] === "full"

/** How many of so many: a tenth, or the `few`. */
export const budget = (full: number, few = Math.ceil(full / 10)): number => isFull ? full : few

/** The first of these. */
export const firstOf = <A>(all: ReadonlyArray<A>, few?: number): ReadonlyArray<A> =>
  all.slice(0, budget(all.length, few))

/** Registers tests that only the gate runs. */
export const onlyInFull = (register: () => void): void => {
  if (isFull) register()
}
