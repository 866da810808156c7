import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { monotonicMillis } from "../../internal/clock.ts"
import { type Path, refuse } from "../../internal/invalidField.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { ResizableStore, type StoreOptions, validStore } from "../../quota/internal/memoryStore.ts"
import { ReplaceableStore } from "../../quota/internal/replaceableStore.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import * as Fleet from "./fleetStores.ts"
import { below, made } from "./policyReader.ts"
import type { Part } from "./resourcePart.ts"

/** The options of a section that a fleet may share. */
export interface Shareable<Options> {
  readonly options: Options
  /** How it is shared; `undefined` if the process has its own. */
  readonly shared: Fleet.FleetOptions | undefined
}

/** Reads a section: its own options, and below `redis` how it is shared. */
export const shareable = <Options>(section: keyof typeof Fleet.fleetOptionsOf, validated: (own: object) => Options) =>
(
  { redis, ...own }: { readonly [key: string]: unknown },
  path: Path,
  context: AnyContext
): Shareable<Options> => {
  const options = validated(own)
  if (redis === undefined) return { options, shared: undefined }
  const at = [...path, "redis"]
  const input = below(redis, Object.keys({ ...Fleet.fleetOptions, ...Fleet.fleetOptionsOf[section] }), at)
  if (input["fallback"] !== undefined) below(input["fallback"], Object.keys(Fleet.fallbackOptions), [...at, "fallback"])
  // Which processes would share it is not said by a default: each resource has its own.
  if (path[0] === "default" && input["name"] !== undefined) {
    refuse([...at, "name"], input["name"], "left out of the default: each resource has its own")
  }
  const fleet = Context.get(context, Fleet.CurrentFleet)
  return fleet === undefined
    ? refuse(at, redis, "left out, or the program has to provide RetryConfigRedis.layer")
    : { options, shared: made(() => fleet[section].check(own, input), at, redis) }
}

/** What makes shared parts. A document that has any is refused without it. */
export const fleetOf = ({ context }: Fleet.Owner): Fleet.Fleet => Context.get(context, Fleet.CurrentFleet)!

const ownQuota: Shareable<StoreOptions> = { options: /* @__PURE__ */ validStore({}), shared: undefined }

/** The quota of a resource, in the memory of the process or shared. */
export class QuotaPart implements Part {
  readonly isOn = true
  private readonly store: ReplaceableStore
  private readonly service: RetryQuota.Service
  /** The tokens, if they are in the memory of the process. */
  memory: ResizableStore | undefined = undefined
  private shared: ReturnType<Fleet.Fleet["quota"]["join"]> | undefined = undefined

  constructor(input = ownQuota, private readonly owner: Fleet.Owner) {
    this.store = new ReplaceableStore(this.placed(input, Context.get(owner.context, Clock.Clock)))
    this.service = RetryQuota.fromStore(this.store)
  }

  /** What is in Redis stays there. */
  get isBlank(): boolean {
    return this.memory?.isBlank ?? true
  }

  add(context: AnyContext): AnyContext {
    return Context.add(context, RetryQuota.RetryQuota, this.service) as AnyContext
  }

  change(next: Shareable<StoreOptions> = ownQuota, clock: Clock.Clock): void {
    if (!this.follows(next, clock)) this.move(next, clock)
    else if (next.options.onExceeded === "stop") this.store.moveTo(this.store.store)
  }

  close(): void {
    this.shared?.close()
  }

  /** Whether the quota stays where it is. */
  private follows({ options, shared }: Shareable<StoreOptions>, clock: Clock.Clock): boolean {
    if (shared !== undefined) return this.shared?.change(shared, clock) === true
    this.memory?.change(options, clock)
    return this.memory !== undefined
  }

  /** Its share of tokens comes along. */
  private move(next: Shareable<StoreOptions>, clock: Clock.Clock): void {
    const tokens = this.store.balance(clock) * (next.options.capacity / this.store.capacity)
    const before = this.shared
    this.store.moveTo(this.placed(next, clock, tokens))
    before?.close()
  }

  /** A quota that begins with these tokens, unless the fleet has it already. */
  private placed({ options, shared }: Shareable<StoreOptions>, clock: Clock.Clock, tokens?: number): RetryQuotaStore {
    this.shared = shared && fleetOf(this.owner).quota.join(tokens, shared, this.owner)
    this.memory = shared === undefined
      ? new ResizableStore({ ...options, initial: tokens ?? options.initial }, monotonicMillis(clock))
      : undefined
    return this.memory ?? this.shared!.member
  }
}
