export declare const indexed: (path: string, page: string) => string
export declare const searchOptions: {
  readonly prefix: (term: string) => boolean
  readonly fuzzy: (term: string) => number | false
  readonly boost: Record<string, number>
  readonly boostDocument: (id: string) => number
}
