/** What a waiting call is compared with. */
export const sleeping = "Effect.sleep in a fiber that does nothing else"
