import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { DefaultRateLimiter } from "@smithy/core/retry"
import { AdaptiveRateLimiter } from "effect-retry"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"

/** What a variable of the environment means to the SDK and to us. */
export interface Meaning {
  readonly variable: "AWS_MAX_ATTEMPTS" | "AWS_RETRY_MODE"
  readonly value: string
  readonly sdk: string
  readonly ours: string
}

/** What a limiter with an impossible option does. */
export interface Limiting {
  readonly option: string
  /** How many of 100 sends got through immediately, after 20 throttles and a success. */
  readonly sdkLetThrough: number
  readonly ours: string
}

const variables: ReadonlyArray<readonly [Meaning["variable"], string]> = [
  ["AWS_MAX_ATTEMPTS", "4"],
  ["AWS_MAX_ATTEMPTS", "1e3"],
  ["AWS_MAX_ATTEMPTS", "1.5"],
  ["AWS_MAX_ATTEMPTS", "3abc"],
  ["AWS_MAX_ATTEMPTS", "0x10"],
  ["AWS_MAX_ATTEMPTS", "abc"],
  ["AWS_MAX_ATTEMPTS", "0"],
  ["AWS_MAX_ATTEMPTS", "-1"],
  ["AWS_MAX_ATTEMPTS", "99999999999999999999"],
  ["AWS_RETRY_MODE", "adaptive"],
  ["AWS_RETRY_MODE", "ADAPTIVE"],
  ["AWS_RETRY_MODE", "foo"]
]

const toSdk = async (variable: Meaning["variable"], value: string): Promise<string> => {
  process.env[variable] = value
  try {
    const { maxAttempts, retryStrategy } = new DynamoDBClient({ region: "eu-west-1" }).config
    if (variable === "AWS_MAX_ATTEMPTS") return `${await maxAttempts()}`
    const strategy = await retryStrategy()
    return "mode" in strategy ? `${strategy.mode}` : "none"
  } catch (error) {
    return `fails: ${String(error)}`
  } finally {
    delete process.env[variable]
  }
}

const toUs = (variable: Meaning["variable"], value: string): Promise<string> =>
  AwsRetryConfig.make({ configFile: "/none" }).pipe(
    Effect.map(({ maxAttempts, mode }) => `${variable === "AWS_MAX_ATTEMPTS" ? maxAttempts.value : mode.value}`),
    Effect.catch((error) => Effect.succeed(`fails: ${error.message}`)),
    Effect.catchDefect((defect) => Effect.succeed(`dies: ${String(defect)}`)),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { [variable]: value } })),
    Effect.provide(FileSystem.layerNoop({})),
    Effect.runPromise
  )

/** Each value, as both read it. */
export const meanings = (): Promise<ReadonlyArray<Meaning>> =>
  variables.reduce<Promise<ReadonlyArray<Meaning>>>(
    async (before, [variable, value]) => [
      ...await before,
      { variable, value, sdk: await toSdk(variable, value), ours: await toUs(variable, value) }
    ],
    Promise.resolve([])
  )

const options = [
  { beta: Number.NaN },
  { scaleConstant: 0 },
  { minFillRate: Number.NaN }
]

const limiting = async (option: typeof options[number]): Promise<Limiting> => {
  const sdk = new DefaultRateLimiter(option)
  for (let throttle = 0; throttle < 20; throttle++) sdk.updateClientSendingRate({ errorType: "THROTTLING" })
  sdk.updateClientSendingRate({})
  let sdkLetThrough = 0
  for (let send = 0; send < 100; send++) void sdk.getSendToken().then(() => sdkLetThrough++)
  await new Promise((resolve) => setTimeout(resolve, 20))
  const ours = await Effect.runPromise(
    Effect.suspend(() => AdaptiveRateLimiter.make(option)).pipe(
      Effect.as("accepted"),
      Effect.catchDefect((defect) => Effect.succeed(String(defect)))
    )
  )
  return {
    option: JSON.stringify(option, (_, value: unknown) => Number.isNaN(value) ? "NaN" : value),
    sdkLetThrough,
    ours
  }
}

/** Each impossible option of a limiter. */
export const limits = (): Promise<ReadonlyArray<Limiting>> => Promise.all(options.map(limiting))
