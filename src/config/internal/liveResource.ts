import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type { Compiled } from "../../engine/compiled.ts"
import { noDelay } from "../../engine/delay.ts"
import { compiledOf } from "../../engine/policy/policy.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import { Entry as Kept, Keyed } from "../../internal/keyed.ts"
import { remembering } from "../../internal/remembering.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { warn, warnUnsharedQuotas } from "../../internal/sharing.ts"
import type { MemoryStore } from "../../quota/internal/memoryStore.ts"
import { CurrentResource } from "../../RetryObserver.ts"
import type { Document, Entry } from "./configDocument.ts"
import { QuotaPart } from "./fleetQuota.ts"
import { sections } from "./gateSections.ts"
import type { Hedging, Part } from "./resourcePart.ts"

/** What a call of a resource uses. A call keeps it; a change makes a new one. */
export interface Version {
  readonly compiled: Compiled
  /** The context of a call, with what the resource has now. */
  readonly around: (context: AnyContext) => AnyContext
}

/** A resource, from its first use on: its policy is replaced, its quota and gates are changed in place. */
export class LiveResource extends Kept {
  version: Version
  private entry: Entry
  private readonly parts: { [section: string]: Part } = {}

  constructor(name: string, private readonly home: Lives) {
    super(name)
    this.entry = home.entryOf(name)
    this.version = this.versionOf(this.entry)
  }

  /** What holds sends back, or may at any time: for code that keeps the services of the resource. */
  get services(): AnyContext {
    return this.with(Object.keys(sections).map((key) => this.part(key)), Context.empty())
  }

  /** How a call that begins now is hedged; `undefined` if it is not. */
  get hedge(): Hedging | undefined {
    return this.isOff || this.entry.parts["hedge"] === undefined ? undefined : this.part("hedge").hedge
  }

  /** No document has named it, or set a default. */
  get isGuess(): boolean {
    return this.entry.isGuess
  }

  /** Its tokens, if they are in memory and a call has needed them. */
  get memory(): MemoryStore | undefined {
    const quota = this.parts["quota"]
    return quota instanceof QuotaPart ? quota.memory : undefined
  }

  get isBlank(): boolean {
    return Object.values(this.parts).every(({ isBlank }) => isBlank)
  }

  override get isPinned(): boolean {
    return this.home.document.resources.has(this.key)
  }

  change(clock: Clock.Clock): void {
    const { entry } = this
    this.entry = this.home.entryOf(this.key)
    for (const [key, part] of Object.entries(this.parts)) {
      const next = this.entry.parts[key]
      if (next?.json !== entry.parts[key]?.json) part.change(next?.options, clock)
    }
    this.version = this.versionOf(this.entry)
  }

  /** No call begins any more. */
  dropped(): void {
    this.home.all.delete(this)
    for (const part of Object.values(this.parts)) part.close?.()
  }

  /** As it is now: also for a call in progress. */
  private get isOff(): boolean {
    return this.home.entryOf(this.key).isOff
  }

  private part(key: string): Part {
    const { context } = this.home
    return this.parts[key] ??= sections[key]!.make(this.entry.parts[key]?.options, { resource: this.key, context })
  }

  /** What holds calls back, and the quota. */
  private on(options: Entry["parts"]): ReadonlyArray<Part> {
    const keys = Object.keys(sections).filter((key) => key === "quota" || options[key] !== undefined)
    return keys.map((key) => this.part(key)).filter(({ isOn }) => isOn)
  }

  private versionOf({ isOff, parts: options, policy }: Entry): Version {
    const compiled = compiledOf(policy)
    return {
      compiled: isOff
        ? { ...compiled, maxAttempts: 1 }
        : { ...compiled, adjusts: [...compiled.adjusts, (delayMillis) => this.isOff ? noDelay : delayMillis] },
      // A context never changes: those shared by many calls are built once.
      around: remembering((context: AnyContext) => this.with(this.on(options), context))
    }
  }

  private with(parts: ReadonlyArray<Part>, context: AnyContext): AnyContext {
    return parts.reduce(
      (context, part) => part.add?.(context) ?? context,
      Context.add(context, CurrentResource, this.key) as AnyContext
    )
  }
}

/** As of the resources of `ResourceLimiters`. */
const idleMillis = 600_000
const maxUnnamed = 10_000

/** How many names that no document has are reported. */
const maxReported = 100

/** The resources of a document, and others that its calls ask for. */
export class Lives {
  readonly clock: Clock.Clock
  /** Those of the document stay. */
  private readonly kept: Keyed<LiveResource>
  /** Also those that are in use without being kept. */
  readonly all = new Set<LiveResource>()
  private readonly reported = new Set<string>()
  private readonly madeAtMillis: number

  constructor(public document: Document, readonly context: AnyContext) {
    this.clock = Context.get(context, Clock.Clock)
    this.madeAtMillis = monotonicMillis(this.clock)
    this.kept = new Keyed({ idleMillis, maxEntries: maxUnnamed }, (name) => this.made(name))
    this.warn()
  }

  /** Begins a use of the resource, which is made on its first one. */
  enter(name: string): LiveResource {
    return this.kept.enter(name, monotonicMillis(this.clock))
  }

  /** Ends a use. */
  release(live: LiveResource): void {
    this.kept.release(live, monotonicMillis(this.clock))
  }

  /** The resource as it is now. */
  peek(name: string): LiveResource {
    const live = this.enter(name)
    this.release(live)
    return live
  }

  /** Whether it is to be reported that no document has named it, or set a default: it may be misspelled. */
  isNews({ isGuess, key }: LiveResource): boolean {
    const isNews = isGuess && this.reported.size < maxReported && !this.reported.has(key)
    if (isNews) this.reported.add(key)
    return isNews
  }

  /** In one step: no call sees a part of it. */
  change(document: Document): void {
    const nowMillis = monotonicMillis(this.clock)
    this.kept.sweep(nowMillis)
    this.document = document
    for (const live of this.all) live.change(this.clock)
    this.kept.refile(nowMillis)
    this.warn()
  }

  entryOf(name: string): Entry {
    return this.document.resources.get(name) ?? this.document.others
  }

  /** The layer is dropped. */
  dropped(context: AnyContext): void {
    warnUnsharedQuotas(context, [...this.all].flatMap(({ memory }) => memory ?? []), this.madeAtMillis)
  }

  /** Names quotas that do nothing. */
  private warn(): void {
    const { others, resources } = this.document
    for (const { unpaid } of [others, ...resources.values()]) {
      if (unpaid !== undefined) warn(this, `nothing in the policy pays from ${unpaid}: add quotaGated to its steps`)
    }
  }

  private made(name: string): LiveResource {
    const live = new LiveResource(name, this)
    this.all.add(live)
    return live
  }
}
