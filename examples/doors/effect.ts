import { Layer } from "effect"
import * as RetryHttp from "effect-retry/RetryHttp"
import { FetchHttpClient } from "effect/http"

/** Every `HttpClient` above this layer retries. */
export const httpLayer = RetryHttp.layer().pipe(
  Layer.provide(FetchHttpClient.layer)
)
