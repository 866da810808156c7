/** The policies that a scenario can name. */
export const policyNames = [
  "none",
  "naive",
  "backoff",
  "jitter",
  "awsStandard",
  "awsStandard2026",
  "awsDynamoDB2026",
  "awsAdaptive",
  "limited",
  "awsJavaV1",
  "awsJavaScriptV2",
  "awsGeneralReference",
  "grpc",
  "finagle",
  "envoy",
  "sre",
  "tokenBucket"
] as const

/**
 * The name of a policy that a scenario can have.
 *
 * @category models
 * @since 0.1.0
 */
export type PolicyName = typeof policyNames[number]
