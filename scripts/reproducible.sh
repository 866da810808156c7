#!/usr/bin/env bash
# Builds both packages twice, in two folders, and compares the tarballs byte for byte.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

tarballs() {
  local copy="$folder/$1"
  mkdir -p "$copy"
  tar cf - --exclude=dist package.json README.md LICENSE tsconfig.json tsconfig.build.json scripts src lab | tar xf - -C "$copy"
  # Times other than those of the checkout must not show.
  find "$copy" -type f -exec touch -d "$2" {} +
  # The links of the workspace have to lead into the copy.
  mkdir "$copy/node_modules"
  ln -s "$PWD"/node_modules/* "$PWD"/node_modules/.bin "$copy/node_modules"
  rm "$copy/node_modules/effect-retry" "$copy/node_modules/@effect-retry"
  mkdir "$copy/node_modules/@effect-retry"
  ln -s .. "$copy/node_modules/effect-retry"
  ln -s ../../lab "$copy/node_modules/@effect-retry/lab"
  (
    cd "$copy"
    npm run --silent build
    npm pack --silent --ignore-scripts > /dev/null
    npm pack --silent --ignore-scripts --workspace @effect-retry/lab > /dev/null
    sha512sum ./*.tgz
  )
}

first="$(tarballs first 2001-02-03T04:05:06)"
second="$(tarballs another-name-of-another-length 2020-01-02T03:04:05)"
echo "$first"
echo "$second"
[[ "$first" == "$second" ]] || { echo "two builds give two packages" >&2; exit 1; }
