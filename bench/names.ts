/** What a waiting call is weighed against. */
export const sleeping = "Effect.sleep, a fiber that does nothing else"
