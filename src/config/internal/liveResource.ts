import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type { Parts } from "../../engine/compiled.ts"
import { noDelay } from "../../engine/delay.ts"
import { partsOf } from "../../engine/policy/policy.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { warnUnsharedQuotas } from "../../internal/sharing.ts"
import { LiveBudgets } from "../../quota/internal/changingBudgets.ts"
import { MemoryStore } from "../../quota/internal/memoryStore.ts"
import { MovingStore } from "../../quota/internal/replaceableStore.ts"
import { CurrentResource } from "../../RetryObserver.ts"
import { RetryQuota } from "../../RetryQuota.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Document, Entry } from "./configDocument.ts"
import { sections } from "./gateSections.ts"
import type { Hedging, Part } from "./resourcePart.ts"

/** What a call of a resource uses. A call keeps it; a change makes a new one. */
export interface Version {
  readonly parts: Parts
  /** The context of a call, with what the resource has now. */
  readonly around: (context: AnyContext) => AnyContext
}

/** A resource, from its first use on: its policy is replaced, its quota and gates are changed in place. */
export class Live {
  readonly name: string
  version: Version
  /** What holds sends back, or may at any time: for code that keeps the services of the resource. */
  readonly services: AnyContext
  /** No document has named it, or set a default. Reported once. */
  isGuess: boolean
  private isOff = false
  private entry: Entry
  private readonly parts: { readonly [section: string]: Part }

  constructor(name: string, entry: Entry, context: AnyContext) {
    this.name = name
    this.isGuess = entry.isGuess
    this.entry = entry
    const owner = { resource: name, context }
    this.parts = Object.fromEntries(
      Object.entries(sections).map(([key, section]) => [key, section.make(entry.parts[key]?.options, owner)])
    )
    this.services = this.with(Object.values(this.parts), Context.empty())
    this.version = this.versionOf(entry)
  }

  /** How a call that begins now is hedged; `undefined` if it is not. */
  get hedge(): Hedging | undefined {
    return this.isOff ? undefined : this.parts["hedge"]!.hedge
  }

  change(entry: Entry, clock: Clock.Clock): void {
    for (const [key, part] of Object.entries(this.parts)) {
      const next = entry.parts[key]
      if (next?.json !== this.entry.parts[key]?.json) part.change(next?.options, clock)
    }
    this.entry = entry
    this.version = this.versionOf(entry)
  }

  /** No call begins any more. */
  close(clock: Clock.Clock): void {
    for (const part of Object.values(this.parts)) part.close?.(clock)
  }

  private versionOf({ isOff, policy }: Entry): Version {
    this.isOff = isOff
    const parts = partsOf(policy)
    const on = Object.values(this.parts).filter(({ isOn }) => isOn)
    // A context never changes: those shared by many calls are built once.
    const known = new WeakMap<AnyContext, AnyContext>()
    return {
      parts: isOff
        ? { ...parts, maxAttempts: 1 }
        : { ...parts, adjusts: [...parts.adjusts, (delayMillis) => this.isOff ? noDelay : delayMillis] },
      around: (context) => {
        let around = known.get(context)
        if (around === undefined) known.set(context, around = this.with(on, context))
        return around
      }
    }
  }

  private with(parts: ReadonlyArray<Part>, context: AnyContext): AnyContext {
    return parts.reduce(
      (context, part) => part.add(context),
      Context.add(context, CurrentResource, this.name) as AnyContext
    )
  }
}

/** Where the tokens are. */
const bucketOf = (store: RetryQuotaStore | undefined): RetryQuotaStore | undefined => {
  if (store instanceof LiveBudgets) return bucketOf(store.bucket)
  return store instanceof MovingStore ? store.store : store
}

/** How many resources that no document names are kept. */
const maxUnnamed = 10_000

/** The resources of a document, and others that its calls ask for. */
export class Lives {
  private document: Document
  private readonly lives = new Map<string, Live>()
  private readonly context: AnyContext
  private readonly madeAtMillis: number

  constructor(document: Document, context: AnyContext) {
    this.document = document
    this.context = context
    this.madeAtMillis = monotonicMillis(Context.get(context, Clock.Clock))
  }

  /** Whether the document names it. */
  names(name: string): boolean {
    return this.document.resources.has(name)
  }

  /** The resource. One that the document does not name is made on first use; beyond a maximum they share one. */
  get(name: string): Live {
    const known = this.lives.get(name)
    if (known !== undefined) return known
    const key = this.names(name) || this.lives.size < maxUnnamed + this.document.resources.size ? name : "default"
    const made = this.lives.get(key) ?? new Live(key, this.entryOf(key), this.context)
    this.lives.set(key, made)
    return made
  }

  /** In one step: no call sees a part of it. */
  change(document: Document): void {
    this.document = document
    const clock = Context.get(this.context, Clock.Clock)
    for (const live of this.lives.values()) {
      const isTooMany = this.lives.size > maxUnnamed + document.resources.size
      live.change(this.entryOf(live.name), clock)
      if (isTooMany && !this.names(live.name)) {
        this.lives.delete(live.name)
        live.close(clock)
      }
    }
  }

  /** The layer is dropped. */
  dropped(context: AnyContext): void {
    const stores = [...this.lives.values()].flatMap(({ services }) => {
      const store = Context.getOrUndefined(services, RetryQuota)?.store
      const bucket = bucketOf(store)
      return bucket instanceof MemoryStore ? [bucket] : []
    })
    warnUnsharedQuotas(context, stores, this.madeAtMillis)
  }

  private entryOf(name: string): Entry {
    return this.document.resources.get(name) ?? this.document.others
  }
}
