import { it } from "@effect/vitest"
import { Effect, Schedule, Random } from "effect"
import { attempt, awsStandard, RetryQuota, RetryInfo, withRetry } from "effect-retry"
import { TestClock } from "effect/testing"
class T extends RetryInfo.TaggedError("T", {}) {}
const go = <A,E,R>(label: string, k: number, p: (c: Effect.Effect<string, T>) => Effect.Effect<A,E,R>) => Effect.gen(function*(){ let n=0
 const call: Effect.Effect<string, T> = Effect.suspend(() => ++n < k ? Effect.fail(new T()) : Effect.succeed("ok"))
 const f = yield* p(call).pipe(Effect.exit, Effect.andThen(Effect.sleep("1 hour")), Effect.provideService(Random.Random,{nextDoubleUnsafe:()=>0.5,nextIntUnsafe:()=>0}), Effect.forkChild)
 yield* TestClock.adjust("10 minutes")
 const during = yield* RetryQuota.balance
 yield* TestClock.adjust("2 hour")
 console.log(label, n, during, yield* RetryQuota.balance) }).pipe(Effect.provide(RetryQuota.layer()))
it.effect("x", () => Effect.gen(function*(){
yield* go("retry(retry)", 5, (c) => Effect.retry(Effect.retry(attempt(c), awsStandard), awsStandard))
yield* go("retry(retry) first ok in outer retry", 4, (c) => Effect.retry(Effect.retry(attempt(c), awsStandard), awsStandard))
yield* go("withRetry(withRetry) same", 4, (c) => withRetry(withRetry(c, awsStandard), awsStandard))
yield* go("attempt each", 4, (c) => Effect.retry(attempt(Effect.retry(attempt(c), awsStandard)), awsStandard))
yield* go("upTo", 5, (c) => Effect.retry(attempt(c), awsStandard.pipe(Schedule.upTo({times:1}))))
yield* go("upTo withRetry", 5, (c) => withRetry(c, awsStandard.pipe(Schedule.upTo({times:1}))))
}))
