/**
 * Timed comparisons: all subjects in one process, a batch of each in every round, in another order each time.
 *
 * A sample is the CPU time of a batch, collector and compiler included, divided by its operations. A ratio is taken
 * within each round, so that what slows the machine for a while slows both sides of it. The heap is never collected by
 * force: that throws away the compiled code of short-lived objects and slows `Effect.retry` up to five times.
 */

/** Something to measure. */
export interface Subject {
  readonly name: string
  /** Makes this many operations, one after the other unless the subject says otherwise. */
  readonly run: (operations: number) => Promise<unknown>
}

/** How long to measure. */
export interface Effort {
  readonly rounds: number
  /** CPU time that a subject warms up for. */
  readonly warmUpMillis: number
  /** CPU time of one batch. */
  readonly batchMillis: number
}

/** A number as the rounds showed it: the median, and the tenth and ninetieth percentile. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

/** Nanoseconds of CPU time per operation, by subject and round. */
export type Samples = ReadonlyMap<string, ReadonlyArray<number>>

export const spread = (values: ReadonlyArray<number>): Spread => {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!
  return { median: at(0.5), low: at(0.1), high: at(0.9) }
}

/** Any two series of samples, round by round. */
export const quotient = (over: ReadonlyArray<number>, under: ReadonlyArray<number>): Spread =>
  spread(over.map((sample, round) => sample / under[round]!))

/** The first subject's samples over the second's, round by round. */
export const ratio = (samples: Samples, over: string, under: string): Spread =>
  quotient(samples.get(over)!, samples.get(under)!)

/** What the first subject takes more than the second, as a multiple of the third, round by round. */
export const added = (samples: Samples, over: string, base: string, unit: string): Spread =>
  quotient(samples.get(over)!.map((sample, round) => sample - samples.get(base)![round]!), samples.get(unit)!)

const cpuMicros = (): number => {
  const { system, user } = process.cpuUsage()
  return system + user
}

/** Nanoseconds of CPU time per operation of one batch. */
const sample = async (subject: Subject, operations: number): Promise<number> => {
  const before = cpuMicros()
  await subject.run(operations)
  return (cpuMicros() - before) * 1000 / operations
}

/** Runs the subject until it is compiled, and returns how many operations make a batch. */
const batchSize = async (subject: Subject, { batchMillis, warmUpMillis }: Effort): Promise<number> => {
  let operations = 64
  let rate = 0
  for (let millis = 0; millis < warmUpMillis;) {
    const nanos = await sample(subject, operations)
    rate = 1e6 / nanos
    millis += operations / rate
    if (operations / rate < batchMillis) operations *= 2
  }
  return Math.max(1, Math.round(rate * batchMillis))
}

/** The items in random order. */
export const shuffled = <A>(items: ReadonlyArray<A>): Array<A> => {
  const mixed = [...items]
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1))
    const item = mixed[last]!
    mixed[last] = mixed[other]!
    mixed[other] = item
  }
  return mixed
}

/** Measures subjects against each other. With `operations` every batch has that many, in place of a time. */
export const measure = async (
  subjects: ReadonlyArray<Subject>,
  effort: Effort,
  operations?: number
): Promise<Samples> => {
  const samples = new Map<string, Array<number>>()
  const batches: Array<{ readonly subject: Subject; readonly operations: number }> = []
  for (const subject of subjects) {
    samples.set(subject.name, [])
    batches.push({ subject, operations: operations ?? await batchSize(subject, effort) })
  }
  for (let round = -1; round < effort.rounds; round++) {
    for (const batch of shuffled(batches)) {
      const taken = await sample(batch.subject, batch.operations)
      if (round >= 0) samples.get(batch.subject.name)!.push(taken)
    }
  }
  return samples
}
