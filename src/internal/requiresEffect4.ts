// Effect 3 has neither module. No code can run before all imports are resolved, so the error that Node then throws ends
// with the published name of this file, which says what to do: `.config/bundle.mjs`.
export { catchDone, isDoneCause } from "effect/Pull"
export * as Result from "effect/Result"
