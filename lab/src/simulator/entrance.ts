import type { Request } from "./request.ts"

/** What lets only so many requests in at a time. One is in until it is answered, or its client gives up. */
export class Entrance {
  private readonly inside = new Set<Request>()

  constructor(private readonly most: number) {}

  /** Whether there is room for a request, which then takes it. */
  admits(request: Request): boolean {
    if (this.inside.size >= this.most) this.forgetAbandoned()
    if (this.inside.size >= this.most) return false
    this.inside.add(request)
    return true
  }

  leave(request: Request): void {
    this.inside.delete(request)
  }

  private forgetAbandoned(): void {
    for (const request of this.inside) if (request.settled) this.inside.delete(request)
  }
}
