/**
 * The pages, by the questions that people come with, and what kind each is: a guide is read from top to bottom, evidence
 * is what a guide rests on, reference is looked up. A page of `docs/` that is not named here fails the build.
 */
export const groups = [
  {
    text: "Begin",
    kind: "guide",
    pages: [
      ["README.md", "Start"],
      ["docs/choosing-a-policy.md", "Which policy?"],
      ["docs/sharing.md", "Sharing a quota"],
      ["docs/not-retried.md", "It is not retried: why?"],
      ["docs/migrating.md", "From another library"]
    ]
  },
  {
    text: "Clients",
    kind: "guide",
    pages: [
      ["docs/http.md", "HTTP"],
      ["docs/promises.md", "Promises and fetch"],
      ["docs/aws-sdk.md", "AWS SDK"],
      ["docs/llm.md", "LLM APIs"],
      ["docs/grpc.md", "gRPC"],
      ["docs/effect-errors.md", "SQL, RPC, streams, plans"]
    ]
  },
  {
    text: "Under load",
    kind: "guide",
    pages: [
      ["docs/overload.md", "Overload"],
      ["docs/limits.md", "Which limit for what"],
      ["docs/fleet.md", "A fleet"],
      ["docs/durable.md", "Durable"]
    ]
  },
  {
    text: "Operate",
    kind: "guide",
    pages: [
      ["docs/testing.md", "Testing"],
      ["docs/observing.md", "Logs, metrics, alerts"],
      ["docs/policies.md", "Policies of your own"],
      ["docs/live.md", "Live changes"],
      ["docs/extending.md", "Gates and stores of your own"]
    ]
  },
  {
    text: "Predict",
    kind: "guide",
    pages: [
      ["docs/cli.md", "See it before it happens"],
      ["docs/simulator.md", "The simulator"]
    ]
  },
  {
    text: "Evidence",
    kind: "evidence",
    pages: [
      ["docs/evidence/compared.md", "Compared"],
      ["docs/evidence/performance.md", "Performance"],
      ["docs/evidence/reality.md", "Prediction and reality"],
      ["docs/evidence/reliability.md", "Reliability"],
      ["docs/evidence/conformance.md", "Conformance tables"]
    ]
  },
  {
    text: "Look up",
    kind: "reference",
    pages: [
      ["docs/modules.md", "Modules and runtimes"],
      ["docs/what-comes-from-where.md", "What comes from where"],
      ["docs/aws-modes.md", "AWS modes"]
    ]
  },
  {
    text: "Maintain",
    kind: "maintain",
    pages: [
      [".github/CONTRIBUTING.md", "Contributing"],
      ["docs/maintaining.md", "Inside the library"],
      [".github/SECURITY.md", "Security"],
      ["CHANGELOG.md", "Changelog"]
    ]
  }
]

/** Where a page of the repository is on the site. */
export const placeOf = (path) => {
  if (path === "README.md") return "start"
  return path.replace(/^(docs|\.github)\//, "").replace(/\.md$/, "").toLowerCase()
}

/** Of a page, what a person wrote to be read: no code, nothing that a program wrote into it, of links their words. */
const prose = (page) =>
  page.replace(/^---\n[^]*?^---$/m, "")
    .replace(/^```[^]*?^```$/gm, "")
    .replace(/<!-- (?:comparison|generated): \S+ -->[^]*?<!-- end of [^>]*-->/g, "")
    .replace(/<!--[^]*?-->/g, "")
    .replace(/<\/?(?:picture|source|img)\b[^>]*>/g, "")
    .replace(/\]\([^)]*\)/g, "]")

/** How many words a page has, in sentences and in tables. */
export const wordsOf = (page) => prose(page).split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
