import { across, last, perSecond, type Raster, read, type Reading, successShare } from "../src/cli/charts/buckets.ts"
import type { ClientBucket, ServiceBucket, SimulationResult } from "../src/Simulator.ts"
import { summarize } from "../src/Simulator.ts"
import type { Figures, Line } from "./messages.ts"

type Series<Bucket> = (result: SimulationResult) => ReadonlyArray<Bucket>

const lineOf = <Bucket extends ClientBucket | ServiceBucket>(
  results: ReadonlyArray<SimulationResult>,
  series: Series<Bucket>,
  reading: Reading<Bucket>
): Line =>
  across(results.map((result) => {
    const buckets = series(result)
    const { bucketMillis, untilMillis } = result
    const raster: Raster = { bucketMillis, perPoint: 1, points: buckets.length, untilMillis }
    return read(raster, buckets, untilMillis, reading)
  }))

const ofClients: Series<ClientBucket> = ({ clients }) => clients[0]?.series ?? []
const ofService: Series<ServiceBucket> = ({ services }) => services[0]?.series ?? []

const held = ({ gauges: { balance, budget } }: ClientBucket): number | null => balance ?? budget

const leftOf = (results: ReadonlyArray<SimulationResult>): Line => {
  const most = Math.max(0, ...results.flatMap((result) => ofClients(result).map((bucket) => held(bucket) ?? 0)))
  return lineOf(
    results,
    ofClients,
    last((bucket) => {
      const value = held(bucket)
      return value === null ? null : most === 0 ? 0 : value / most
    })
  )
}

/** The figures of runs that the page shows. */
export const figuresOf = (results: readonly [SimulationResult, ...Array<SimulationResult>]): Figures => {
  const [first] = results
  return {
    runs: results.length,
    isPartial: first.partial,
    load: lineOf(results, ofService, perSecond((bucket) => bucket.received)),
    success: lineOf(results, ofClients, successShare),
    left: leftOf(results),
    summary: summarize(results),
    traceHash: first.traceHash,
    attempts: first.attempts
  }
}
