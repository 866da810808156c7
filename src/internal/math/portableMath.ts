/**
 * Functions that use only sums, products and quotients, which are exact everywhere: engines differ in the last digit of
 * `**` and `Math.cbrt`.
 */

/** A number to a power: a whole number of at least 0. */
export const power = (base: number, exponent: number): number => {
  let result = 1
  for (let square = base, left = exponent; left > 0; left = Math.floor(left / 2), square *= square) {
    if (left % 2 === 1) result *= square
  }
  return result
}

const double = /* @__PURE__ */ new DataView(/* @__PURE__ */ new ArrayBuffer(8))

/** The number with these bits. */
const withBits = (high: number, low: number): number => {
  double.setUint32(0, high)
  double.setUint32(4, low)
  return double.getFloat64(0)
}

/** Rounded so that the square is exact: to 22 of the 52 bits after the first. */
const shortened = (x: number): number => {
  double.setFloat64(0, x)
  const low = double.getUint32(4) + 0x80000000
  return withBits(double.getUint32(0) + (low >= 2 ** 32 ? 1 : 0), low & 0xc0000000)
}

/**
 * The cube root of a normal number from 0, to less than one unit in the last place.
 * Source: the algorithm and the constants of s_cbrt.c in the msun of FreeBSD.
 */
export const cubeRoot = (x: number): number => {
  if (x === 0) return 0
  double.setFloat64(0, x)
  const guess = withBits(Math.floor(double.getUint32(0) / 3) + 715_094_163, 0)
  const r = guess * guess * (guess / x)
  const t = shortened(
    guess * (1.87595182427177 + r * (-1.8849797954337717 + r * 1.6214297201053545) +
      r * r * r * (-0.758397934778766 + r * 0.14599619288661245))
  )
  const rest = x / (t * t)
  return t + t * ((rest - t) / (t + t + rest))
}
