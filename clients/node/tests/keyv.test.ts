/** Keyv 5 and 6 and cache-manager, with the adapter for their option and with clients that compress. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { before, describe, it } from "node:test";

import KeyvRedis, { createClient } from "@keyv/redis";
import KeyvValkey from "@keyv/valkey";
import { createCache } from "cache-manager";
import IORedis from "ioredis";
import { Keyv as Keyv5 } from "keyv";
import { Keyv as Keyv6 } from "keyv6";

import { compress, Dictionary, encode, statistics, type CompressionOptions } from "../src";
import { compression } from "../src/keyv";
import { valkey } from "./servers";

const PAGE = "<p>héllo</p>".repeat(200);

/** Texts as the adapter makes them, and bytes as the codec does. */
const MADE = `snugly:t${encode(PAGE).toString("base64")}`;
const VALUES: unknown[] = [
  PAGE,
  "",
  "short",
  `half a pair \ud800 ${PAGE}`,
  MADE,
  MADE.repeat(5),
  `snugly:=${MADE}`,
  encode(PAGE).toString("latin1"),
  { page: PAGE, tags: [PAGE, ":text", ":base64:text", ":"], size: 1, isNew: true, author: null },
  [PAGE, PAGE],
  { bytes: Buffer.from(PAGE) },
  Buffer.from(PAGE),
  randomBytes(1000).toString("base64"),
  "x".repeat(200_000),
  1,
  false,
  null,
];

describe("the adapter for Keyv", () => {
  for (const [name, Keyv] of [
    ["5", Keyv5],
    ["6", Keyv6 as unknown as typeof Keyv5],
  ] as const) {
    it(`of version ${name} returns every value as it was, and stores less`, async () => {
      const [store, plainStore] = [new Map<string, string>(), new Map<string, string>()];
      const cache = new Keyv({ store, compression: compression() });
      const plain = new Keyv({ store: plainStore });
      for (const value of VALUES) {
        await cache.set("key", value);
        await plain.set("key", value);
        assert.deepEqual(await cache.get("key"), value);
        assert.ok(stored(store).length <= stored(plainStore).length * 1.5 + 100);
      }
      await cache.set("key", PAGE);
      assert.ok(stored(store).length < PAGE.length / 5);
    });

    it(`of version ${name} returns what was stored without it`, async () => {
      const store = new Map<string, string>();
      for (const value of [PAGE, { page: PAGE }, "short", 1]) {
        await new Keyv({ store }).set("key", value);
        assert.deepEqual(await new Keyv({ store, compression: compression() }).get("key"), value);
      }
    });

    it(`of version ${name} makes a miss of what cannot be read, with a warning`, async () => {
      const store = new Map<string, string>();
      const dictionary = await trained();
      await new Keyv({ store, compression: compression({ dictionary }) }).set("key", PAGE);
      const warnings: string[] = [];
      const reader = compression({ onWarning: (text) => warnings.push(text) });
      assert.equal(await new Keyv({ store, compression: reader }).get("key"), undefined);
      assert.equal(warnings.length, 1);
      assert.equal(await new Keyv({ store, compression: compression({ dictionary }) }).get("key"), PAGE);
    });
  }

  it("refuses settings that only clients have", () => {
    for (const options of [{ backend: "auto" }, { exclude: ["a"] }] satisfies CompressionOptions[]) {
      assert.throws(() => compression(options), { name: "ConfigurationError" });
    }
  });

  it("raises errors and returns what is stored if it is told so", async () => {
    const stored = await compression({ dictionary: await trained() }).compress(PAGE);
    await assert.rejects(compression({ onUndecodable: "raise" }).decompress(stored), { name: "UndecodableError" });
    assert.equal(await compression({ onUndecodable: "raw" }).decompress(stored), stored);
  });

  it("leaves alone what only looks like its texts", async () => {
    for (const text of ["snugly:", "snugly:t", "snugly:text", "snugly:jAAEC", "snugly:xAAECAAE="]) {
      assert.equal(await compression().decompress(text), text);
    }
    assert.equal(await compression().decompress(undefined), undefined);
  });
});

describe("cache-manager", () => {
  let port: number;

  before(async () => {
    ({ port } = await valkey());
  });

  for (const [name, makeStore] of [
    ["@keyv/redis", () => new KeyvRedis(`redis://127.0.0.1:${port}`)],
    ["@keyv/valkey", () => new KeyvValkey(`redis://127.0.0.1:${port}`)],
  ] as const) {
    it(`compresses in a Keyv over ${name}`, async () => {
      const store = new Keyv5({ store: makeStore(), namespace: name, compression: compression() });
      const cache = createCache({ stores: [store] });
      await useCache(cache);
      const looker = new IORedis(port);
      const [key = ""] = await looker.keys(`*${name}*page:1`);
      assert.ok((await looker.strlen(key)) < PAGE.length / 5);
      looker.disconnect();
      await cache.disconnect();
    });
  }

  it("compresses with a client of node-redis that does, given to @keyv/redis", async () => {
    const client = compress(createClient({ url: `redis://127.0.0.1:${port}` }), { existingEnvelopes: "wrap" });
    const cache = createCache({ stores: [new Keyv5({ store: new KeyvRedis(client), namespace: "client" })] });
    await useCache(cache);
    const counted = statistics(client);
    assert.ok((counted.encoded_values_zstd ?? 0) >= 2 && (counted.decoded_values_zstd ?? 0) >= 2);
    await cache.disconnect();
  });

  async function useCache(cache: ReturnType<typeof createCache>): Promise<void> {
    const profile = { page: PAGE, bytes: Buffer.from(PAGE) };
    await cache.set("page:1", PAGE);
    await cache.set("profile:1", profile, 60_000);
    assert.equal(await cache.get("page:1"), PAGE);
    assert.deepEqual(await cache.mget(["page:1", "profile:1", "nothing"]), [PAGE, profile, undefined]);
    assert.deepEqual(await cache.wrap("made", () => profile), profile);
    assert.deepEqual(await cache.wrap("made", () => assert.fail("it is cached")), profile);
    await cache.del("made");
    assert.equal(await cache.get("made"), undefined);
    assert.equal(await cache.get("nothing"), undefined);
  }
});

async function trained(): Promise<Dictionary> {
  return Dictionary.train(Array.from({ length: 500 }, (_, at) => Buffer.from(`<p>héllo</p> the page number ${at}`)));
}

function stored(store: Map<string, string>): string {
  return JSON.stringify([...store.values()]);
}
