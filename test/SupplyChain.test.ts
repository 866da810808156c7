import { assert, describe, expect, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  awsStandard,
  Backoff,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { timedOut } from "../src/http/timeout.ts"
import { clientOf } from "./reliability/utils/http.ts"
import { dynamo, getItem, played, throttle } from "./utils/awsSdk.ts"
import { FakeRedis } from "./utils/fakeRedis.ts"
import { renderings, told } from "./utils/told.ts"

const root = new URL("../", import.meta.url)
const manifest = JSON.parse(fs.readFileSync(new URL("package.json", root), "utf8"))

describe("the package", () => {
  it("runs nothing when it is installed", () => {
    const scripts = Object.keys(manifest.scripts)
    for (const hook of ["preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare"]) {
      assert.notInclude(scripts, hook)
    }
    assert.isFalse(fs.existsSync(new URL("binding.gyp", root)))
  })

  it("brings nothing along: effect is a peer, and there is no other dependency at run time", () => {
    for (const kind of ["dependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"]) {
      assert.deepStrictEqual(Object.keys(manifest[kind] ?? {}), [], kind)
    }
    const { effect, ...others } = manifest.peerDependencies
    assert.isString(effect)
    for (const name of Object.keys(others)) assert.isTrue(manifest.peerDependenciesMeta?.[name]?.optional, name)
  })

  it("is locked: each package of the lock file has its hash", () => {
    const { packages } = JSON.parse(fs.readFileSync(new URL("package-lock.json", root), "utf8"))
    const without = Object.entries<Record<string, unknown>>(packages).filter(
      // npm leaves out the hashes of optional packages for other systems than the one it runs on.
      ([path, entry]) => path !== "" && entry["optional"] !== true && entry["integrity"] === undefined
    )
    assert.deepStrictEqual(without.map(([path]) => path), [])
  })

  it("holds sources, what is built of them, and nothing else", async () => {
    const json = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    })
    const answer: unknown = JSON.parse(json)
    const [packed] = Object.values(
      answer as Record<string, { readonly files: ReadonlyArray<{ readonly path: string }> }>
    )
    const paths = packed!.files.map(({ path }) => path)
    // What `npm run build` makes is there for each source, or not at all.
    // The command line is one file, and its sources stay here.
    const bundle = ["bin", "bin.licenses.txt"]
    assert.isEmpty(paths.filter((path) => path.startsWith("src/cli/")))
    const sources = new Set(paths.filter((path) => path.startsWith("src/")).map((path) => path.slice(4, -3)))
    for (const name of bundle) sources.add(name)
    for (const path of paths.filter((path) => path.startsWith("dist/"))) {
      assert.isTrue(sources.has(path.slice(5).replace(/(\.d\.ts|\.js)(\.map)?$/, "")), path)
    }
    const kinds = paths.filter((path) => !path.startsWith("dist/")).map((path) =>
      path.replace(/^src\/.*\.ts$/, "src/**/*.ts").replace(
        /^examples\/scenarios\/.*\.json$/,
        "examples/scenarios/*.json"
      )
    )
    await expect(`${[...new Set(kinds)].sort().join("\n")}\n`).toMatchFileSnapshot("snapshots/package-content.txt")
  })

  it("exports these names, and no others", async () => {
    const files = ["src", "src/aws"].flatMap((folder) =>
      fs.readdirSync(new URL(folder, root)).filter((name) => name.endsWith(".ts")).map((name) => `${folder}/${name}`)
    )
    const lines: Array<string> = []
    for (const file of files.sort()) {
      const exported: object = await import(new URL(file, root).href)
      lines.push(`${file.slice(4, -3)}: ${Object.keys(exported).sort().join(" ")}`)
    }
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("snapshots/exports.txt")
  })
})

const secret = "s3cr3t-planted"

describe("secrets that are planted in requests and answers", () => {
  const request = HttpClientRequest.post(`https://${secret}:${secret}@host:8443/path?token=${secret}#${secret}`).pipe(
    HttpClientRequest.setUrlParam("key", secret),
    HttpClientRequest.setHash(secret),
    HttpClientRequest.setHeader("authorization", `Bearer ${secret}`),
    HttpClientRequest.setHeader("idempotency-key", secret),
    HttpClientRequest.bodyText(secret)
  )
  const answers = [
    { status: 503, headers: { "set-cookie": secret, "retry-after": secret }, body: secret },
    { error: Object.assign(new Error(secret), { code: "ECONNRESET", url: `https://host/?token=${secret}` }) },
    { status: 429, headers: { "x-request-id": secret }, body: secret },
    { status: 503, headers: { location: `https://host/?token=${secret}` }, body: secret }
  ] as const
  const policy = Backoff.fixed({ delay: 10 }).pipe(
    RetryPolicy.maxAttempts(5),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5 })
  )

  const http = (answers: Parameters<typeof clientOf>[0], sent = request) => {
    const { client, times } = clientOf(answers)
    const call = RetryHttp.retry(client, policy, { attemptTimeout: "1 second" }).execute(sent)
    // Effect's own spans of requests are not ours.
    const heard = Effect.provideService(told(Kit.runToEnd(call)), HttpClient.TracerDisabledWhen, () => true)
    return { heard, times }
  }

  it.effect("get into no log or span of RetryHttp", () =>
    Effect.gen(function*() {
      const { heard, times } = http(answers)
      const { exit, spans, text } = yield* heard
      assert.strictEqual(times.length, 5)
      assert.isAtLeast(spans, 1)
      assert.isTrue(Exit.isSuccess(exit))
      assert.include(text, "retry.stopped")
      assert.notInclude(text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("get into no error of an attempt that takes too long: it tells the method and the place", () =>
    Effect.gen(function*() {
      const { heard, times } = http([...answers, "never"])
      const { exit, text } = yield* heard
      assert.strictEqual(times.length, 5)
      const error: unknown = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
      assert.strictEqual(
        String(error),
        "HttpClientError: Transport: no response within 1s (POST https://host:8443/path)"
      )
      assert.notInclude(text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  const addresses: ReadonlyArray<readonly [string, string]> = [
    [`https://host/a/b?${secret}`, "https://host/a/b"],
    [`https://${secret}@host`, "https://host/"],
    [`http://user:${secret}@[::1]:80/a#${secret}`, "http://[::1]/a"],
    [`https:user:${secret}@host/a`, "https://host/a"],
    [`/a/b?${secret}`, "/a/b"],
    [`a?${secret}`, "/a"],
    [`//user:${secret}@host/a`, "/a"],
    [`user:${secret}@host/a`, ""],
    [`data:text/plain,${secret}`, ""],
    [`https://user:${secret}@host:99999/a`, ""],
    [`?${secret}`, "/"]
  ]
  for (const [address, place] of addresses) {
    it(`get into no error of a time-out: of ${address} it tells ${JSON.stringify(place)}`, () => {
      const error = timedOut(HttpClientRequest.setUrl(request, address), 1000)
      assert.strictEqual(error.message, `Transport: no response within 1s (POST ${place})`)
      assert.notInclude(renderings(error), secret)
    })
  }

  it.effect("get into no log or span of a request whose body is a stream", () =>
    Effect.gen(function*() {
      const body = HttpBody.stream(Stream.make(new TextEncoder().encode(secret)))
      const { heard, times } = http(answers, HttpClientRequest.setBody(request, body))
      const { text } = yield* heard
      assert.strictEqual(times.length, 1)
      assert.include(text, "The request is not sent again")
      assert.include(text, "http.request.body.one_shot")
      assert.notInclude(text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("get into no log or span of attempt, nor with the observer's own events", () =>
    Effect.gen(function*() {
      const tokens: Array<string> = []
      const observer = RetryObserver.combine(RetryObserver.spanEvents, {
        onRetry: (token) => tokens.push(JSON.stringify(token)),
        onStop: (stopped) => tokens.push(JSON.stringify(stopped))
      })
      const failure = Object.assign(new Error(secret), {
        status: 503,
        headers: { "retry-after": secret },
        body: secret
      })
      const call = Effect.retry(attempt(Effect.fail(failure)), policy)
      const { text } = yield* told(
        Kit.runToEnd(Effect.provide(call, RetryObserver.layer(observer))),
        new Set([failure])
      )
      assert.strictEqual(tokens.length, 5)
      assert.notInclude(text + tokens.join(), secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("get into no log or span of AwsSdk", () =>
    Effect.gen(function*() {
      const { client, requests } = dynamo(
        [{ ...throttle, headers: { "x-amz-retry-after": secret, "x-secret": secret } }],
        { credentials: { accessKeyId: secret, secretAccessKey: secret, sessionToken: secret } }
      )
      const call = played(withRetry(AwsSdk.send(client, getItem()), awsStandard))
      const { text } = yield* told(Effect.exit(call))
      assert.strictEqual(requests.length, 3)
      assert.include(text, "retry")
      assert.notInclude(text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  class SocketClosedUnexpectedlyError extends Error {}
  const coded = (code: string) => Object.assign(new Error(secret), { code, address: secret, input: secret })
  const named = (name: string) => Object.assign(new Error(secret), { name })
  const address = `redis://user:pa/${secret}@redis.internal:6379/0?password=${secret}`
  const reasons: ReadonlyArray<readonly [shown: string, cause: unknown]> = [
    [
      "ERR unknown command 'HELLO'",
      new Error(`ERR unknown command 'HELLO', with args beginning with: '3' '${secret}'`)
    ],
    ["ERR unknown command 'AUTH'", new Error(`ERR unknown command \`AUTH\`, with args beginning with: \`${secret}\``)],
    ["ERR", new Error(`ERR unknown command '${secret}', with args beginning with: `)],
    [
      "ERR Error running script",
      new Error(`ERR Error running script (call to f_${secret}): @user_script:1: ${secret}`)
    ],
    ["ERR", new Error(`ERR invalid password ${secret}`.replace("password ", "password-"))],
    ["WRONGPASS", new Error(`WRONGPASS invalid username-password pair or user is disabled: ${secret}`)],
    ["NOAUTH", new Error(`NOAUTH ${secret}`)],
    ["NOPERM", new Error(`NOPERM No permissions to access a key: ${secret}`)],
    ["MOVED", new Error(`MOVED 3999 ${secret}:6381`)],
    ["READONLY", new Error("READONLY You can't write against a read only replica.")],
    ["OOM", new Error("an outer one", { cause: new Error("OOM") })],
    ["NOAUTH", new Error("NOAUTH", { cause: secret })],
    ["ECONNREFUSED", Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: "ECONNREFUSED" })],
    ["ENOTFOUND", coded("ENOTFOUND")],
    ["ERR_INVALID_URL", coded("ERR_INVALID_URL")],
    ["SELF_SIGNED_CERT_IN_CHAIN", coded("SELF_SIGNED_CERT_IN_CHAIN")],
    ["ECONNRESET", new AggregateError([coded("ECONNRESET")], secret, { cause: coded("ECONNRESET") })],
    ["SocketClosedUnexpectedlyError", new SocketClosedUnexpectedlyError(secret)],
    ["MaxRetriesPerRequestError", named("MaxRetriesPerRequestError")],
    ["RedisError", named(secret)],
    ["RedisError", coded(secret)],
    ["RedisError", new Error(address)],
    ["RedisError", new Error(`ERR${secret}`)],
    ["RedisError", secret],
    ["RedisError", undefined]
  ]
  for (const [index, [shown, cause]] of reasons.entries()) {
    it.effect(`get into no log of a shared quota that Redis does not answer (${index}): ${shown}`, () =>
      Effect.gen(function*() {
        const redis = { ...new FakeRedis().service, eval: () => () => Effect.fail(new Redis.RedisError({ cause })) }
        const quota = RetryQuotaRedis.make({ name: "test" }).pipe(Effect.provideService(Redis.Redis, redis))
        const { text } = yield* told(Effect.scoped(Effect.flatMap(quota, ({ reserve }) => reserve(5))))
        assert.include(text, `Redis does not answer, the local fallback decides: ${shown}"`)
        assert.notInclude(text, secret)
      }))
  }

  it.effect("get into no log of a shared quota whose layer cannot connect", () =>
    Effect.gen(function*() {
      const redis = Layer.effect(Redis.Redis, Effect.fail({ _tag: "ConfigError", message: address, url: address }))
      const quota = RetryQuotaRedis.layerConnecting({ name: "test" }, redis)
      const call = Effect.flatMap(RetryQuota.RetryQuota, ({ reserve }) => reserve(5))
      const { text } = yield* told(Effect.provide(Effect.delay(call, "1 second"), quota).pipe(Kit.runToEnd))
      assert.include(text, "the local fallback decides: an unknown error")
      assert.notInclude(text, secret)
    }))

  it.effect("get into no error that the library itself makes", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.make({ whenExceeded: "fail" })
      yield* limiter.update(true)
      const send = attempt(Effect.fail({ message: secret }))
      const refused = yield* Effect.flip(Effect.provideService(send, AdaptiveRateLimiter.AdaptiveRateLimiter, limiter))
      const poor = yield* RetryQuota.make({ capacity: 1, initial: 0, firstAttemptCost: 1 })
      const unpaid = yield* Effect.flip(Effect.provideService(send, RetryQuota.RetryQuota, poor))
      for (const error of [refused, unpaid]) assert.notInclude(`${String(error)} ${JSON.stringify(error)}`, secret)
    }))
})
