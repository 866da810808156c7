// Effect 3 has no such module. The error that Node throws then tells the name of this file: it is imported first.
import "effect/Pull"
