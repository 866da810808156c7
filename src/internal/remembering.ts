/** The same result for the same input, for as long as the input exists. */
export const remembering = <A extends object, B>(make: (a: A) => B) => {
  const made = new WeakMap<A, B>()
  return (a: A): B => {
    let found = made.get(a)
    if (found === undefined) made.set(a, found = make(a))
    return found
  }
}
