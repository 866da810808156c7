import * as Crypto from "node:crypto"
import { type Html, html, raw } from "./html.ts"
import { style } from "./pageStyle.ts"

/** The only style that a page allows. */
const styleHash = `sha256-${Crypto.createHash("sha256").update(style).digest("base64")}`

/** A whole page, which needs nothing else and loads nothing. */
export const page = (title: string, body: Html): string =>
  html`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '${
    raw(styleHash)
  }'; base-uri 'none'; form-action 'none'" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<meta name="referrer" content="no-referrer" />
<title>${title} - effect-retry</title>
<style>${raw(style)}</style></head>
<body>${body}</body></html>
`.markup
