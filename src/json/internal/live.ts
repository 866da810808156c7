import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { noDelay } from "../../engine/delay.ts"
import type { Parts } from "../../engine/parts.ts"
import { partsOf } from "../../engine/policy/policy.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { CurrentResource } from "../../RetryObserver.ts"
import type { Document, Entry } from "./document.ts"
import { type Part, sections } from "./sections.ts"

/** What a call of a resource goes by. A call keeps it; a change makes another. */
export interface Version {
  readonly parts: Parts
  /** The context of a call, with what the resource has now. */
  readonly around: (context: AnyContext) => AnyContext
}

/** A resource, from its first use on: its policy comes and goes, its quota and gates change and stay. */
export class Live {
  readonly name: string
  version: Version
  /** What holds sends back, or may at any time: for those who keep the services of the resource. */
  readonly services: AnyContext
  /** No document has named it, nor said what holds for such. To be said once. */
  isGuess: boolean
  private isOff = false
  private entry: Entry
  private readonly parts: { readonly [section: string]: Part }

  constructor(name: string, entry: Entry, context: AnyContext) {
    this.name = name
    this.isGuess = entry.isGuess
    this.entry = entry
    this.parts = Object.fromEntries(
      Object.entries(sections).map(([key, section]) => [key, section.make(entry.parts[key]?.options, context)])
    )
    this.services = this.with(Object.values(this.parts), Context.empty())
    this.version = this.versionOf(entry)
  }

  change(entry: Entry, clock: Clock.Clock): void {
    for (const [key, part] of Object.entries(this.parts)) {
      const next = entry.parts[key]
      if (next?.json !== this.entry.parts[key]?.json) part.change(next?.options, clock)
    }
    this.entry = entry
    this.version = this.versionOf(entry)
  }

  private versionOf({ isOff, policy }: Entry): Version {
    this.isOff = isOff
    const parts = partsOf(policy)
    const on = Object.values(this.parts).filter(({ isOn }) => isOn)
    // A context never changes: those that many calls share are put together once.
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

/** How many resources are kept that no document names. */
const maxUnnamed = 10_000

/** The resources of a document, and what its calls ask for besides. */
export class Lives {
  private document: Document
  private readonly lives = new Map<string, Live>()
  private readonly context: AnyContext

  constructor(document: Document, context: AnyContext) {
    this.document = document
    this.context = context
  }

  /** Whether the document names it. */
  names(name: string): boolean {
    return this.document.resources.has(name)
  }

  /** The resource. What the document does not name is made when it is asked for; too many of those share one. */
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
      if (isTooMany && !this.names(live.name)) this.lives.delete(live.name)
      live.change(this.entryOf(live.name), clock)
    }
  }

  private entryOf(name: string): Entry {
    return this.document.resources.get(name) ?? this.document.others
  }
}
