import { render } from "preact"
import { App } from "./App.tsx"
import type { Start } from "./laboratory.ts"

/** The program of the workers, which the build puts into the page. */
const source = JSON.parse(document.getElementById("worker")!.textContent!) as string
const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }))

const start: Start = (receive) => {
  const worker = new Worker(address)
  worker.onmessage = ({ data }) => receive(data)
  return (ask) => worker.postMessage(ask)
}

render(<App start={start} />, document.getElementById("app")!)
