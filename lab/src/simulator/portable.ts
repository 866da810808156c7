/**
 * Logarithm, exponential function and cosine from sums, products and quotients alone: those are exact everywhere, while
 * engines differ in the last digits of `Math.log`, `Math.exp`, `Math.cos` and `**`, and so would runs.
 */

const double = new Float64Array(1)
const words = new Uint32Array(double.buffer)
const low = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1
const high = 1 - low

/** A power of 2 from -1022 to 1023. */
const powerOf2 = (exponent: number): number => {
  words[high] = (exponent + 1023) << 20
  words[low] = 0
  return double[0]!
}

// The logarithm of 2 in two parts; the first has so few digits that its multiples are exact.
const ln2High = 0.6931471803691238
const ln2Low = 1.9082149292705877e-10

const even = (w: number): number => w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373))

const odd = (z: number, w: number): number =>
  z *
  (0.6666666666666735 +
    w * (0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)))

/** The logarithm of `number * 2 ** k`, the number from 1 to 2 and the first 20 bits of its mantissa next to it. */
const logOf = (number: number, mantissa: number, k: number): number => {
  const isUpper = ((mantissa + 0x95f64) & 0x100000) !== 0
  const f = (isUpper ? number / 2 : number) - 1
  const power = isUpper ? k + 1 : k
  if ((0xfffff & (2 + mantissa)) < 3) {
    if (f === 0) return power * ln2High + power * ln2Low
    return power * ln2High - (f * f * (0.5 - f / 3) - power * ln2Low - f)
  }
  const s = f / (2 + f)
  const z = s * s
  const w = z * z
  const sum = odd(z, w) + even(w)
  if (((mantissa - 0x6147a) | (0x6b851 - mantissa)) <= 0) return power * ln2High - (s * (f - sum) - power * ln2Low - f)
  const half = 0.5 * f * f
  return power * ln2High - (half - (s * (half + sum) + power * ln2Low) - f)
}

/**
 * The natural logarithm of a normal number above 0, to less than one unit in the last place.
 * Source: the algorithm and the constants of fdlibm 5.3, Sun Microsystems, 1993, whose digits V8 gives in Node 20 to 24.
 */
export const log = (x: number): number => {
  double[0] = x
  const k = (words[high]! >>> 20) - 1023
  const mantissa = words[high]! & 0xfffff
  words[high] = mantissa | 0x3ff00000
  return logOf(double[0]!, mantissa, k)
}

const inverses = Array.from({ length: 33 }, (_, k) => powerOf2(-k))

/** The same of `count / 2 ** 32`, a whole number from 1 to 2 ** 32, in a fraction of the time. */
export const logOfShare = (count: number): number => {
  if (count === 4294967296) return 0
  const zeros = Math.clz32(count)
  const k = 31 - zeros
  return logOf(count * inverses[k]!, ((count << zeros) << 1) >>> 12, k - 32)
}

/** What each term of a series is of the one before it, apart from a factor `x`. */
const ratios = (...divisors: ReadonlyArray<number>): ReadonlyArray<number> => divisors.map((divisor) => 1 / divisor)

/** The sum of a series by Horner: `1 + x * first * (1 + x * second * (1 + ...))`. */
const series = (x: number, ratios: ReadonlyArray<number>): number => {
  let sum = 1
  for (let n = ratios.length - 1; n >= 0; n--) sum = 1 + x * ratios[n]! * sum
  return sum
}

const expRatios = ratios(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)

/** The exponential function, to a few units in the last place. */
export const exp = (x: number): number => {
  const k = Math.round(x / Math.LN2)
  if (k > 1023) return Infinity
  if (k < -1022) return 0
  return powerOf2(k) * series(x - k * ln2High - k * ln2Low, expRatios)
}

const cosRatios = ratios(1 * 2, 3 * 4, 5 * 6, 7 * 8, 9 * 10, 11 * 12, 13 * 14, 15 * 16, 17 * 18)
const sinRatios = ratios(2 * 3, 4 * 5, 6 * 7, 8 * 9, 10 * 11, 12 * 13, 14 * 15, 16 * 17)

/** The cosine of a part of a full turn, from 0 to 1. */
export const cosOfTurn = (turn: number): number => {
  const fromHalf = Math.abs(turn - 0.5)
  const isNear = fromHalf < 0.25
  const inQuarter = isNear ? fromHalf : 0.5 - fromHalf
  const x = 2 * Math.PI * (inQuarter <= 0.125 ? inQuarter : 0.25 - inQuarter)
  const size = inQuarter <= 0.125 ? series(-x * x, cosRatios) : x * series(-x * x, sinRatios)
  return isNear ? -size : size
}

/** A number from 0 to the power of a whole number from 0; the power may be `Infinity`, and the number is not 1 then. */
export const power = (base: number, exponent: number): number => {
  if (exponent === Infinity) return base < 1 ? 0 : Infinity
  let result = 1
  for (let square = base, left = exponent; left > 0; left = Math.floor(left / 2), square *= square) {
    if (left % 2 === 1) result *= square
  }
  return result
}

/** The power of 10 at or below a normal number above 0: its decimal digits are the same everywhere. */
export const decadeOf = (x: number): number => Number(`1e${x.toExponential().split("e")[1]}`)

/** How often a number is halved until it is at most 1. */
export const halvings = (x: number): number => {
  let count = 0
  for (let left = x; left > 1; left /= 2) count++
  return count
}
