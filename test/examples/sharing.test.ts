import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { ordersOf } from "../../examples/sharing/express.ts"
import { handlerWith } from "../../examples/sharing/lambda.ts"
import { type Client, notShared } from "../../examples/sharing/orders.ts"
import { ordersHandler } from "../../examples/sharing/router.ts"
import { ordersServer } from "../../examples/sharing/server.ts"
import { worker } from "../../examples/sharing/worker.ts"

interface Host {
  readonly get: (id: string) => Promise<unknown>
  readonly close?: () => Promise<unknown>
}

/** Each serves requests of a client as its example says. */
const hosts: Record<string, (client: Client) => Host | Promise<Host>> = {
  server: async (client) => {
    const server = ordersServer(client).listen(0)
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    return {
      get: async (id) => textOf(await fetch(`http://127.0.0.1:${port}/${id}`)),
      close: async () => {
        server.closeAllConnections()
        server.close()
        await once(server, "close")
      }
    }
  },
  express: (client) => {
    const { close, get } = ordersOf(client)
    return {
      get: (id) => new Promise((send, next) => void get({ params: { id } }, { send }, next)),
      close
    }
  },
  lambda: (client) => {
    const handler = handlerWith(client)
    return { get: (id) => handler({ id }) }
  },
  worker: (client) => ({
    get: async (id) => textOf(await worker.fetch(new Request(`https://orders.example/${id}`), { orders: client }))
  }),
  router: (client) => {
    const { dispose, handler } = ordersHandler(client)
    return {
      get: async (id) => textOf(await handler(new Request(`http://localhost/${id}`))),
      close: dispose
    }
  }
}

const textOf = async (response: Response): Promise<string> => {
  if (!response.ok) throw new Error(String(response.status))
  return response.text()
}

/** A client that is up, then down. */
const service = () => {
  const unavailable = Object.assign(new Error("later"), { status: 503 })
  const client = {
    sends: 0,
    isDown: false,
    getItem: async (key: string) => {
      client.sends++
      if (client.isDown) throw unavailable
      return key
    }
  }
  return client
}

/** Each retry costs 14 of 500 tokens: 35 can be paid for. */
const requests = 40
const ids = Array.from({ length: requests }, (_, id) => String(id))

const logged: Array<string> = []
beforeEach(() => {
  logged.length = 0
  vi.spyOn(console, "log").mockImplementation((...line) => logged.push(line.join(" ")))
})
afterEach(() => {
  vi.restoreAllMocks()
})

describe("sharing a quota", () => {
  for (const [name, hostOf] of Object.entries(hosts)) {
    it(`${name}: 40 requests in an outage send 40 times and 35 times more`, async () => {
      const client = service()
      const { close, get } = await hostOf(client)
      assert.strictEqual(await get("1"), "order-1")
      client.sends = 0
      client.isDown = true
      const settled = await Promise.allSettled(ids.map(get))
      assert.isTrue(settled.every(({ status }) => status === "rejected"))
      assert.strictEqual(client.sends, requests + 35)
      assert.deepStrictEqual(logged.filter((line) => line.includes("WARN")), [])
      await close?.()
    })
  }

  it("provided to each call: each is sent three times, and a warning says why", async () => {
    const client = service()
    client.isDown = true
    await Promise.allSettled(ids.map((id) => notShared(client, id)))
    assert.strictEqual(client.sends, requests * 3)
    assert.deepStrictEqual(logged.map((line) => line.replace(/^.*: (?=effect-retry)/, "")), [
      "effect-retry: each call has its own RetryQuota. Build its layer once, or give its LayerMap an idleTimeToLive: docs/sharing.md"
    ])
  })
})
