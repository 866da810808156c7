import type { Chance } from "./chance.ts"
import type { Environment } from "./environment.ts"
import { windowsOf } from "./outages.ts"
import type { Outage, ServiceSettings } from "./scenario.ts"
import type { Server } from "./server.ts"
import { millis } from "./units.ts"

/** From when to when a server is out. */
interface Absence {
  readonly fromMillis: number
  readonly toMillis: number
}

/** What a health check sees: an instance that is slow still answers it. */
const noticed: ReadonlyArray<Outage["kind"]> = ["fail", "drop", "hold"]

const absencesOf = ({ balancer, outages }: ServiceSettings, instance: number): ReadonlyArray<Absence> => {
  if (balancer.notices === undefined) return []
  const late = millis(balancer.notices)
  return noticed
    .flatMap((kind) => windowsOf(outages, kind, instance))
    .map(({ fromMillis, toMillis }) => ({ fromMillis: fromMillis + late, toMillis: toMillis + late }))
}

/** Shares requests out to the instances of a service. */
export class Balancer {
  private readonly choice: ServiceSettings["balancer"]["choice"]
  private readonly slowStartMillis: number
  private readonly absences: ReadonlyArray<ReadonlyArray<Absence>>
  private readonly isSteady: boolean
  private readonly credit: Array<number>
  private turn = 0

  constructor(
    private readonly environment: Environment,
    settings: ServiceSettings,
    private readonly servers: ReadonlyArray<Server>,
    private readonly chance: Chance
  ) {
    this.choice = settings.balancer.choice
    this.slowStartMillis = millis(settings.balancer.slowStart)
    this.absences = servers.map(({ index }) => absencesOf(settings, index))
    this.isSteady = this.absences.every((of) => of.length === 0)
    this.credit = servers.map(() => 0)
  }

  /** The share of its usual requests that a server gets now. */
  private weightOf(index: number): number {
    const now = this.environment.time.nowMillis
    let weight = 1
    for (const { fromMillis, toMillis } of this.absences[index]!) {
      if (now < fromMillis || now >= toMillis + this.slowStartMillis) continue
      weight = now < toMillis ? 0 : Math.min(weight, (now - toMillis) / this.slowStartMillis)
      if (weight === 0) return 0
    }
    return weight
  }

  /** If every instance is out, requests go to all of them. */
  private get weights(): ReadonlyArray<number> {
    const weights = this.servers.map(({ index }) => this.isSteady ? 1 : this.weightOf(index))
    return weights.some((weight) => weight > 0) ? weights : weights.map(() => 1)
  }

  /** The server of the next request. */
  next(): Server {
    const { choice, isSteady, servers } = this
    if (servers.length === 1) return servers[0]!
    if (isSteady && choice === "round-robin") return servers[this.turn++ % servers.length]!
    if (isSteady && choice === "random") return servers[this.chance.below(servers.length)]!
    const { weights } = this
    switch (choice) {
      case "round-robin":
        return this.inTurn(weights)
      case "random":
        return this.drawn(weights)
      case "least":
        return this.emptiest(weights)
    }
  }

  /** Source: nginx's smooth weighted round-robin. */
  private inTurn(weights: ReadonlyArray<number>): Server {
    let best = -1
    let total = 0
    weights.forEach((weight, index) => {
      if (weight === 0) return
      total += weight
      this.credit[index]! += weight
      if (best < 0 || this.credit[index]! > this.credit[best]!) best = index
    })
    this.credit[best]! -= total
    return this.servers[best]!
  }

  private drawn(weights: ReadonlyArray<number>): Server {
    let left = this.chance.nextDoubleUnsafe() * weights.reduce((sum, weight) => sum + weight, 0)
    const found = weights.findIndex((weight) => weight > 0 && (left -= weight) < 0)
    return this.servers[found < 0 ? weights.findIndex((weight) => weight > 0) : found]!
  }

  /** Of those with equally few requests, the next in turn. */
  private emptiest(weights: ReadonlyArray<number>): Server {
    const first = this.turn++
    let best: Server | undefined
    let least = Infinity
    for (let n = 0; n < this.servers.length; n++) {
      const server = this.servers[(first + n) % this.servers.length]!
      const weight = weights[server.index]!
      const load = weight === 0 ? Infinity : (server.size + 1) / weight
      if (load < least) {
        least = load
        best = server
      }
    }
    return best!
  }
}
