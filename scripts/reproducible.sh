#!/usr/bin/env bash
# Builds the package twice, in two folders, and compares the tarballs byte for byte.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

tarball() {
  local copy="$folder/$1"
  mkdir -p "$copy"
  tar cf - package.json README.md LICENSE tsconfig.json tsconfig.build.json schema examples/scenarios scripts src | tar xf - -C "$copy"
  # Other times than those of the checkout must not show.
  find "$copy" -type f -exec touch -d "$2" {} +
  ln -s "$PWD/node_modules" "$copy/node_modules"
  (cd "$copy" && npm run --silent build && npm pack --silent --ignore-scripts > /dev/null)
  sha512sum < "$copy"/effect-retry-*.tgz
}

first="$(tarball first 2001-02-03T04:05:06)"
second="$(tarball another-name-of-another-length 2020-01-02T03:04:05)"
echo "$first"
echo "$second"
[[ "$first" == "$second" ]] || { echo "two builds give two packages" >&2; exit 1; }
