import type { MiddlewareStack, Pluggable } from "@smithy/types"
import { get } from "../../../internal/tryGet.ts"

/** The abort signals of the calls in progress, by the scope with which they ask for their first token. */
const signals = new Map<string, AbortSignal>()

let calls = 0

/** The abort signal of the call that asks for a token for this scope, if known. */
export const signalOf = (scope: string): AbortSignal | undefined => signals.get(scope.split(":")[0]!)

/** A plug-in of the client that passes the call's signal to one of our strategies. */
export const plugin: Pluggable<any, any> = {
  applyToStack: (stack: MiddlewareStack<any, any>) => {
    stack.addRelativeTo((next: any, context: object) => (args: any) => {
      const signal = get(get(context, "__smithy_context"), "abortSignal")
      if (!(signal instanceof AbortSignal)) return next(args)
      const scope = `effect-retry-${++calls}`
      signals.set(scope, signal)
      // The only information about the call that the retry loop passes to a strategy.
      Object.assign(context, { partition_id: scope })
      return Promise.resolve(args).then(next).finally(() => signals.delete(scope))
    }, {
      name: "effectRetryAbort",
      relation: "before",
      toMiddleware: "retryMiddleware",
      override: true
    })
  }
}
