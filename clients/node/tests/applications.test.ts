/** Applications on top: sessions of Express in connect-redis, and queues of BullMQ. Slow. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { Queue, Worker, type ConnectionOptions } from "bullmq";
import { RedisStore } from "connect-redis";
import type { SessionData } from "express-session";
import IORedis from "ioredis";
import { createClient } from "redis";

import { compress, statistics } from "../src";
import { slow, until, valkey } from "./servers";

describe("applications", { skip: !slow }, () => {
  let port: number;

  before(async () => {
    ({ port } = await valkey());
  });

  it("keep sessions of Express, which take less and come back", async () => {
    const client = compress(createClient({ socket: { port } }), { existingEnvelopes: "wrap" });
    await client.connect();
    after(() => {
      client.destroy();
    });
    const store = new RedisStore({ client, prefix: "session:" });
    const session = { cookie: { originalMaxAge: 60_000 }, cart: Array.from({ length: 50 }, (_, id) => ({ id, count: 1 })) };
    const given = session as unknown as SessionData;
    await store.set("one", given);
    assert.deepEqual(await store.get("one"), given);
    await store.touch("one", given);
    assert.deepEqual(await store.all(), [{ ...given, id: "one" }]);
    assert.equal(statistics(client).encoded_values_zstd, 1);
    await store.destroy("one");
    assert.equal(await store.get("one"), null);
  });

  it("run jobs of BullMQ, whose scripts see what they are given", async () => {
    const open = () => compress(new IORedis(port, { maxRetriesPerRequest: null }));
    const clients = [open(), open()] as const;
    // BullMQ has types of an older ioredis of its own.
    const [forQueue, forWorker] = clients as unknown as [ConnectionOptions, ConnectionOptions];
    const queue = new Queue<{ text: string }, number>("pages", { connection: forQueue });
    const worker = new Worker<{ text: string }, number>("pages", ({ data }) => Promise.resolve(data.text.length), {
      connection: forWorker,
    });
    const texts = Array.from({ length: 20 }, (_, at) => "<p>hello</p>".repeat(100 + at));
    await Promise.all(texts.map((text) => queue.add("page", { text })));
    // Its events are lost at times, without compression, too.
    await until(async () => (await queue.getCompletedCount()) === texts.length);
    const results = (await queue.getCompleted()).map(({ data, returnvalue }) => [data.text, returnvalue] as const);
    assert.deepEqual(new Map(results), new Map(texts.map((text) => [text, text.length])));
    await worker.close();
    await queue.close();
    for (const client of clients) {
      client.disconnect();
    }
  });
});
