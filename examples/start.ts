/** The first program: a call fails twice, is retried, and succeeds. */
import { Console, Effect } from "effect"
import { awsStandard, RetryInfo, RetryQuota } from "effect-retry"

class Unavailable extends RetryInfo.TaggedError("Unavailable")<
  { readonly send: number }
> {}

// Your call goes here. This one fails twice.
let sends = 0
const getUser = Effect.suspend(() =>
  ++sends < 3
    ? Effect.fail(new Unavailable({ send: sends }))
    : Effect.succeed("Ada")
)

const program = Effect.retry(getUser, awsStandard).pipe(
  Effect.tap((user) => Console.log(`${user}, after ${sends} sends`))
)

// All calls share one quota: provide it once, around the program.
void Effect.runPromise(program.pipe(Effect.provide(RetryQuota.layer())))
