/** What a waiting call is weighed against. */
export const sleeping = "Effect.sleep in a fiber that does nothing else"
