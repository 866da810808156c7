import { awsStandard, Hedge, type RetryQuotaStore, SendGate, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import { busy, dynamo, flush, getItem, ok } from "../../utils/awsSdk.ts"
import { clientOf } from "../utils/http.ts"
import type { Send, Sweeps } from "./sweep.ts"

class Gate extends SendGate.Service<Gate>()("test/sweeps/hedges/Gate") {}

/** What budget and gate have granted, and what runs. */
class Account {
  reservations = 0
  passes = 0
  sends = 0
  sent = 0
  spent = 0

  /** A budget that is asked, or answers immediately. */
  budget(isAsked: boolean): RetryQuotaStore.RetryQuotaStore {
    const take = (cost: number): RetryQuotaStore.Reservation => {
      this.reservations++
      let isSettled = false
      const settled = (spent: number) => () => {
        if (isSettled) throw new Error("a reservation is settled twice")
        this.reservations--
        this.spent += spent
        return isSettled = true
      }
      return { cost, giveBack: settled(0), spend: settled(1) }
    }
    return {
      capacity: Infinity,
      successIncrement: 0,
      firstAttemptCost: 0,
      onExceeded: "stop",
      reserve: (cost) => isAsked ? (_, hold) => Effect.delay(Effect.sync(() => hold(take(cost))), 3) : take(cost),
      deposit: () => {},
      balance: () => Infinity
    }
  }

  /** A gate that lets sends pass, later if configured to wait. */
  gate(waits: boolean): SendGate.SendGate {
    const hold = (send: SendGate.Send) => {
      this.passes++
      let isOpen = true
      const close = () => {
        if (!isOpen) throw new Error("a pass is settled twice")
        isOpen = false
        this.passes--
      }
      send.hold({ settle: close, cancel: close })
    }
    return { order: 1, enter: (send) => waits ? Effect.delay(Effect.sync(() => hold(send)), 2) : hold(send) }
  }

  readonly counted = (send: Send): Send =>
    Effect.acquireUseRelease(
      Effect.sync(() => this.sends++),
      () => Effect.andThen(Effect.sync(() => this.sent++), send),
      () => Effect.andThen(Effect.sync(() => this.sends--), Effect.void)
    )

  check(isDeep: boolean): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { passes, reservations, sends, sent, spent } = this
      const left = JSON.stringify({ passes, reservations, sends, sent, spent })
      return passes + reservations + sends === 0 && (isDeep || spent <= sent)
        ? Effect.void
        : Effect.die(new Error(left))
    })
  }
}

interface Setting {
  readonly isAsked?: boolean
  readonly waits?: boolean
  readonly limit?: number
  /** The hedging around it is the one that counts, and its budget. */
  readonly isAround?: boolean
  /** A send is counted a few steps after it leaves. */
  readonly isDeep?: boolean
}

/** Hedged calls over a ledger that must balance once they and the losing sends have ended. */
const settled = (program: (send: Send) => Effect.Effect<unknown, unknown, any>, setting: Setting = {}) =>
  Effect.suspend(() => {
    const { isAround = false, isDeep = false, isAsked = false, limit, waits = false } = setting
    const account = new Account()
    const script = [Kit.transient, Kit.ok({ latency: 40 }), Kit.throttled, Kit.ok()]
    const { send } = Kit.outcomes(script, { latency: 10, afterwards: "repeat" })
    const call = program(account.counted(send)).pipe(
      Effect.provideService(Gate, account.gate(waits)),
      (self) =>
        limit === undefined
          ? self
          : Effect.provide(self, ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(limit) })),
      (self) =>
        isAround ? self : Effect.provide(
          self,
          isAsked
            ? Hedge.layerConfig({ budget: Config.succeed(account.budget(true)) })
            : Hedge.layer({ budget: account.budget(false) })
        )
    ) as Effect.Effect<unknown, unknown>
    return Effect.acquireUseRelease(
      Effect.forkChild(call),
      Fiber.join,
      (fiber) => Fiber.interrupt(fiber).pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(account.check(isDeep)))
    )
  })

const hedged = Hedge.hedged({ after: 5, atMost: 2 })

/** Hedged calls. Tokens, passes, the hedge budget and running sends balance after any interruption. */
export const hedgeSweeps: Sweeps = {
  "Hedge.hedged, Hedge.layer, Hedge.layerConfig, Hedge.Hedge": { program: settled(hedged), least: 40 },
  "Hedge.hedged under withRetry": { program: settled((send) => withRetry(hedged(send), awsStandard)), least: 60 },
  "Hedge.hedged under Effect.retry": {
    program: settled((send) => Effect.retry(hedged(send), awsStandard as any)),
    least: 60
  },
  "Hedge.hedged in a timeout under withRetry, with a gate that has it wait": {
    program: settled((send) => withRetry(Effect.timeout(hedged(send), 15), awsStandard), { waits: true }),
    least: 60
  },
  "Hedge.hedged by a budget that is asked, at a limit": {
    program: settled((send) => withRetry(hedged(send), awsStandard), { isAsked: true, limit: 2 }),
    least: 60
  },
  "Hedge.hedged whose sends are all made immediately": {
    program: settled((send) => withRetry(Hedge.hedged(send, { after: 0, atMost: 3 }), awsStandard)),
    least: 60
  },
  "RetryGrpc.hedged": {
    program: settled(RetryGrpc.hedged({ maxAttempts: 3, hedgingDelay: 5, nonFatalStatusCodes: [14] })),
    least: 40
  },
  "AwsSdk.sendHedged": {
    program: settled((send) => {
      const { client } = dynamo([busy, busy, ok])
      const call = AwsSdk.sendHedged(client, getItem(), { after: 5, atMost: 2 })
      return Effect.ensuring(Effect.andThen(send, call), flush)
    }, { isDeep: true }),
    least: 30
  },
  "RetryHttp.hedge": {
    program: settled((send) => {
      const { client } = clientOf([{ status: 503 }, { status: 200 }])
      const sending = HttpClient.transformResponse(client, (sent) => Effect.andThen(send, sent))
      return RetryHttp.hedge(sending, { after: 5, atMost: 3 }).get("http://a/")
    }, { isDeep: true }),
    least: 40
  },
  "Hedge.hedged by a quantile, Hedge.make, Hedge.state, Hedge.quantile": {
    program: Effect.scoped(
      Effect.flatMap(Hedge.make({ share: 1 }), (hedge) =>
        Effect.provideService(
          Effect.all([
            settled((send) => Hedge.hedged(send, { after: Hedge.quantile(0.5, { warmUp: 1, first: 5 }) }), {
              isAround: true
            }),
            Hedge.state
          ]),
          Hedge.Hedge,
          hedge
        ))
    ),
    least: 20
  }
}
