// The JSON Schema of a document of RetryConfig, next to the module that knows it: part of `npm run build:library`.
import { writeFileSync } from "node:fs"
import { jsonSchema } from "../dist/config/RetryConfigSchema.js"

const target = new URL("../dist/config/retry-config.schema.json", import.meta.url)
writeFileSync(target, `${JSON.stringify(jsonSchema(), null, 2)}\n`)
