import * as Effect from "effect/Effect"
import { freePort, startRedis, temporaryFolder } from "../../utils/peers.ts"
import { command, eventually } from "./fleet.ts"

/** The node of the cluster that answers here. */
export interface Node {
  readonly port: number
  readonly id: string
  readonly kill: Effect.Effect<void>
}

const startNode = (program: string) =>
  Effect.gen(function*() {
    const [port, bus] = [yield* freePort, yield* freePort]
    const options = ["--cluster-enabled", "yes", "--cluster-port", `${bus}`, "--cluster-node-timeout", "1000"]
    const server = yield* startRedis(port, [...options, "--dir", yield* temporaryFolder], program)
    const id = String(yield* command(port, "CLUSTER", "MYID"))
    return { port, bus, id, kill: Effect.sync(() => void server.kill("SIGKILL")) }
  })

const infoOf = (port: number) => Effect.map(command(port, "CLUSTER", "INFO"), String)

export const isPrimary = (port: number): Effect.Effect<boolean, unknown> =>
  Effect.map(command(port, "ROLE"), (role) => Array.isArray(role) && role[0] === "master")

/** A cluster of three nodes with a third of the slots each, and a replica of each of them. */
export const startCluster = (program = "redis-server") =>
  Effect.gen(function*() {
    const nodes = yield* Effect.forEach(Array.from({ length: 6 }), () => startNode(program))
    const [first, ...others] = nodes as [typeof nodes[number], ...typeof nodes]
    for (const { bus, port } of others) {
      yield* command(first.port, "CLUSTER", "MEET", "127.0.0.1", `${port}`, `${bus}`)
    }
    const [primaries, replicas] = [nodes.slice(0, 3), nodes.slice(3)]
    for (const [index, { port }] of primaries.entries()) {
      const slot = (share: number) => Math.floor(16_384 * share / 3)
      yield* command(port, "CLUSTER", "ADDSLOTSRANGE", `${slot(index)}`, `${slot(index + 1) - 1}`)
    }
    for (const { port } of nodes) {
      yield* eventually(Effect.map(infoOf(port), (info) => info.includes("known_nodes:6")), "all nodes know another")
    }
    for (const [index, { port }] of replicas.entries()) {
      yield* command(port, "CLUSTER", "REPLICATE", primaries[index]!.id)
    }
    for (const { port } of nodes) {
      yield* eventually(Effect.map(infoOf(port), (info) => info.includes("cluster_state:ok")), "the cluster is up")
    }
    for (const { port } of replicas) {
      yield* eventually(
        Effect.map(command(port, "INFO", "replication"), (info) => String(info).includes("master_link_status:up")),
        "the replicas are up to date"
      )
    }
    return { primaries, replicas } as { primaries: ReadonlyArray<Node>; replicas: ReadonlyArray<Node> }
  })
