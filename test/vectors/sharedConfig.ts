import { type Basis, conformance } from "../utils/conformance.ts"

const tables = conformance("shared-config")

/** Properties by profile. */
export type Profiles = Readonly<Record<string, Readonly<Record<string, string>>>>

interface Named {
  readonly name: string
  readonly basis: Basis
}

export type Missing = "]" | "=" | "name" | "section" | "property" | "nested =" | "nested name"

/** A config file: its profiles, or the line that is malformed, and what is missing there. */
export const config: ReadonlyArray<
  & Named
  & { readonly text: string }
  & (
    | { readonly profiles: Profiles; readonly error?: undefined }
    | { readonly profiles?: undefined; readonly error: { readonly line: number; readonly missing: Missing } }
  )
> = tables.config

/** A credentials file. */
export const credentials: ReadonlyArray<Named & { readonly text: string; readonly profiles: Profiles }> =
  tables.credentials

/** Both files. */
export const both: ReadonlyArray<
  Named & { readonly config: string; readonly credentials: string; readonly profiles: Profiles }
> = tables.both

interface Location extends Named {
  readonly env: Readonly<Record<string, string>>
  /** The path that code gives. */
  readonly option?: string
  readonly path: string
}

/** Which file is read. */
export const locations: {
  readonly config: ReadonlyArray<Location>
  readonly credentials: ReadonlyArray<Location>
} = tables.locations
