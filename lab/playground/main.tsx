import { render } from "preact"
import { App } from "./App.tsx"

/** The program of the workers, which the build puts into the page. */
const source = JSON.parse(document.getElementById("worker")!.textContent!) as string
const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }))

render(<App start={() => new Worker(address)} />, document.getElementById("app")!)
