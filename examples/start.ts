/** The first program: a call fails twice, is retried, and succeeds. */
import { Console, Effect } from "effect"
import { awsStandard, RetryInfo, RetryQuota } from "effect-retry"

class Busy extends RetryInfo.TaggedError("Busy") {}

// Your call goes here. This one fails twice.
let sends = 0
const program = Effect.suspend(() =>
  ++sends < 3 ? Effect.fail(new Busy()) : Effect.succeed("Ada")
)

const retried = Effect.retry(program, awsStandard).pipe(
  Effect.tap((user) => Console.log(`${user}, after ${sends} sends`))
)

// All calls share one quota: provide it once, around the program.
void Effect.runPromise(Effect.provide(retried, RetryQuota.layer()))
