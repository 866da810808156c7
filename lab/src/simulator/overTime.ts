/** A value from a time on, which is reached immediately or in a straight line from the point before. */
export interface Point {
  readonly atMillis: number
  readonly value: number
  readonly ramp: boolean
}

/** The value at each time, for times that only grow: before the first point the first value, after the last point the last. */
export const overTime = (points: ReadonlyArray<Point>): (nowMillis: number) => number => {
  let index = 0
  return (nowMillis) => {
    while (index + 1 < points.length && points[index + 1]!.atMillis <= nowMillis) index++
    const from = points[index]!
    const to = points[index + 1]
    if (to === undefined || !to.ramp || nowMillis <= from.atMillis) return from.value
    return from.value + (to.value - from.value) * (nowMillis - from.atMillis) / (to.atMillis - from.atMillis)
  }
}
