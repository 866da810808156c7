import { useEffect, useRef, useState } from "preact/hooks"
import type { Figure } from "../src/cli/charts/figure.ts"
import { numbersOf } from "../src/cli/charts/figureHtml.ts"
import { type Success, successHtml } from "../src/cli/charts/successChart.ts"
import { timePanel } from "../src/cli/charts/timePanel.ts"

/** The element that a picture is drawn in, and how wide it is. */
const useWidth = () => {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])
  return { box, width }
}

/** How the calls of all policies fare, as in a report. */
export const SuccessChart = ({ success }: { readonly success: Success }) => {
  const { box, width } = useWidth()
  const shape = { width: Math.max(width, 280), height: width < 500 ? 260 : 290, type: 15 }
  return (
    <figure class="first">
      <div
        ref={box}
        class="plot"
        dangerouslySetInnerHTML={{ __html: successHtml("Calls that succeed", success, shape).markup }}
      />
    </figure>
  )
}

/** Lines over time, drawn as in a report: a picture with the values under the pointer, and a table of values. */
export const Chart = ({ className = "", figure }: { readonly className?: string; readonly figure: Figure }) => {
  const { box, width } = useWidth()
  const size = { width: Math.max(width, 200), height: width < 500 ? 170 : 210 }
  return (
    <figure class={className}>
      <figcaption>
        <h3>{figure.title}</h3>
        <p>{figure.what}</p>
      </figcaption>
      <div
        ref={box}
        class="plot"
        dangerouslySetInnerHTML={{ __html: timePanel(figure, figure.panels[0]!, size).markup }}
      />
      <details>
        <summary>Values</summary>
        <div dangerouslySetInnerHTML={{ __html: numbersOf(figure).markup }} />
      </details>
    </figure>
  )
}
