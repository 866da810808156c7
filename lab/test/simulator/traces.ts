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
    finagle: "b5d17a15a61d0a9c",
    envoy: "3c73f1bf7713b57b"
  },
  "client-throttling": {
    written: "13b310f3b9268f0f"
  },
  "finagle-budget": {
    written: "bb6a4f2e135c8698",
    naive: "077b19b2860b0fec",
    awsStandard: "54b4d01e6debe799",
    awsAdaptive: "54b4d01e6debe799",
    finagle: "5eb9a65c96ff2b9a",
    envoy: "5c5e3337890f3a56"
  },
  layers: {
    written: "4a07a040a2495216",
    naive: "f954d041bd15122e",
    awsStandard: "48c7798ae700e456",
    awsAdaptive: "48c7798ae700e456",
    finagle: "093fad503c079771",
    envoy: "b6617b8bd0a4eb31"
  },
  "next-second": {
    written: "f860f8cdaf6d015f",
    naive: "bf64e0f8c44a55ab",
    awsStandard: "b40d1e16cf2f127a",
    awsAdaptive: "fdb2350f1061b769",
    finagle: "6a6785a51003453d",
    envoy: "82a79cdefaaf46a9"
  },
  outage: {
    written: "a8c3c8b3f7f19877",
    naive: "a96b9fc01645f175",
    awsStandard: "3ddf301f9de269c5",
    awsAdaptive: "3ddf301f9de269c5",
    finagle: "f84ec1caeda07709",
    envoy: "28405b288d649c3a"
  },
  "overloaded-backend": {
    written: "effb2a5f129fe291",
    naive: "ed71f202a84c00c2",
    awsStandard: "b41eace0619ab3e0",
    awsAdaptive: "b41eace0619ab3e0",
    finagle: "e0b2fa70a14ddc6e",
    envoy: "37bf0c7f29dc46dd"
  },
  ramp: {
    written: "eb3ad75b6c447895",
    naive: "eb3ad75b6c447895",
    awsStandard: "3b1565c3ba5750ad",
    awsAdaptive: "3b1565c3ba5750ad",
    finagle: "72dc102fa19b2c89",
    envoy: "5621e0753b69370a"
  },
  "serial-clients": {
    written: "0089e65d6834753a",
    naive: "f218c14add716884",
    awsStandard: "e05678e6124b2b12",
    awsAdaptive: "e05678e6124b2b12",
    finagle: "ddb25a501c075cba",
    envoy: "0f717855a9756a17"
  },
  spike: {
    written: "deae520f0efae0b5",
    naive: "deae520f0efae0b5",
    awsStandard: "5cb9dfb7b9db8d5c",
    awsAdaptive: "5cb9dfb7b9db8d5c",
    finagle: "9c30dce0b9c5ada3",
    envoy: "de3411f024f213bb"
  },
  "steady-failures": {
    written: "f72b1f604b6cc3ef",
    naive: "7b331be39a174caf",
    awsStandard: "a5db55c1f46cf554",
    awsAdaptive: "a5db55c1f46cf554",
    finagle: "48e17578b16cc554",
    envoy: "c058bfa7bc6829e3"
  },
  "token-buckets": {
    written: "fc38c0cb55314d36",
    naive: "f8e59bf4cc80573f",
    awsStandard: "921e5b9ee614b24f",
    awsAdaptive: "921e5b9ee614b24f",
    finagle: "526dcad67876bafb",
    envoy: "2729fd3d4af36000"
  }
}
