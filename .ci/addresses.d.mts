export interface Addresses {
  readonly repository: string
  readonly site: string
}

interface Fields {
  readonly homepage?: string
  readonly repository?: { readonly type: "git"; readonly url: string; readonly directory?: string }
  readonly bugs?: { readonly url: string }
}

export declare const addresses: Addresses
export declare const baseOf: (addresses: Addresses) => string
export declare const addressOf: (path: string, addresses: Addresses, kind?: "blob" | "raw") => string | undefined
export declare const linked: (text: string, addresses: Addresses, folder?: string) => string
export declare const fieldsOf: (addresses: Addresses, folder?: string) => Fields
export declare const withAddresses: (addresses: Addresses) => Readonly<Record<string, string>>
export declare const apply: (addresses: Addresses) => () => void
