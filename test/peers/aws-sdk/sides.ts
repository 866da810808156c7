import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb"

/** What is reported of a side's traffic. What `sent` throws is what the attempt fails with. */
interface Watch {
  readonly sent?: (() => void) | undefined
  readonly answered?: (() => void) | undefined
}

/** How a call is made. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** A word for the server to tell calls apart. */
  readonly word?: string | undefined
}

/** One way to make calls: the SDK's own, or one of ours. */
export interface Side {
  readonly name: string
  /** Lists the tables at a local port. */
  readonly call: (port: number, options?: CallOptions) => Promise<unknown>
  /** Tokens in the retry quota. */
  readonly capacity: () => Promise<number>
  readonly watch: { current: Watch }
}

/** The command of every call. */
export const command = ({ word }: CallOptions): ListTablesCommand =>
  new ListTablesCommand(word === undefined ? {} : { ExclusiveStartTableName: word })

/** Unmodified clients of the SDK, one for each port, whose traffic is watched right below the retries. */
export const clients = (config: DynamoDBClientConfig) => {
  const watch: { current: Watch } = { current: {} }
  const byPort = new Map<number, DynamoDBClient>()
  const make = (port: number): DynamoDBClient => {
    const client = new DynamoDBClient({
      region: "eu-west-1",
      endpoint: `http://127.0.0.1:${port}`,
      credentials: { accessKeyId: "a", secretAccessKey: "b" },
      ...config
    })
    client.middlewareStack.addRelativeTo(
      (next: (args: any) => Promise<any>) => async (args: any) => {
        watch.current.sent?.()
        try {
          return await next(args)
        } finally {
          watch.current.answered?.()
        }
      },
      { relation: "after", toMiddleware: "retryMiddleware", name: "watch" }
    )
    return client
  }
  const at = (port: number): DynamoDBClient => {
    const client = byPort.get(port) ?? make(port)
    byPort.set(port, client)
    return client
  }
  return { at, watch }
}

/** Calls as users of the SDK make them. */
export const sdkCalls = (
  name: string,
  config: DynamoDBClientConfig,
  capacity: () => Promise<number> = async () => NaN
): Side => {
  const { at, watch } = clients(config)
  return {
    name,
    capacity,
    watch,
    call: (port, options = {}) =>
      at(port).send(command(options), options.signal === undefined ? {} : { abortSignal: options.signal })
  }
}
