/** The playground as one page. */
export declare const playground: () => Promise<string>
