import { parseAst } from "rolldown/parseAst"

/** A node of a syntax tree, as ESTree has it. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: any
}

/** The statements of TypeScript code. */
export const statementsOf = (code: string, lang: "ts" | "tsx" = "ts"): ReadonlyArray<Node> =>
  parseAst(code, { lang }).body as unknown as ReadonlyArray<Node>

/** Enters a node, or several, and all nodes inside, from the outside in. */
export const visit = (node: unknown, enter: (node: Node) => void): void => {
  if (node === null || typeof node !== "object") return
  if ("type" in node && typeof node.type === "string") enter(node as Node)
  for (const child of Object.values(node)) if (typeof child === "object") visit(child, enter)
}
