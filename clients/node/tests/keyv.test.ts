/** Keyv and cache-manager: values compressed by Keyv's own option, and by the client of its store. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import KeyvRedis, { createClient } from "@keyv/redis";
import { createCache } from "cache-manager";
import { Keyv } from "keyv";

import { compress, ConfigurationError, encode, inspect, statistics } from "../src";
import { compression } from "../src/keyv";
import { valkey } from "./servers";

const PAGE = "<html>é</html>".repeat(200);
const RECORD = { name: "Ada", roles: ["reader", "writer"], text: "again and again ".repeat(50) };

describe("a Keyv that compresses", () => {
  const stored = new Map<string, string>();
  const cache = new Keyv({ store: stored, compression: compression({ backend: "lz4" }), namespace: "" });

  it("stores less than it is given, and returns values of each kind", async () => {
    for (const value of [PAGE, Buffer.from(PAGE), RECORD, "", 7, false, [1, 2]]) {
      await cache.set("key", value);
      assert.deepEqual(await cache.get("key"), value);
    }
    await cache.set("page", PAGE);
    assert.ok([...stored.values()].some((text) => text.length > 20 && text.length < PAGE.length / 4));
  });

  it("returns what looks like an envelope as it was", async () => {
    const envelope = encode(PAGE);
    assert.notEqual(inspect(envelope), undefined);
    await cache.set("key", envelope);
    assert.deepEqual(await cache.get("key"), envelope);
  });

  it("has nothing where a value cannot be read", async () => {
    const broken = compression({ onWarning: () => undefined });
    const value = await broken.compress(PAGE);
    value[value.length - 3] = (value[value.length - 3] ?? 0) ^ 0xff;
    value[12] = 0xff;
    assert.equal(await broken.decompress(value), undefined);
  });

  it("reads what a Keyv without compression has written", async () => {
    await new Keyv({ store: stored, namespace: "" }).set("plain", RECORD);
    assert.deepEqual(await cache.get("plain"), RECORD);
  });

  it("restores large values", async () => {
    const large = PAGE.repeat(100);
    await cache.set("large", large);
    assert.equal(await cache.get("large"), large);
  });

  it("refuses settings of clients", () => {
    assert.throws(() => compression({ dictionary: "auto" }), ConfigurationError);
  });
});

describe("cache-manager", () => {
  let port: number;

  before(async () => {
    ({ port } = await valkey());
  });

  for (const [name, compresses] of [
    ["the client of its store", true],
    ["Keyv", false],
  ] as const) {
    it(`returns values that ${name} compresses`, async () => {
      const client = createClient({ socket: { port } });
      if (compresses) {
        compress(client);
      }
      const store = new KeyvRedis(client);
      const keyv = new Keyv({ store, namespace: name, ...(!compresses && { compression: compression() }) });
      const cache = createCache({ stores: [keyv], ttl: 60_000 });
      after(() => cache.disconnect());
      await cache.set("record", RECORD);
      assert.deepEqual(await cache.get("record"), RECORD);
      assert.deepEqual(await cache.wrap("page", () => PAGE), PAGE);
      assert.deepEqual(await cache.wrap("page", () => "made anew"), PAGE);
      assert.equal(await cache.get("nothing"), undefined);
      if (compresses) {
        assert.ok((statistics(client).encoded_values_zstd ?? 0) >= 2);
      }
      assert.equal(await cache.del("record"), true);
      assert.equal(await cache.get("record"), undefined);
    });
  }
});
