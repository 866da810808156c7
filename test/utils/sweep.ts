/** Under the name that the library's tests use. */
export { sweep } from "effect-retry/testing"
