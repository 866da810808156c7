import { lookOf } from "../src/cli/charts/palette.ts"

/** How the line of a policy looks. */
export const Swatch = ({ place }: { readonly place: number }) => (
  <svg class={`swatch line-${place}`} width="28" height="10" viewBox="0 0 28 10" aria-hidden="true">
    <line x1="0" y1="5" x2="28" y2="5" stroke-width="3" stroke-dasharray={lookOf(place).dash.join(" ")} />
  </svg>
)
