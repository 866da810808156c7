import { Worker } from "node:worker_threads"

/** Starts a thread from a TypeScript source, for development and tests. */
export const startSource = (source: URL): Worker =>
  new Worker(
    `import(${JSON.stringify(import.meta.resolve("tsx/esm/api"))})
      .then(({ register }) => { register(); return import(${JSON.stringify(source)}) })`,
    { eval: true }
  )
