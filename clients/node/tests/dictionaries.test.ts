/** Dictionaries of clients of ioredis: given, in the catalogue, learned, missing. */

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import IORedis, { Cluster } from "ioredis";

import { Codec, compress, Dictionary, inspect, statistics, UndecodableError, type CompressionOptions } from "../src";
import { cluster, command, until, valkey, type Server } from "./servers";
import { SAMPLES, user, USERS } from "./users";

/** Refresh of the tests: what has been published is used after this many seconds. */
const REFRESH = 0.2;

describe("dictionaries", () => {
  let server: Server;
  let dictionary: Dictionary;
  let folder: string;
  const clients: { disconnect(): void }[] = [];

  function open(options: CompressionOptions, port = server.port): IORedis {
    return compress(bare(port), { dictionaryRefresh: REFRESH, ...options });
  }

  function bare(port = server.port): IORedis {
    const client = new IORedis(port);
    clients.push(client);
    return client;
  }

  before(async () => {
    server = await valkey();
    dictionary = await Dictionary.train(SAMPLES);
    folder = mkdtempSync(join(tmpdir(), "snugly-node-"));
  });

  after(() => {
    for (const client of clients) {
      client.disconnect();
    }
    rmSync(folder, { recursive: true, force: true });
  });

  for (const [backend, number] of [
    ["zstd", 0x81],
    ["lz4", 0x82],
  ] as const) {
    it(`that are given are written with ${backend}, published, and found by readers`, async () => {
      const path = join(folder, "users.zdict");
      writeFileSync(path, dictionary.bytes);
      const writer = open({ backend, dictionary: path });
      const looker = bare();
      // It is written with once it can be found.
      await until(async () => {
        await writer.set(`given:${backend}`, user(7));
        return inspect((await looker.getBuffer(`given:${backend}`)) ?? Buffer.of())?.backend === number;
      });
      const reader = open({});
      assert.equal(await reader.get(`given:${backend}`), user(7));
      assert.equal(statistics(reader).dictionaries_fetched, 1);
      assert.deepEqual(await reader.mget(`given:${backend}`, "nothing"), [user(7), null]);
    });
  }

  it("are learned, published, and used by others", async () => {
    const { port } = await valkey();
    const [learner, other, looker] = [open({ dictionary: "auto" }, port), open({ dictionary: "catalogue" }, port), bare(port)];
    await until(async () => {
      await Promise.all(USERS.map((each, number) => learner.set(`user:${number}`, each)));
      return (statistics(learner).dictionaries_published ?? 0) > 0;
    });
    await until(async () => {
      await other.set("user:other", user(1));
      return inspect((await looker.getBuffer("user:other")) ?? Buffer.of())?.dictionary !== undefined;
    });
    assert.equal(await open({}, port).get("user:other"), user(1));
  });

  it("are put back after FLUSHALL when the connection comes back", async () => {
    const { port } = await valkey();
    const [writer, looker] = [open({ dictionary }, port), bare(port)];
    await until(async () => {
      await writer.set("user", user(1));
      return (await looker.exists(`{snugly}:dict:${dictionary.id}`)) === 1;
    });
    await looker.flushall();
    await looker.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await until(async () => (await looker.exists(`{snugly}:dict:${dictionary.id}`)) === 1);
  });

  it("are put back by a writer that ends", async () => {
    const { port } = await valkey();
    const [writer, looker] = [open({ dictionary, dictionaryRefresh: 60 }, port), bare(port)];
    await until(async () => {
      await writer.set("user", user(1));
      return (await looker.dbsize()) > 1;
    });
    await looker.flushall();
    await writer.quit();
    await until(async () => (await looker.exists(`{snugly}:dict:${dictionary.id}`)) === 1);
  });

  it("are kept as copies in a folder, where they are found when the server has none", async () => {
    const copies = mkdtempSync(join(tmpdir(), "snugly-node-"));
    const { port } = await valkey();
    const [writer, looker] = [open({ dictionary, dictionaryFolder: copies }, port), bare(port)];
    await until(async () => {
      await writer.set("user", user(1));
      return inspect((await looker.getBuffer("user")) ?? Buffer.of())?.dictionary === dictionary.id;
    });
    await open({ dictionary: "catalogue", dictionaryFolder: copies }, port).get("user");
    await until(() => readdirSync(copies).length === 1);
    const stored = await looker.getBuffer("user");
    const { port: empty } = await valkey();
    await bare(empty).set("user", stored ?? "");
    assert.equal(await open({ dictionary: "catalogue", dictionaryFolder: copies }, empty).get("user"), user(1));
    rmSync(copies, { recursive: true });
  });

  it("that are missing are an error which names the key, looked for together", async () => {
    const { port } = await valkey();
    const stored = encodedBy(dictionary);
    const looker = bare(port);
    const keys = Array.from({ length: 50 }, (_, number) => `key:${number}`);
    await looker.mset(keys.flatMap((key) => [key, stored]));
    const reader = open({}, port);
    const connections = Number(/clients:(\d+)/.exec(await looker.info("clients"))?.[1]);
    const results = await Promise.allSettled(keys.map((key) => reader.get(key)));
    for (const result of results) {
      assert.ok(result.status === "rejected" && result.reason instanceof UndecodableError);
      assert.equal(result.reason.kind, "dictionary_missing");
      assert.match(result.reason.message, /at key "key:\d+"/);
    }
    assert.ok(Number(/clients:(\d+)/.exec(await looker.info("clients"))?.[1]) <= connections + 2);
    const missing = await open({ onUndecodable: "miss", onWarning: () => undefined }, port).mget("key:1", "nothing");
    assert.deepEqual(missing, [null, null]);
  });

  it("that may not be read are an error which says so", async () => {
    const { port } = await valkey();
    await bare(port).set("key", encodedBy(dictionary));
    await command(port, "ACL", "SETUSER", "reader", "on", ">secret", "+@all", "~key");
    const warnings: string[] = [];
    const client = new IORedis(port, { username: "reader", password: "secret" });
    clients.push(client);
    const reader = compress(client, { dictionary: "catalogue", onWarning: (text) => warnings.push(text) });
    await assert.rejects(reader.get("key"), /the keys \{snugly\}:\* may not be read/);
    assert.equal(warnings.length, 1);
  });

  it("are learned and found in a cluster", async () => {
    const nodes = await cluster();
    const start = nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
    const [learner, reader] = [new Cluster(start), new Cluster(start)];
    clients.push(learner, reader);
    compress(learner, { dictionary: "auto", dictionaryRefresh: REFRESH });
    compress(reader);
    await until(async () => {
      await Promise.all(USERS.map((each, number) => learner.set(`user:${number}`, each)));
      return (statistics(learner).encoded_values_zstd_dictionary ?? 0) > 0;
    });
    const values = await Promise.all(USERS.map((_, number) => reader.get(`user:${number}`)));
    assert.deepEqual(values, USERS);
    assert.ok((statistics(reader).dictionaries_fetched ?? 0) > 0);
  });
});

/** Returns an envelope whose dictionary is in no server. */
function encodedBy(dictionary: Dictionary): Buffer {
  return new Codec({ dictionary }).encode(user(1));
}
