/** The pages, by the questions that people come with. A page of `docs/` that is not named here fails the build. */
export const groups = [
  {
    text: "Begin",
    pages: [
      ["README.md", "Start"],
      ["docs/choosing-a-policy.md", "Which policy?"],
      ["docs/sharing.md", "Sharing a quota"],
      ["docs/not-retried.md", "It does not retry: why?"],
      ["docs/migrating.md", "From another library"]
    ]
  },
  {
    text: "Clients",
    pages: [
      ["docs/http.md", "HTTP"],
      ["docs/aws-sdk.md", "AWS SDK"],
      ["docs/llm.md", "LLM APIs"],
      ["docs/grpc.md", "gRPC"],
      ["docs/effect-errors.md", "SQL, RPC, HttpApi"],
      ["docs/promises.md", "Promises and fetch"],
      ["docs/streams.md", "Streams"]
    ]
  },
  {
    text: "Under load",
    pages: [
      ["docs/overload.md", "Overload: limit, cool-down, hedges"],
      ["docs/fleet.md", "A fleet"],
      ["docs/deadlines.md", "Deadlines across processes"],
      ["docs/durable.md", "Durable"]
    ]
  },
  {
    text: "Operate",
    pages: [
      ["docs/observing.md", "Metrics, alerts, logs"],
      ["docs/live.md", "Live changes"],
      ["docs/policies.md", "Policies of your own, as data"],
      ["docs/testing.md", "Testing"]
    ]
  },
  {
    text: "Predict",
    pages: [
      ["docs/cli.md", "See it before it happens"],
      ["docs/simulator.md", "The simulator"]
    ]
  },
  {
    text: "Know",
    pages: [
      ["docs/modules.md", "Modules"],
      ["docs/runtimes.md", "Runtimes and versions"],
      ["docs/aws-modes.md", "AWS modes"],
      ["docs/extending.md", "A gate, a store, a classifier of your own"]
    ]
  },
  {
    text: "Evidence",
    pages: [
      ["docs/evidence/performance.md", "Performance"],
      ["docs/evidence/reality.md", "Prediction and reality"],
      ["docs/evidence/reliability.md", "Reliability"],
      ["docs/evidence/conformance.md", "Conformance tables"]
    ]
  },
  {
    text: "Maintain",
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
