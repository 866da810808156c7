/**
 * The traces of all scenarios that ship, as written and with policies of each kind, seed 1: the hash of every event, its
 * time and its place. A change of the simulator that changes one has changed what happens.
 */
export const traces: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  adaptive: {
    written: "56155cfebe13e805",
    naive: "5a63a773896e1952",
    awsStandard: "f659008cc3c8e975",
    awsAdaptive: "56155cfebe13e805",
    finagle: "90bf84e285856783",
    envoy: "c955415d8a97995b"
  },
  "client-throttling": {
    written: "243c9b25e138643f"
  },
  demo: {
    written: "537f401d470917d3",
    naive: "4d6532bcca2697d3",
    awsStandard: "537f401d470917d3",
    awsAdaptive: "71e3ee728f09b095",
    finagle: "7e5e5ea58eec8836",
    envoy: "8a5a175323ba33eb"
  },
  "finagle-budget": {
    written: "bb6a4f2e135c8698",
    naive: "077b19b2860b0fec",
    awsStandard: "54b4d01e6debe799",
    awsAdaptive: "54b4d01e6debe799",
    finagle: "3907346dfd383693",
    envoy: "5c5e3337890f3a56"
  },
  layers: {
    written: "4a07a040a2495216",
    naive: "f954d041bd15122e",
    awsStandard: "48c7798ae700e456",
    awsAdaptive: "48c7798ae700e456",
    finagle: "6fb9e3b6a7ed3205",
    envoy: "b6617b8bd0a4eb31"
  },
  "next-second": {
    written: "f860f8cdaf6d015f",
    naive: "bf64e0f8c44a55ab",
    awsStandard: "b40d1e16cf2f127a",
    awsAdaptive: "fdb2350f1061b769",
    finagle: "6a6785a51003453d",
    envoy: "8a35c2cf7c2e2bfc"
  },
  outage: {
    written: "a8c3c8b3f7f19877",
    naive: "a96b9fc01645f175",
    awsStandard: "3ddf301f9de269c5",
    awsAdaptive: "3ddf301f9de269c5",
    finagle: "85f2f591aebe1ebc",
    envoy: "be7a85331b8ca867"
  },
  "overloaded-backend": {
    written: "effb2a5f129fe291",
    naive: "ed71f202a84c00c2",
    awsStandard: "b41eace0619ab3e0",
    awsAdaptive: "b41eace0619ab3e0",
    finagle: "fc4c13900d52ff4b",
    envoy: "3ffe92ea5fb18cfb"
  },
  ramp: {
    written: "eb3ad75b6c447895",
    naive: "eb3ad75b6c447895",
    awsStandard: "3b1565c3ba5750ad",
    awsAdaptive: "3b1565c3ba5750ad",
    finagle: "a3f621b0e39f5665",
    envoy: "d3f9f318e507b711"
  },
  "serial-clients": {
    written: "0089e65d6834753a",
    naive: "f218c14add716884",
    awsStandard: "e05678e6124b2b12",
    awsAdaptive: "e05678e6124b2b12",
    finagle: "c9c682932742c6cf",
    envoy: "57ebe6c623cf3105"
  },
  spike: {
    written: "deae520f0efae0b5",
    naive: "deae520f0efae0b5",
    awsStandard: "5cb9dfb7b9db8d5c",
    awsAdaptive: "5cb9dfb7b9db8d5c",
    finagle: "9c30dce0b9c5ada3",
    envoy: "5ce91054ce490418"
  },
  "steady-failures": {
    written: "f72b1f604b6cc3ef",
    naive: "7b331be39a174caf",
    awsStandard: "a5db55c1f46cf554",
    awsAdaptive: "a5db55c1f46cf554",
    finagle: "bc1c3d3409db4cd2",
    envoy: "c058bfa7bc6829e3"
  },
  "token-buckets": {
    written: "fc38c0cb55314d36",
    naive: "f8e59bf4cc80573f",
    awsStandard: "921e5b9ee614b24f",
    awsAdaptive: "921e5b9ee614b24f",
    finagle: "526dcad67876bafb",
    envoy: "32e3f2ca6ad6c46c"
  },
  brownout: {
    written: "ed89ba5c48cccf31",
    naive: "27d71d8fbf9d1a80"
  },
  straggler: {
    written: "4b1faee5fde95113",
    naive: "8a6a5aa370111bfe"
  },
  "noisy-neighbor": {
    written: "a5b39fdc8998b0c5",
    naive: "18946775d5ea2de9",
    awsStandard: "e584e861be498e65"
  },
  "cool-down-herd": {
    written: "cadc5c86b5aa2499",
    naive: "cb1e0f2c2b4d8a89",
    awsStandard: "5e06430d6779ca5c"
  },
  "two-fleets": {
    written: "89639d1884d32d96",
    naive: "fc8b803822856c67",
    awsStandard: "831cca8bbd566134"
  },
  "thin-fleet": {
    written: "9e4e176db8dbb706",
    awsStandard: "af099bb6eb0bda88"
  },
  "near-the-timeout": {
    written: "93bb3dd305fdf8bb",
    awsStandard: "7ebcf8b0e84546b9"
  },
  "broken-instance": {
    written: "c499acf393592a3c",
    awsStandard: "c499acf393592a3c"
  },
  "load-shedding": {
    written: "5a67a15936603dea",
    awsStandard: "dc5b1d9f735d31bc"
  }
}
