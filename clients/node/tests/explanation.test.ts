/** Explanations of how a key's values are written. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import IORedis from "ioredis";

import { compress, ConfigurationError, explain, type CompressionOptions } from "../src";
import { until, valkey } from "./servers";

describe("an explanation", () => {
  const clients: IORedis[] = [];
  let port: number;

  function open(options: CompressionOptions): IORedis {
    const client = new IORedis(port);
    clients.push(client);
    return compress(client, options);
  }

  before(async () => {
    ({ port } = await valkey());
  });

  after(() => {
    for (const client of clients) {
      client.disconnect();
    }
  });

  it("is of the configuration where that decides", () => {
    const client = open({ exclude: ["lock:*"], backend: "lz4" });
    assert.equal(explain(client, "page").why, "lz4: the configuration says so");
    assert.deepEqual([explain(client, "page").codec, explain(client, "page").level], ["lz4", 0]);
    assert.equal(explain(client, "lock:1").why, "none: the configuration excludes such keys");
    assert.match(explain(client, "page", "short").why, /shorter than 64 bytes/);
    assert.equal(explain(open({ compressionLevel: 9 }), Buffer.from("page")).level, 9);
  });

  it("is of what was measured where the client chooses", async () => {
    const client = open({ backend: "auto", goal: "memory" });
    assert.match(explain(client, "page:1").why, /nothing is decided for such keys yet/);
    const pages = Array.from({ length: 400 }, (_, number) => `<html><p>page ${number}</p></html>`.repeat(20));
    await until(async () => {
      await Promise.all(pages.map((page, number) => client.set(`page:${number}`, page)));
      return explain(client, "page:1").decidedAt !== undefined;
    });
    const { codec, goal, measured, pattern, why } = explain(client, "page:1");
    assert.deepEqual([codec, goal, pattern], ["zstd", "memory", "page:*"]);
    assert.ok(measured.length > 2);
    assert.match(why, /^zstd at level .* values of "page:\*", each takes \d+% of its size/);
  });

  it("says that values of excluded keys are not looked at", () => {
    const client = open({ backend: "auto", dictionary: "auto", dictionaryExclude: ["token:*"] });
    assert.match(explain(client, "token:1").why, /^zstd: the configuration excludes such keys/);
  });

  it("is refused for a client that does not compress", () => {
    const client = new IORedis(port, { lazyConnect: true });
    assert.throws(() => explain(client, "key"), ConfigurationError);
  });
});
