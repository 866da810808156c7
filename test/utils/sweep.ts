/** Under the name that the tests of the library know it by. */
export { sweep } from "effect-retry/testing"
