/** Compression under Cluster of ioredis and iovalkey, also while a slot moves; and on the server of this project. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import IORedis, { Cluster } from "ioredis";
import { Cluster as Cluster5 } from "ioredis5";
import { Cluster as ValkeyCluster } from "iovalkey";

import { CommandRefusedError, compress, statistics } from "../src";
import { cluster, command, snugly, type Server } from "./servers";

const LARGE = 100_000;

/** The libraries, which are alike in what is used of them here. */
const LIBRARIES: Record<string, typeof Cluster> = {
  "ioredis 6": Cluster,
  "ioredis 5.0": Cluster5 as unknown as typeof Cluster,
  iovalkey: ValkeyCluster as unknown as typeof Cluster,
};

function page(number: number): string {
  return `<html>${number}</html>`.repeat(100);
}

describe("a cluster of", () => {
  let nodes: Server[];
  const clients: Cluster[] = [];

  before(async () => {
    nodes = await cluster();
  });

  after(() => {
    for (const client of clients) {
      client.disconnect();
    }
  });

  function open(library: typeof Cluster, enableAutoPipelining = false): Cluster {
    const start = nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
    const client = new library(start, { enableAutoPipelining });
    clients.push(client);
    return compress(client);
  }

  for (const [name, library] of Object.entries(LIBRARIES)) {
    for (const isAutomatic of [false, true]) {
      it(`${name} stores and returns values${isAutomatic ? " in automatic pipelines" : ""}`, async () => {
        const cache = open(library, isAutomatic);
        const keys = Array.from({ length: 30 }, (_, number) => `key:${number}`);
        await Promise.all(keys.map((key, number) => cache.set(key, page(number))));
        assert.deepEqual(await Promise.all(keys.map((key) => cache.get(key))), keys.map((_, number) => page(number)));
        assert.deepEqual(await cache.getBuffer("key:1"), Buffer.from(page(1)));
        await assert.rejects(cache.strlen("key:1"), CommandRefusedError);
        await cache.mset({ "{tag}a": page(1), "{tag}b": page(2) });
        assert.deepEqual(await cache.mget("{tag}a", "{tag}b", "{tag}c"), [page(1), page(2), null]);
        assert.equal(statistics(cache).encoded_values_zstd, keys.length + 2);
      });
    }

    it(`${name} works in pipelines and transactions of one slot, and in duplicates`, async () => {
      const cache = open(library);
      const piped = await cache.pipeline().set("{tag}a", page(3)).get("{tag}a").mget("{tag}a", "{tag}none").exec();
      assert.deepEqual(piped, [[null, "OK"], [null, page(3)], [null, [page(3), null]]]);
      const exec = await cache.multi().set("{tag}b", page(4)).get("{tag}b").exec();
      assert.deepEqual(exec, [[null, "OK"], [null, page(4)]]);
      const duplicate = cache.duplicate();
      clients.push(duplicate);
      assert.equal(await duplicate.get("{tag}b"), page(4));
    });

    it(`${name} keeps the order of large values`, async () => {
      const cache = open(library);
      const [first, second] = ["1".repeat(LARGE), "2".repeat(LARGE)];
      const results = [cache.set("large", first), cache.get("large"), cache.set("large", second), cache.get("large")];
      assert.deepEqual(await Promise.all(results), ["OK", first, "OK", second]);
    });

    it(`${name} encodes a value once though its slot moves`, async () => {
      const cache = open(library);
      // Its slot is asked for at the wrong node first, and then at the one to which it moves.
      const [source, target] = await owners(nodes, "moving");
      await cache.set("moving", page(5));
      await moved(source, target, "moving");
      assert.equal(await cache.set("moving", page(6)), "OK");
      assert.equal(await cache.get("moving"), page(6));
      assert.equal(statistics(cache).encoded_values_zstd, 2);
    });
  }
});

describe("the server of this project", () => {
  it("is a server like others", async () => {
    const { port } = await snugly();
    const cache = compress(new IORedis(port));
    await cache.set("page", page(1));
    assert.equal(await cache.get("page"), page(1));
    const exec = await cache.multi().set("page", page(2)).get("page").exec();
    assert.deepEqual(exec, [[null, "OK"], [null, page(2)]]);
    cache.disconnect();
  });
});

/** Returns the node that has the slot of a key, and another. */
async function owners(nodes: readonly Server[], key: string): Promise<[Server, Server]> {
  const answers = await Promise.all(nodes.map(({ port }) => command(port, "EXISTS", key)));
  const at = answers.findIndex((answer) => !answer.startsWith("-MOVED"));
  const [source, target] = [nodes[at], nodes[(at + 1) % nodes.length]];
  assert.ok(source !== undefined && target !== undefined);
  return [source, target];
}

/** Gives the slot of a key from one node to another, with the key. */
async function moved(source: Server, target: Server, key: string): Promise<void> {
  const slot = (await command(source.port, "CLUSTER", "KEYSLOT", key)).slice(1).trim();
  const [from, to] = await Promise.all([source, target].map(({ port }) => identity(port)));
  assert.ok(from !== undefined && to !== undefined);
  await command(target.port, "CLUSTER", "SETSLOT", slot, "IMPORTING", from);
  await command(source.port, "CLUSTER", "SETSLOT", slot, "MIGRATING", to);
  await command(source.port, "MIGRATE", "127.0.0.1", String(target.port), key, "0", "5000");
  await command(target.port, "CLUSTER", "SETSLOT", slot, "NODE", to);
  await command(source.port, "CLUSTER", "SETSLOT", slot, "NODE", to);
}

async function identity(port: number): Promise<string> {
  return (await command(port, "CLUSTER", "MYID")).split("\r\n")[1] ?? "";
}
