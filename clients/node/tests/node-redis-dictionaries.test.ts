/** Dictionaries of clients of node-redis: clients, pools and clusters. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { createClient, createClientPool, createCluster, RESP_TYPES } from "redis";

import { compress, Dictionary, inspect, statistics, type CompressionOptions } from "../src";
import { cluster, until, valkey } from "./servers";
import { SAMPLES, user, USERS } from "./users";

describe("dictionaries of node-redis", () => {
  let port: number;
  let dictionary: Dictionary;
  const closers: (() => unknown)[] = [];

  async function open(options: CompressionOptions, at = port) {
    const client = compress(createClient({ socket: { port: at } }), { dictionaryRefresh: 0.2, ...options });
    await client.connect();
    closers.push(() => {
      client.destroy();
    });
    return client;
  }

  before(async () => {
    ({ port } = await valkey());
    dictionary = await Dictionary.train(SAMPLES);
  });

  after(async () => {
    await Promise.all(closers.map((close) => close()));
  });

  it("that are given are published, written with, and found by readers, also in a pool", async () => {
    const writer = await open({ backend: "lz4", dictionary });
    const looker = createClient({ socket: { port } });
    await looker.connect();
    closers.push(() => {
      looker.destroy();
    });
    const stored = looker.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    await until(async () => {
      await writer.set("user", user(1));
      return inspect((await stored.get("user")) ?? Buffer.of())?.dictionary === dictionary.id;
    });
    const reader = await open({});
    assert.equal(await reader.get("user"), user(1));
    assert.deepEqual(await reader.multi().get("user").mGet(["user", "nothing"]).exec(), [user(1), [user(1), null]]);
    const pool = compress(createClientPool({ socket: { port } }, { minimum: 2, maximum: 2 }));
    await pool.connect();
    assert.equal(await pool.get("user"), user(1));
    assert.equal(statistics(pool).dictionaries_fetched, 1);
    await pool.close();
  });

  it("are put back by a writer that ends", async () => {
    const server = await valkey();
    const writer = await open({ dictionary, dictionaryRefresh: 60 }, server.port);
    const looker = createClient({ socket: { port: server.port } });
    await looker.connect();
    closers.push(() => {
      looker.destroy();
    });
    await until(async () => {
      await writer.set("user", user(1));
      return (await looker.dbSize()) > 1;
    });
    await looker.flushAll();
    await writer.close();
    await until(async () => (await looker.exists(`{snugly}:dict:${dictionary.id}`)) === 1);
  });

  it("are learned and found in a cluster", async () => {
    const nodes = await cluster();
    const rootNodes = nodes.map((node) => ({ socket: { host: "127.0.0.1", port: node.port } }));
    const [learner, reader] = [createCluster({ rootNodes }), createCluster({ rootNodes })];
    compress(learner, { dictionary: "auto", dictionaryRefresh: 0.2 });
    compress(reader);
    await Promise.all([learner.connect(), reader.connect()]);
    closers.push(() => learner.close(), () => reader.close());
    await until(async () => {
      await Promise.all(USERS.map((each, number) => learner.set(`user:${number}`, each)));
      return (statistics(learner).encoded_values_zstd_dictionary ?? 0) > 0;
    });
    const values = await Promise.all(USERS.map((_, number) => reader.get(`user:${number}`)));
    assert.deepEqual(values, USERS);
    assert.ok((statistics(reader).dictionaries_fetched ?? 0) > 0);
  });
});
