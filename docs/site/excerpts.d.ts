export declare const wholeOf: (read: (file: string) => string, file: string, excerpt: string) => string
export declare const excerptsOf: (page: string) => ReadonlyArray<{
  readonly all: string
  readonly file: string
  readonly code: string
}>
