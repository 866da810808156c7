import { scaleLinear } from "d3-scale"
import type { Explanation, Retry } from "../../Explain.ts"
import { limit, millis, percent, sampled, ticks } from "./format.ts"
import { type Html, html } from "./html.ts"
import { colors, grid, ink, soft } from "./palette.ts"
import { shortened } from "./shortened.ts"
import { at, diamond, document, dot, heading, key, levels, lineThrough, stroke, text } from "./svg.ts"

const width = 720
const headHeight = 62
const panelHeight = 250
const plot = { left: 70, right: 24, top: 52, bottom: 42 }
const right = width - plot.right
const floor = panelHeight - plot.bottom

/** The longest name that fits above the charts, in characters. */
const longestName = 60
/** With more retries than this, not every one is numbered. */
const mostNumbers = 8

/** A picture within the picture. */
interface Panel {
  readonly title: string
  readonly what: string
  readonly content: ReadonlyArray<Html>
}

const blue = colors[0]!.light
const orange = colors[1]!.light

const frame = (
  axis: string,
  y: (value: number) => number,
  values: ReadonlyArray<number>,
  unit: "duration" | "number"
): ReadonlyArray<Html> => [
  ...levels(plot.left, right, ticks(unit, values).map((label, n) => ({ label, place: y(values[n]!) }))),
  stroke(`M${plot.left} ${floor}H${right}`, soft.light),
  text((plot.left + right) / 2, panelHeight - 6, axis, { anchor: "middle", fill: ink.light })
]

const column = (retries: ReadonlyArray<Retry>, n: number): number =>
  plot.left + (n + 0.5) * (right - plot.left) / retries.length

/** The retries whose numbers fit. */
const retryLabels = (retries: ReadonlyArray<Retry>): ReadonlyArray<Html> => {
  const step = Math.ceil(retries.length / 25)
  return retries.flatMap(({ retry }, n) =>
    n % step === 0 ? [text(column(retries, n), floor + 16, `${retry}`, { anchor: "middle" })] : []
  )
}

/** Where what is above the charts stands. */
const keyHeight = 42
const half = (x: number, y: number): Html => dot(x, y, 4.5, blue)
const late = (x: number, y: number): Html => diamond(x, y, 5, orange)

/** Marks a delay that comes from samples. */
const delayText = (exact: boolean, value: number | null): string =>
  exact || value === null ? millis(value === null ? null : Number(value.toPrecision(3))) : sampled(value, millis)

const delays = ({ retries }: Explanation): Panel => {
  const most = Math.max(...retries.map(({ delay }) => delay.maxMillis ?? delay.p99Millis ?? 0))
  const y = scaleLinear([0, most || 1], [floor, plot.top])
  const isUnbounded = retries.some(({ delay }) => delay.maxMillis === null)
  const isSampled = retries.some(({ delay }) => !delay.exact)
  return {
    title: "Delay before each retry",
    what: `${isUnbounded ? "From the shortest to p99: there is no upper bound." : "From the shortest to the longest."}${
      isSampled ? " ~ marks percentiles of samples." : ""
    }`,
    content: [
      ...frame("retry", y, y.ticks(4), "duration"),
      ...retryLabels(retries),
      key(
        plot.left + 12,
        keyHeight,
        stroke(`M${plot.left} ${keyHeight}h8`, grid.light, { width: 10 }),
        "shortest to longest"
      ),
      key(plot.left + 152, keyHeight, half(plot.left + 144, keyHeight), "p50"),
      key(plot.left + 212, keyHeight, late(plot.left + 204, keyHeight), "p99"),
      ...retries.flatMap(({ delay }, n) => {
        const x = column(retries, n)
        const [low, high] = [y(delay.minMillis ?? 0), y(delay.maxMillis ?? delay.p99Millis ?? 0)]
        const label = (value: number | null) =>
          value === null || retries.length > mostNumbers
            ? []
            : [text(x + 10, y(value) + 4, delayText(delay.exact, value), { fill: ink.light, halo: true })]
        return [
          stroke(`M${at(x)} ${at(low)}V${at(high)}`, grid.light, { width: Math.min(10, 400 / retries.length) }),
          ...delay.p99Millis === null || delay.p99Millis === delay.p50Millis ? [] : [late(x, y(delay.p99Millis))],
          ...delay.p50Millis === null ? [] : [half(x, y(delay.p50Millis))],
          ...label(delay.p50Millis),
          ...delay.p99Millis !== null && y(delay.p50Millis ?? 0) - y(delay.p99Millis) > 13 ? label(delay.p99Millis) : []
        ]
      })
    ]
  }
}

const worstCase = ({ latency, retries }: Explanation): Panel => {
  const y = scaleLinear([0, Math.max(...retries.map(({ latestMillis }) => latestMillis)) || 1], [floor, plot.top])
  return {
    title: "The latest time each retry is sent",
    what: `From the beginning of the call.${
      latency.maxMillis === null ? "" : ` A failing call ends after at most ${millis(latency.maxMillis)}.`
    }`,
    content: [
      ...frame("retry", y, y.ticks(4), "duration"),
      ...retryLabels(retries),
      ...retries.flatMap(({ latestMillis }, n) => {
        const x = column(retries, n)
        return [
          stroke(`M${at(x)} ${floor}V${at(y(latestMillis))}`, blue, { width: 1.5 }),
          half(x, y(latestMillis)),
          ...retries.length > mostNumbers
            ? []
            : [
              text(x + 10, y(latestMillis) + 4, millis(Number(latestMillis.toPrecision(3))), {
                fill: ink.light,
                halo: true
              })
            ]
        ]
      })
    ]
  }
}

const withoutQuota = { width: 1.5, dash: [5, 3] }

const quotaKeys: ReadonlyArray<Html> = [
  key(plot.left + 16, keyHeight, stroke(`M${plot.left - 6} ${keyHeight}h16`, blue, { width: 2 }), "with the quota"),
  key(
    plot.left + 145,
    keyHeight,
    stroke(`M${plot.left + 122} ${keyHeight}h16`, soft.light, withoutQuota),
    "without a quota"
  )
]

/** What reaches the service, by the share of attempts that fail. */
const load = ({ load, quota }: Explanation): Panel => {
  const rates = [...load].sort((a, b) => a.failureRate - b.failureRate)
  const spots = (of: "attempts" | "attemptsWithoutQuota") =>
    rates.flatMap((rate) => rate[of] === null ? [] : [[rate.failureRate, rate[of]] as const])
  const [paid, free] = [spots("attempts"), spots("attemptsWithoutQuota")]
  const most = Math.max(1, ...[...paid, ...free].map(([, attempts]) => attempts))
  const x = scaleLinear([0, 1], [plot.left, right])
  const y = scaleLinear([0, most * 1.05], [floor, plot.top])
  const curve = (of: ReturnType<typeof spots>) => lineThrough(of.map(([rate, attempts]) => [x(rate), y(attempts)]))
  const bitesAt = quota?.bitesAt ?? null
  const isLate = bitesAt !== null && bitesAt > 0.6
  return {
    title: "Load on the service: requests per call",
    what: "In the long run, when attempts fail independently of each other.",
    content: [
      ...frame("share of attempts that fail", y, y.ticks(4), "number"),
      ...x.ticks(5).map((rate) => text(x(rate), floor + 16, percent(rate), { anchor: "middle" })),
      ...quota === null ? [] : [stroke(curve(free), soft.light, withoutQuota)],
      stroke(curve(paid), blue, { width: 2 }),
      ...quota === null ? [] : quotaKeys,
      ...bitesAt === null ? [] : [
        stroke(`M${at(x(bitesAt))} ${plot.top}V${floor}`, ink.light, { width: 1.5, dash: [4, 3] }),
        text(x(bitesAt) + (isLate ? -6 : 6), floor - 8, `the quota refuses retries from ${percent(bitesAt)}`, {
          anchor: isLate ? "end" : "start",
          fill: ink.light,
          halo: true
        })
      ]
    ]
  }
}

/** The chart in words, for readers who cannot see it. */
const description = ({ latency, load, quota, retries }: Explanation): string =>
  [
    ...retries.map(({ delay, latestMillis, retry }) =>
      `Retry ${retry}: delay from ${millis(delay.minMillis)} to ${millis(delay.maxMillis)}, p50 ${
        delayText(delay.exact, delay.p50Millis)
      }, p99 ${delayText(delay.exact, delay.p99Millis)}, sent after ${millis(latestMillis)} at the latest.`
    ),
    ...latency.maxMillis === null ? [] : [`A failing call ends after at most ${millis(latency.maxMillis)}.`],
    ...load.map(({ attempts, failureRate }) =>
      `When ${percent(failureRate)} of attempts fail: ${
        attempts === null ? "no bound" : attempts.toFixed(2)
      } requests per call.`
    ),
    ...quota === null || quota.bitesAt === null ? [] : [`The quota refuses retries from ${percent(quota.bitesAt)}.`]
  ].join(" ")

/** An explanation as an SVG document: delays, the worst case, and the load by failure rate. */
export const explainSvg = (all: Explanation): string => {
  // With only a deadline to end it, a policy would fill the picture with retries that not one sample makes.
  const explanation = { ...all, retries: all.retries.filter(({ share }) => share > 0) }
  const { attemptMillis, failure, maxAttempts, name } = explanation
  const panels = [
    ...explanation.retries.length === 0 ? [] : [delays(explanation), worstCase(explanation)],
    ...explanation.load.length === 0 ? [] : [load(explanation)]
  ]
  const kind = failure.safety === "No" ? "not retryable" : failure.class
  return document(
    { width, height: headHeight + panels.length * panelHeight + 8 },
    { title: `What ${name ?? "a retry policy"} does`, description: description(explanation) },
    [
      heading(16, 30, shortened(name ?? "A retry policy", longestName), 18),
      text(16, 50, `${limit(maxAttempts)}; every attempt fails (${kind}) after ${millis(attemptMillis)}`, { size: 13 }),
      ...panels.map(({ content, title, what }, n) =>
        html`<g transform="translate(0 ${headHeight + n * panelHeight})">${heading(16, 14, title, 13)}${
          text(16, 29, what)
        }${content}</g>`
      )
    ]
  )
}
