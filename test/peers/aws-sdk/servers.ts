import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { freePort, type PeerError, startNginx } from "../../utils/peers.ts"

/**
 * What a limited endpoint lets through: requests per second, and at the same time after a quiet second. CUBIC takes a burst of
 * throttles for a collapse of the service, and a busy machine sends in bursts: at this rate a few hundredths of a second
 * of its own are no burst yet.
 */
export const limit = { perSecond: 12, burst: 12 } as const

/** Concurrent callers of a limited endpoint, without a pause between calls. */
export const callers = 6

/** Ports of DynamoDB endpoints that answer `ListTables`. */
export interface Ports {
  /** Endpoints that let {@link limit} through and throttle the rest, each on its own. */
  readonly limited: ReadonlyArray<number>
  readonly healthy: number
  /** Always answers `ThrottlingException`. */
  readonly throttling: number
  /** Always answers 500. */
  readonly failing: number
}

const json = "default_type application/x-amz-json-1.0;"

const throttle = `return 400 '{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"Slow down"}';`

const http = ({ failing, healthy, limited, throttling }: Ports): string => `
  keepalive_requests 100000;
  limit_req_zone $server_port zone=rate:1m rate=${limit.perSecond}r/s;
  server {
    ${limited.map((port) => `listen 127.0.0.1:${port};`).join(" ")}
    limit_req_status 429;
    location / {
      limit_req zone=rate burst=${limit.burst} nodelay;
      error_page 429 = @throttled;
      proxy_pass http://127.0.0.1:${healthy};
    }
    location @throttled { internal; ${json} ${throttle} }
  }
  server { listen 127.0.0.1:${healthy}; ${json} location / { return 200 '{"TableNames":[]}'; } }
  server { listen 127.0.0.1:${throttling}; ${json} location / { ${throttle} } }
  server {
    listen 127.0.0.1:${failing}; ${json}
    location / { return 500 '{"__type":"InternalServerError","message":"Down"}'; }
  }`

/** One nginx with all endpoints. */
export const startEndpoints = (count: number): Effect.Effect<Ports, PeerError, Scope.Scope> =>
  Effect.gen(function*() {
    const [healthy, throttling, failing, ...limited] = yield* Effect.all(
      Array.from({ length: count + 3 }, () => freePort),
      { concurrency: "unbounded" }
    )
    const ports: Ports = { limited, healthy: healthy!, throttling: throttling!, failing: failing! }
    yield* startNginx(http(ports), healthy!)
    return ports
  })
