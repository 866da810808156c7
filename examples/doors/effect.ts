import { Layer } from "effect"
import { httpStandard, RetryQuota } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import { FetchHttpClient } from "effect/http"

/** Every `HttpClient` above this layer retries. */
export const httpLayer = RetryHttp.layer(httpStandard).pipe(
  Layer.provide([RetryQuota.layer(), FetchHttpClient.layer])
)
