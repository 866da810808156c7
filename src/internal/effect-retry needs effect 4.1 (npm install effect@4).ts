// Effect 3 has neither module. No code can run before all imports are resolved, so the error that Node then throws ends
// with this file's name, which says what to do.
export { catchDone, isDoneCause } from "effect/Pull"
export * as Result from "effect/Result"
