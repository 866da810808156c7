import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { findNodeAtLocation, type JSONPath, parseTree } from "jsonc-parser"
import { isCsv } from "../fit/arrivals.ts"
import type { Problem } from "../Simulator.ts"
import { decodeArrivals } from "../simulator/recorded.ts"
import { csvOf, wholeNumbers } from "./csv.ts"
import { read, unreadable } from "./files.ts"
import { parsed, placeOf } from "./json.ts"
import { Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

/** Of all files of a scenario: room for a million times of twenty digits. */
const mostMegabytes = 32
const mostBytes = mostMegabytes * 1024 * 1024

/** `at[3]` as keys. */
const keysOf = (path: string): JSONPath =>
  path.split(/[.[\]]/).filter((key) => key !== "").map((key) => /^\d+$/.test(key) ? Number(key) : key)

/** A problem with the line and the column of what it is about. */
const located = (path: string, text: string) => {
  const tree = parseTree(text)
  return ({ path: at, problem }: Problem): string => {
    const node = tree === undefined || at === "" ? tree : findNodeAtLocation(tree, keysOf(at))
    if (node === undefined) return `${path}: ${at}: ${problem}`
    const { column, line } = placeOf(text, node.offset)
    return `${path}: line ${line}, column ${column}: ${at === "" ? "" : `${at}: `}${problem}`
  }
}

const arrivalsOfJson = Effect.fnUntraced(function*(path: string, text: string) {
  const input = yield* parsed(`${path}:`, text)
  return yield* Effect.mapError(
    decodeArrivals(input),
    ({ problems }) => new Refusal({ lines: problems.map(located(path, text)) })
  )
})

const times = { problem: "not a number of milliseconds from 0", holds: (value: number) => value >= 0 && value <= 1e9 }

const arrivalsOfCsv = Effect.fnUntraced(function*(path: string, text: string) {
  const { head, numbers } = yield* csvOf(path, text)
  const [column, other] = ["at", "calls"].filter((name) => head.includes(name))
  if (column === undefined || other !== undefined) {
    return yield* refusal(`${path}: line 1: its header needs either at (milliseconds) or calls (per bucket)`)
  }
  const values = (yield* numbers([column], column === "at" ? times : wholeNumbers)).map(([value]) => value!)
  return yield* Effect.mapError(
    decodeArrivals({ [column]: values }),
    ({ problems }) => new Refusal({ lines: problems.map(({ problem }) => `${path}: column ${column}: ${problem}`) })
  )
})

/** How much may still be read. */
interface Allowance {
  bytes: number
}

/** The times of calls in a file. */
const arrivalsFrom = Effect.fnUntraced(function*(path: string, left: Allowance) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* Effect.mapError(fs.stat(path), unreadable(path))
  if (type !== "File") return yield* refusal(`cannot read ${quoted(path)}: it is not a file`)
  if (size > left.bytes) {
    const together = left.bytes < mostBytes ? "with the arrivals before it, " : ""
    return yield* refusal(`cannot read ${quoted(path)}: ${together}it is larger than ${mostMegabytes} MB`)
  }
  left.bytes -= Number(size)
  const text = yield* read(path)
  return yield* isCsv(path) ? arrivalsOfCsv(path, text) : arrivalsOfJson(path, text)
})

type Keyed = { readonly [key: string]: unknown }

const isKeyed = (value: unknown): value is Keyed => typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether a path leads to the folder it starts from, or below. */
export const staysInside = (path: string): boolean =>
  !/^([/\\]|[a-z]:)/i.test(path) && !path.split(/[/\\]/).includes("..")

const real = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.mapError(fs.realPath(path), unreadable(path))
})

const filled = Effect.fnUntraced(function*(fleet: unknown, place: string, scenario: string, left: Allowance) {
  if (!isKeyed(fleet) || !isKeyed(fleet.arrivals) || typeof fleet.arrivals.file !== "string") return fleet
  const { file, ...others } = fleet.arrivals
  const paths = yield* Path.Path
  const folder = paths.dirname(scenario)
  const path = paths.join(folder, file)
  // A link may lead out of it.
  if (!staysInside(file) || !staysInside(paths.relative(yield* real(folder), yield* real(path)))) {
    return yield* refusal(
      `${scenario}: ${place}.arrivals.file: ${quoted(file)} is not in the folder of the scenario or below`
    )
  }
  const read: Keyed = yield* arrivalsFrom(path, left)
  const twice = Object.keys(others).find((key) => key in read)
  if (twice !== undefined) {
    return yield* refusal(`${scenario}: ${place}.arrivals.${twice}: the file ${quoted(file)} has it too`)
  }
  return { ...fleet, arrivals: { ...others, ...read } }
})

/** A scenario as written in a file, with the arrivals of the files that it names. */
export const withFiles = Effect.fnUntraced(function*(input: unknown, scenario: string) {
  if (!isKeyed(input) || !Array.isArray(input.fleets)) return input
  const left: Allowance = { bytes: mostBytes }
  const fleets = yield* Effect.forEach(input.fleets, (fleet, n) => filled(fleet, `fleets[${n}]`, scenario, left))
  return { ...input, fleets }
})
