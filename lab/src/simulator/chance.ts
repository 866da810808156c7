import type * as Random from "effect/Random"
import { cosOfTurn, logOfShare } from "./portable.ts"

/** 32 bits of a text and a number, well mixed. Source: the finalizer of MurmurHash3, Appleby, public domain. */
const hash32 = (text: string, salt: number): number => {
  let hash = Math.imul(salt ^ 0x9e3779b9, 0x85ebca6b)
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0xcc9e2d51)
    hash = (hash << 15) | (hash >>> 17)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/**
 * Seeded randomness, one stream for each name: draws from one do not change the others.
 * Source: sfc32, Doty-Humphrey, PractRand, public domain.
 */
export class Chance implements Random.Random {
  private a: number
  private b: number
  private c: number
  private counter = 1

  constructor(seed: number, name: string) {
    const text = `${seed}/${name}`
    this.a = hash32(text, 1)
    this.b = hash32(text, 2)
    this.c = hash32(text, 3)
    for (let i = 0; i < 12; i++) this.next32()
  }

  private next32(): number {
    const sum = (this.a + this.b + this.counter) | 0
    this.counter = (this.counter + 1) | 0
    this.a = this.b ^ (this.b >>> 9)
    this.b = (this.c + (this.c << 3)) | 0
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum | 0
    return sum >>> 0
  }

  nextDoubleUnsafe(): number {
    return this.next32() / 4294967296
  }

  nextIntUnsafe(): number {
    const sign = this.next32() & 1 ? 1 : -1
    return sign * ((this.next32() & 0x1fffff) * 4294967296 + this.next32())
  }

  /** Exponential with mean 1. */
  exponential(): number {
    return -logOfShare(4294967296 - this.next32())
  }

  /** Normal with mean 0 and standard deviation 1. Source: Box and Muller, 1958. */
  normal(): number {
    return Math.sqrt(2 * this.exponential()) * cosOfTurn(this.nextDoubleUnsafe())
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.nextDoubleUnsafe() * bound)
  }
}

/** Random durations, in milliseconds. */
export type Sampler = (chance: Chance) => number
