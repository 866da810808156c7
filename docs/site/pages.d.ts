export declare const groups: ReadonlyArray<{
  readonly text: string
  readonly kind: "guide" | "evidence" | "reference" | "maintain"
  readonly pages: ReadonlyArray<readonly [path: string, title: string]>
}>
export declare const placeOf: (path: string) => string
export declare const wordsOf: (page: string) => number
