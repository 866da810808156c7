import type { Explanation } from "../../Explain.ts"
import { escaped } from "./escape.ts"

/** An explanation as an SVG document. */
export const explainSvg = (explanation: Explanation): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="720" height="40" role="img"><title>${
    escaped(explanation.name ?? "policy")
  }</title></svg>`
