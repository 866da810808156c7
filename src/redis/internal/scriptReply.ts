/** In a script: an amount in a field, or `nil` for anything else that others may have written there. */
export const luaAmount = `
local function amount(text)
  local read = tonumber(text)
  return read and read >= 0 and read < math.huge and read or nil
end`

/** A number in an answer of Redis; NaN for anything else. */
export const numberOf = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : NaN
