/** Compression under ioredis and iovalkey, with real servers. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import IORedis from "ioredis";
import IORedis5 from "ioredis5";
import IOValkey from "iovalkey";

import { compress, statistics, type CompressionOptions } from "../src";
import { until, valkey } from "./servers";

const PAGE = "<html>é</html>".repeat(100);
const OTHER = "<p>other</p>".repeat(100);
const CORRUPT = Buffer.from("0001020001ffffffffffffffff", "hex");

/** The libraries, which are alike in what is used of them here. */
const LIBRARIES: Record<string, typeof IORedis> = {
  "ioredis 6": IORedis,
  "ioredis 5.0": IORedis5 as unknown as typeof IORedis,
  iovalkey: IOValkey as unknown as typeof IORedis,
};

const KINDS = Object.entries(LIBRARIES).flatMap(([name, library]) => [
  { kind: name, library, enableAutoPipelining: false },
  { kind: `${name} with automatic pipelines`, library, enableAutoPipelining: true },
]);

for (const { kind, library, enableAutoPipelining } of KINDS) {
  describe(kind, () => {
    const clients: IORedis[] = [];
    let port: number;
    let bare: IORedis;

    /** Makes a client that compresses. */
    function client(options: CompressionOptions = {}, lazyConnect = false): IORedis {
      const made = compress(new library({ host: "127.0.0.1", port, enableAutoPipelining, lazyConnect }), options);
      clients.push(made);
      return made;
    }

    before(async () => {
      ({ port } = await valkey());
      bare = new library({ host: "127.0.0.1", port });
    });

    after(() => {
      for (const each of [bare, ...clients]) {
        each.disconnect();
      }
    });

    it("stores less than it is given, and returns it as a string or a Buffer", async () => {
      const cache = client();
      await cache.set("page", PAGE);
      assert.equal(await cache.get("page"), PAGE);
      assert.deepEqual(await cache.getBuffer("page"), Buffer.from(PAGE));
      const stored = await bare.getBuffer("page");
      assert.ok(stored !== null && stored.length < PAGE.length / 10);
      assert.ok((statistics(cache).encoded_values_zstd ?? 0) > 0);
    });

    it("returns of all types what a bare client returns of values that are not compressed", async () => {
      const cache = client({ valueTypes: ["strings", "hashes", "lists", "streams"] });
      const replies = async (redis: IORedis): Promise<unknown[]> => {
        await redis.flushall();
        const run: [string, ...string[]][] = [
          ["mset", "a", PAGE, "b", "short"], ["mget", "a", "b", "none"], ["set", "a", OTHER, "GET"], ["getex", "a"],
          ["hset", "h", "f", PAGE, "g", OTHER], ["hgetall", "h"], ["hscan", "h", "0"], ["hmget", "h", "f", "none"],
          ["hvals", "h"], ["rpush", "l", PAGE, OTHER, PAGE, OTHER],
          ["lrange", "l", "0", "-1"], ["lmpop", "2", "none", "l", "LEFT"], ["blpop", "l", "1"], ["lpop", "l", "5"],
          ["xadd", "x", "1-1", "f", PAGE, "g", OTHER], ["xrange", "x", "-", "+"], ["xread", "STREAMS", "x", "0"],
          ["xgroup", "CREATE", "x", "group", "0"], ["xreadgroup", "GROUP", "group", "me", "STREAMS", "x", ">"],
          ["xautoclaim", "x", "group", "me", "0", "0"], ["getdel", "a"], ["get", "a"],
        ];
        const all: unknown[] = [];
        for (const [name, ...args] of run) {
          const methods = redis as unknown as Record<string, ((...args: string[]) => unknown) | undefined>;
          const method = methods[name];
          all.push(method === undefined ? await redis.call(name, ...args) : await method.apply(redis, args));
        }
        return all;
      };
      assert.deepEqual(await replies(cache), await replies(bare));
    });

    it("restores what pipelines and transactions return", async () => {
      const cache = client();
      const wanted = [[null, "OK"], [null, PAGE]];
      assert.deepEqual(await cache.pipeline().set("p", PAGE).get("p").exec(), wanted);
      assert.deepEqual(await cache.pipeline([["set", "p", PAGE], ["get", "p"]]).exec(), wanted);
      assert.deepEqual(await cache.multi().set("p", PAGE).get("p").exec(), wanted);
      assert.deepEqual(await cache.multi([["set", "p", PAGE], ["get", "p"]]).exec(), wanted);
      if (!enableAutoPipelining) {
        // In automatic pipelines the library takes EXEC for the end of one.
        void cache.multi({ pipeline: false });
        void cache.set("p", PAGE);
        void cache.get("p");
        assert.deepEqual(await cache.exec(), wanted);
      }
      assert.ok(((await bare.getBuffer("p"))?.length ?? Infinity) < PAGE.length);
    });

    it("refuses a command and leaves those beside it alone", async () => {
      const cache = client();
      const refusal = { name: "CommandRefusedError", command: "APPEND" };
      await assert.rejects(cache.append("r", "more"), refusal);
      assert.throws(() => cache.pipeline().append("r", "more"), refusal);
      const results = await Promise.allSettled([
        cache.set("r", PAGE), cache.append("r", "more"), cache.get("r"), cache.append("r", "more"), cache.get("none"),
      ]);
      assert.deepEqual(results.map(({ status }) => status), [
        "fulfilled", "rejected", "fulfilled", "rejected", "fulfilled",
      ]);
      assert.deepEqual(results.map((each) => (each.status === "fulfilled" ? each.value : undefined)), [
        "OK", undefined, PAGE, undefined, null,
      ]);
    });

    it("keeps the order of commands, some of whose values are encoded on the worker pool", async () => {
      for (const isLazy of [false, true]) {
        const cache = client({ workerPoolFrom: 200, backend: "zstd", compressionLevel: 19 }, isLazy);
        const large = PAGE.repeat(500);
        const results = await Promise.all([
          cache.set("o", "first"), cache.get("o"), cache.set("o", large), cache.get("o"),
          cache.pipeline().set("o", "second").get("o").set("o", OTHER).get("o").exec(),
          cache.multi().set("o", large).get("o").exec(),
        ]);
        assert.deepEqual(results, [
          "OK", "first", "OK", large, [[null, "OK"], [null, "second"], [null, "OK"], [null, OTHER]],
          [[null, "OK"], [null, large]],
        ]);
      }
    });

    it("sends a pipeline as a whole, also if the connection is lost while its values are encoded", async () => {
      const cache = client({ workerPoolFrom: 200, compressionLevel: 19 });
      await cache.ping();
      const large = PAGE.repeat(500);
      const results = cache.pipeline().set("k1", "1").get("k1").set("k2", large).get("k2").exec();
      cache.disconnect(true);
      const wanted = [[null, "OK"], [null, "1"], [null, "OK"], [null, large]];
      assert.deepEqual(await results, wanted);
      assert.equal(await cache.echo("in step"), "in step");
    });

    it("gives an error in the place of what cannot be read", async () => {
      await bare.set("bad", CORRUPT);
      await bare.set("good", PAGE);
      const cache = client();
      await assert.rejects(cache.get("bad"), { name: "UndecodableError", kind: "corrupt", key: Buffer.from("bad") });
      for (const batch of [cache.pipeline(), cache.multi()]) {
        const results = await batch.get("bad").get("good").exec();
        assert.equal(results?.[0]?.[0]?.name, "UndecodableError");
        assert.deepEqual(results[1], [null, PAGE]);
      }
      if (!enableAutoPipelining) {
        void cache.multi({ pipeline: false });
        void cache.get("bad");
        void cache.get("good");
        const results = await cache.exec();
        assert.equal(results?.[0]?.[0]?.name, "UndecodableError");
        assert.deepEqual(results[1], [null, PAGE]);
      }
      assert.deepEqual(await client({ onUndecodable: "raw" }).getBuffer("bad"), CORRUPT);
      const warnings: string[] = [];
      const missing = client({ onUndecodable: "miss", onWarning: (warning) => warnings.push(warning) });
      assert.deepEqual(await missing.mget("bad", "good"), [null, PAGE]);
      assert.match(String(warnings), /at key "bad"/);
    });

    it("restores the reply to a command of the caller's own, in its encoding", async () => {
      const cache = client();
      await cache.set("own", PAGE);
      const command = new library.Command("get", ["own"], { replyEncoding: "hex" });
      assert.equal(await cache.sendCommand(command), Buffer.from(PAGE).toString("hex"));
      if (!enableAutoPipelining) {
        // ioredis 5.0 forgets the name in automatic pipelines.
        assert.equal(await cache.call("GET", "own"), PAGE);
      }
    });

    it("makes its duplicates compress, and no client twice", async () => {
      const cache = client();
      const duplicate = cache.duplicate();
      clients.push(duplicate);
      await duplicate.set("d", PAGE);
      assert.equal(await cache.get("d"), PAGE);
      assert.ok(((await bare.getBuffer("d"))?.length ?? Infinity) < PAGE.length);
      assert.throws(() => compress(cache), { name: "ConfigurationError", message: /compresses already/ });
    });

    it("goes on after a lost connection", async () => {
      const cache = client();
      await cache.set("lost", PAGE);
      const id = await cache.client("ID");
      const reads = Array.from({ length: 20 }, () => cache.get("lost"));
      await bare.client("KILL", "ID", String(id));
      assert.deepEqual(await Promise.all(reads), reads.map(() => PAGE));
      await until(() => cache.status === "ready");
      assert.equal(await cache.get("lost"), PAGE);
    });
  });
}
