// How runtimes say that a request failed, for GET and POST: what `fetch` rejects with, or the body it gives.

/** What is thrown: its message, and what else is on it. */
export interface NetworkError {
  readonly of: string
  readonly when: string
  readonly error: object
  /** Whether it is retried; with `timeout` if the client gave up waiting. */
  readonly is: "Yes" | "Yes timeout" | "unknown"
  /** Whether a POST may be sent again after it: `"Yes"` if nothing was sent. */
  readonly post: "Yes" | "Maybe"
}

const typeError = (message: string, more?: object): object => Object.assign(new TypeError(message), more)
const plain = (message: string, more?: object): object => Object.assign(new Error(message), more)
const inFetch = (message: string, more?: object): object =>
  new TypeError("fetch failed", { cause: plain(message, more) })

/** Where the wording comes from: run here, in that version, or a report. */
const chromium = "Chromium 156"
const firefox = "Firefox 153"
const safari = "Safari (npm is-network-error 1.3.2)"
const oldSafari = "Safari before 16 (CFNetwork's texts of NSURLError)"
const deno = "Deno 2.9.6"
const bun = "Bun 1.4.5"
const oldBun = "Bun before 1.4 (reports of 1.3.5)"
const workerd = "workerd 2026-11-17"
const node = "Node 20, 22, 24"

const bunCode = (code: string, words: string): object => typeError(`${code}: ${words}`, { code })

export const networkErrors: ReadonlyArray<NetworkError> = [
  { of: chromium, when: "any failure", error: typeError("Failed to fetch"), is: "Yes", post: "Maybe" },
  {
    of: "Chrome since 2026, and Sentry (is-network-error issue 11)",
    when: "any failure",
    error: typeError("Failed to fetch (api.example.com)"),
    is: "Yes",
    post: "Maybe"
  },
  { of: chromium, when: "a stream of a body breaks off", error: typeError("network error"), is: "Yes", post: "Maybe" },
  {
    of: firefox,
    when: "any failure",
    error: typeError("NetworkError when attempting to fetch resource."),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: "Firefox with Sentry",
    when: "any failure",
    error: typeError("NetworkError when attempting to fetch resource. (api.example.com)"),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: firefox,
    when: "a body ends too early",
    error: typeError("Content-Length header of network response exceeds response Body."),
    is: "Yes",
    post: "Maybe"
  },
  { of: safari, when: "any failure", error: typeError("Load failed"), is: "Yes", post: "Maybe" },
  { of: safari, when: "any failure", error: typeError("Load failed (api.example.com)"), is: "Yes", post: "Maybe" },
  {
    of: oldSafari,
    when: "-1009",
    error: typeError("The Internet connection appears to be offline."),
    is: "Yes",
    post: "Maybe"
  },
  { of: oldSafari, when: "-1005", error: typeError("The network connection was lost."), is: "Yes", post: "Maybe" },
  { of: "React Native, whatwg-fetch", when: "", error: typeError("Network request failed"), is: "Yes", post: "Maybe" },
  { of: "whatwg-fetch", when: "", error: typeError("Network request timed out"), is: "Yes timeout", post: "Maybe" },
  {
    of: deno,
    when: "nobody listens",
    error: inFetch(
      "error sending request for url (http://127.0.0.1:4799/): client error (Connect): tcp connect error: Connection refused (os error 111)"
    ),
    is: "Yes",
    post: "Yes"
  },
  {
    of: deno,
    when: "the name is not found",
    error: inFetch(
      "error sending request for url (http://no-such-host.invalid/): client error (Connect): dns error: failed to lookup address information: Name or service not known"
    ),
    is: "Yes",
    post: "Yes"
  },
  {
    of: deno,
    when: "no answer to the connect",
    error: inFetch(
      "error sending request for url (http://10.0.0.1/): client error (Connect): tcp connect error: Connection timed out (os error 110)"
    ),
    is: "Yes timeout",
    post: "Yes"
  },
  {
    of: "Deno 1",
    when: "nobody listens",
    error: typeError(
      "error sending request for url (http://127.0.0.1:1/): error trying to connect: tcp connect error: Connection refused (os error 111)"
    ),
    is: "Yes",
    post: "Yes"
  },
  { of: deno, when: "a reset", error: inFetch("Connection reset by peer (os error 104)"), is: "Yes", post: "Maybe" },
  {
    of: deno,
    when: "a connection is closed",
    error: inFetch(
      "error sending request from 127.0.0.1:36126 for http://127.0.0.1:4711/close (127.0.0.1:4711): client error (SendRequest): connection closed before message completed"
    ),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: deno,
    when: "a body breaks off",
    error: typeError("error reading a body from connection"),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: deno,
    when: "no HTTP is answered",
    error: inFetch(
      "error sending request from 127.0.0.1:36140 for http://127.0.0.1:4711/garbage (127.0.0.1:4711): client error (SendRequest): invalid HTTP version parsed"
    ),
    is: "unknown",
    post: "Maybe"
  },
  {
    of: deno,
    when: "no TLS is answered",
    error: inFetch(
      "error sending request for url (https://127.0.0.1:4711/x): client error (Connect): received corrupt message of type InvalidContentType"
    ),
    is: "unknown",
    post: "Maybe"
  },
  {
    of: bun,
    when: "nobody listens",
    error: bunCode("ECONNREFUSED", "Unable to connect. Is the computer able to access the url?"),
    is: "Yes",
    post: "Yes"
  },
  {
    of: bun,
    when: "the name is not found",
    error: typeError("getaddrinfo ENOTFOUND no-such-host.invalid", { code: "ENOTFOUND", syscall: "getaddrinfo" }),
    is: "Yes",
    post: "Yes"
  },
  {
    of: bun,
    when: "a reset, a connection that is closed, a body that breaks off",
    error: bunCode(
      "ECONNRESET",
      "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()"
    ),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: oldBun,
    when: "nobody listens, or the name is not found",
    error: plain("Unable to connect. Is the computer able to access the url?", { code: "ConnectionRefused" }),
    is: "Yes",
    post: "Yes"
  },
  {
    of: oldBun,
    when: "no socket",
    error: plain("Was there a typo in the url or port?", { code: "FailedToOpenSocket" }),
    is: "Yes",
    post: "Yes"
  },
  {
    of: oldBun,
    when: "a connection is closed",
    error: plain(
      "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()"
    ),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: workerd,
    when: "nobody listens, a reset, a body that breaks off",
    error: plain("Network connection lost.", { retryable: true }),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: workerd,
    when: "the name is not found, no TLS is answered",
    error: plain("internal error; reference = d5d0ntvkq14hvbgp5u94nla8"),
    is: "unknown",
    post: "Maybe"
  },
  {
    of: "Workers (npm is-network-error 1.3.2)",
    when: "any failure",
    error: typeError("Network connection lost"),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: "Bun (npm is-network-error 1.3.2)",
    when: "any failure",
    error: typeError(" A network error occurred."),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: node,
    when: "nobody listens",
    error: inFetch("connect ECONNREFUSED 127.0.0.1:4799", { code: "ECONNREFUSED", syscall: "connect" }),
    is: "Yes",
    post: "Yes"
  },
  {
    of: node,
    when: "the name is not found",
    error: inFetch("getaddrinfo ENOTFOUND no-such-host.invalid", { code: "ENOTFOUND", syscall: "getaddrinfo" }),
    is: "Yes",
    post: "Yes"
  },
  {
    of: node,
    when: "a reset",
    error: inFetch("read ECONNRESET", { code: "ECONNRESET", syscall: "read" }),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: node,
    when: "a body breaks off",
    error: new TypeError("terminated", { cause: plain("other side closed", { code: "UND_ERR_SOCKET" }) }),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: "axios 1 (AxiosError.ECONNABORTED)",
    when: "its timeout",
    error: plain("timeout of 1000ms exceeded", { name: "AxiosError", code: "ECONNABORTED" }),
    is: "Yes timeout",
    post: "Maybe"
  },
  {
    of: "axios 1 (AxiosError.ECONNABORTED)",
    when: "the browser gives up",
    error: plain("Request aborted", { name: "AxiosError", code: "ECONNABORTED" }),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: "axios 1 (AxiosError.ERR_NETWORK)",
    when: "any failure in a browser",
    error: plain("Network Error", { name: "AxiosError", code: "ERR_NETWORK" }),
    is: "Yes",
    post: "Maybe"
  },
  {
    of: "every runtime",
    when: "AbortSignal.timeout",
    error: new DOMException("The operation was aborted due to timeout", "TimeoutError"),
    is: "Yes timeout",
    post: "Maybe"
  }
]

/** What is not a failure of the network, though it reads like one. */
export const noNetworkErrors: ReadonlyArray<readonly [why: string, error: object]> = [
  ["an error of a program", new TypeError("x is not a function")],
  ["words of fetch, and more", new TypeError("Failed to fetch the order of the customer")],
  ["words of fetch in an error of no fetch", new Error("Load failed")],
  ["words of Deno further on", new Error("order 7: error sending request for url (x): tcp connect error")],
  ["a message that is not a string", { name: "TypeError", message: ["Failed to fetch"] }]
]

/** How `fetch` says that it does not send such a request: no retry makes it right. */
export const refusals: ReadonlyArray<readonly [of: string, error: object]> = [
  [firefox, new TypeError("Window.fetch: http://%%/ is not a valid URL.")],
  [firefox, new TypeError("Window.fetch: HEAD or GET Request cannot have a body.")],
  [firefox, new TypeError("WorkerGlobalScope.fetch: a b is an invalid header name.")],
  [chromium, new TypeError("Failed to execute 'fetch' on 'Window': 'A B' is not a valid HTTP method.")],
  [deno, new TypeError("Url scheme 'foo' not supported")],
  [deno, new TypeError("Fetch failed: Requests to port 1 are blocked")],
  [deno, new TypeError("Request with GET/HEAD method cannot have body")],
  [deno, new TypeError("Method is not valid")],
  [deno, new TypeError("Invalid URL: 'http://%%/'")],
  [
    deno,
    new TypeError("Failed to construct 'Request': 'headers' of 'RequestInit' (Argument 2) is not a valid ByteString")
  ],
  [
    deno,
    inFetch(
      "error sending request for url (https://expired.test/): client error (Connect): invalid peer certificate: Expired"
    )
  ],
  [bun, new TypeError("Header 'a' has invalid value")],
  [bun, new TypeError("Invalid header name: 'a b'")],
  [workerd, new TypeError("Fetch API cannot load: foo://x")],
  [workerd, new TypeError("Invalid HTTP method string: A B")],
  [workerd, new TypeError("Request with a GET or HEAD method cannot have a body.")],
  [node, inFetch("bad port")],
  [node, inFetch("unknown scheme")]
]
