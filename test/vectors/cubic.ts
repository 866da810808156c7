// The rate that CUBIC calculates, per second, beta 0.7, scale constant 0.4; timestamps in seconds. A throttle happens at
// the rate calculated before it.
// Source: smithy-kotlin AdaptiveRetryIntegrationTestResources.kt @6373a5f747. The tests of Go and Rust end in
// 4.6701, 4.7709, 6.0118, 10.7930, since their test driver takes the reduced rate for the last maximum; the production
// code of both does not, so those are no figures to meet.
export const cubic = [
  {
    name: "cubic success 1",
    given: { lastMaxRate: 10, lastThrottleTime: 5 },
    steps: [
      { response: "success", timestamp: 5, rate: 7.0 },
      { response: "success", timestamp: 6, rate: 9.64893600966 },
      { response: "success", timestamp: 7, rate: 10.000030849917364 },
      { response: "success", timestamp: 8, rate: 10.453284520772092 },
      { response: "success", timestamp: 9, rate: 13.408697022224185 },
      { response: "success", timestamp: 10, rate: 21.26626835427364 },
      { response: "success", timestamp: 11, rate: 36.425998516920465 }
    ]
  },
  {
    name: "cubic success 2, with throttles",
    given: { lastMaxRate: 10, lastThrottleTime: 5 },
    steps: [
      { response: "success", timestamp: 5, rate: 7.0 },
      { response: "success", timestamp: 6, rate: 9.64893600966 },
      { response: "throttle", timestamp: 7, rate: 6.754255206761999 },
      { response: "throttle", timestamp: 8, rate: 4.727978644733399 },
      { response: "success", timestamp: 9, rate: 6.606547753887045 },
      { response: "success", timestamp: 10, rate: 6.763279816944947 },
      { response: "success", timestamp: 11, rate: 7.598174833907107 },
      { response: "success", timestamp: 12, rate: 11.511232804773524 }
    ]
  }
] as const

// One response at each timestamp (seconds), from a limiter made at 0; rates per second.
// Source: smithy-kotlin AdaptiveRetryIntegrationTestResources.kt @6373a5f747, the fill rates in the full precision of
// aws-sdk-go-v2 adaptive_ratelimit_test.go @6925d1e9c5.
export const clientSendingRate = [
  { response: "success", timestamp: 0.2, measuredTxRate: 0, fillRate: 0.5 },
  { response: "success", timestamp: 0.4, measuredTxRate: 0, fillRate: 0.5 },
  { response: "success", timestamp: 0.6, measuredTxRate: 4.8, fillRate: 0.5 },
  { response: "success", timestamp: 0.8, measuredTxRate: 4.8, fillRate: 0.5 },
  { response: "success", timestamp: 1.0, measuredTxRate: 4.16, fillRate: 0.5 },
  { response: "success", timestamp: 1.2, measuredTxRate: 4.16, fillRate: 0.6912 },
  { response: "success", timestamp: 1.4, measuredTxRate: 4.16, fillRate: 1.0976 },
  { response: "success", timestamp: 1.6, measuredTxRate: 5.632, fillRate: 1.6384 },
  { response: "success", timestamp: 1.8, measuredTxRate: 5.632, fillRate: 2.3328 },
  { response: "throttle", timestamp: 2.0, measuredTxRate: 4.3264, fillRate: 3.02848 },
  { response: "success", timestamp: 2.2, measuredTxRate: 4.3264, fillRate: 3.4866391734702598 },
  { response: "success", timestamp: 2.4, measuredTxRate: 4.3264, fillRate: 3.8218744160402554 },
  { response: "success", timestamp: 2.6, measuredTxRate: 5.66528, fillRate: 4.053385727709987 },
  { response: "success", timestamp: 2.8, measuredTxRate: 5.66528, fillRate: 4.200373108479455 },
  { response: "success", timestamp: 3.0, measuredTxRate: 4.333056, fillRate: 4.282036558348658 },
  { response: "throttle", timestamp: 3.2, measuredTxRate: 4.333056, fillRate: 2.99742559084406 },
  { response: "success", timestamp: 3.4, measuredTxRate: 4.333056, fillRate: 3.4522263943863463 }
] as const
