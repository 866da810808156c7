import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"

const scenario = (fleet: object, service: object = {}) => ({
  name: "small",
  fleets: [{ name: "app", to: "db", rate: 1, timeout: "1s", ...fleet }],
  services: [{ name: "db", ...service }]
})
const outage = (given: unknown) => scenario({}, { outages: [given] })
const steps = (...others: ReadonlyArray<unknown>) =>
  scenario({ policy: { steps: [{ fixed: { delay: 0 } }, ...others] } })
const kinds = `"fail" | "drop" | "hold" | "slow"`
const at = "services[0].outages[0]"

const cases: ReadonlyArray<readonly [why: string, input: unknown, lines: ReadonlyArray<string>]> = [
  ["an unknown kind", outage({ kind: "brownout", from: 0, to: 1 }), [
    `${at}.kind: expected ${kinds}, got "brownout"`
  ]],
  ["a misspelled kind", outage({ kind: "fial" }), [
    `${at}.kind: expected ${kinds}, got "fial": did you mean fail?`
  ]],
  ["a kind that is a number", outage({ kind: 1 }), [`${at}.kind: expected ${kinds}`]],
  ["a kind that is missing", outage({ from: 0, to: 1 }), [`${at}.kind: is missing: ${kinds}`]],
  ["what is not an object", outage("fail"), [`${at}: expected an object with a kind: ${kinds}`]],
  ["what is missing of a kind", outage({ kind: "slow", from: 0, to: 1 }), [`${at}.factor: is missing`]],
  ["a key of a kind", outage({ kind: "fail", from: 0, to: 1, shar: 1 }), [
    `${at}.shar: is not a key here: did you mean share?`
  ]],
  ["a budget", scenario({ policy: { steps: [{ fixed: { delay: 0 } }], budget: { kind: "finegle" } } }), [
    `fleets[0].policy.budget.kind: expected "bucket" | "finagle" | "ratio" | "grpc" | "envoy" | "breaker", got "finegle": did you mean finagle?`
  ]],
  ["a key", scenario({ polcy: "naive" }), ["fleets[0].polcy: is not a key here: did you mean policy?"]],
  ["a key that is like none", { ...scenario({}), qqqqqqqq: 1 }, [
    "qqqqqqqq: is not a key here: use one of $schema, name, description, notes, seed, duration, drain, bucket, fleets, services"
  ]],
  ["a step where a policy is", scenario({ policy: { maxAttempt: 3 } }), [
    "fleets[0].policy.maxAttempt: is not a key here: did you mean maxAttempts, in steps?",
    "fleets[0].policy.steps: is missing"
  ]],
  ["the name of a policy", scenario({ policy: "awsStandart" }), [
    `fleets[0].policy: "awsStandart" is not one of the names: did you mean awsStandard?`
  ]],
  ["any other word", scenario({ arrivals: "poison" }), [
    `fleets[0].arrivals: "poison" is not one of the names: did you mean poisson?`
  ]],
  ["a step", steps({ maxAttempt: 3 }), [
    "fleets[0].policy.steps[1].maxAttempt: is not a key here: did you mean maxAttempts?"
  ]],
  ["a step that is a word", steps("whileRetriable"), [
    `fleets[0].policy.steps[1]: "whileRetriable" is not one of the names: did you mean whileRetryable?`
  ]],
  ["an option of a step", steps({ quotaGated: { cost: 5, throtlingCost: 1 } }), [
    "fleets[0].policy.steps[1].quotaGated.throtlingCost: is not a key here: did you mean throttlingCost?"
  ]],
  ["a service", scenario({ to: "dbs" }), [`fleets[0].to: names an unknown service: "dbs"; did you mean db?`]],
  ["a key of hostile length", scenario({ ["x".repeat(1000)]: 1 }), [
    `fleets[0].${
      "x".repeat(1000)
    }: is not a key here: use one of name, to, policy, timeout, patience, network, processes, rate, arrivals, clients, think, pace, calls`
  ]],
  ["a key of every object", scenario({ constructor: 1 }), [
    "fleets[0].constructor: is not a key here: use one of name,"
  ]]
]

describe("an unknown name is reported with the alternatives", () => {
  for (const [why, input, lines] of cases) {
    it.effect(why, () =>
      Effect.gen(function*() {
        const { problems } = yield* Effect.flip(Simulator.decode(input))
        const found = problems.map(({ path, problem }) => `${path}: ${problem}`)
        assert.strictEqual(found.length, lines.length, found.join("\n"))
        for (const [index, line] of lines.entries()) assert.isTrue(found[index]!.startsWith(line), found[index])
      }))
  }
})
