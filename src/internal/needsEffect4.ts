// Effect 3 has no such module. Imported first, so that the error Node then throws shows this file's name.
import "effect/Pull"
