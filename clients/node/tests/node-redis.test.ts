/** Compression under node-redis, with real servers: what a bare client returns is what a compressing one returns. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import * as redis6 from "redis";
import * as redis5 from "redis5";

import {
  CommandRefusedError,
  compress,
  ConfigurationError,
  statistics,
  UndecodableBatchError,
  UndecodableError,
} from "../src";
import { cluster, command, until, valkey } from "./servers";

type Library = typeof redis6;
type Client = ReturnType<typeof redis6.createClient>;

const LIBRARIES: Record<string, Library> = { "6.3": redis6, "5.0": redis5 as unknown as Library };
const { BLOB_STRING, MAP } = redis6.RESP_TYPES;
const TYPES = ["strings", "hashes", "lists", "streams"] as const;
/** Types that callers ask for, by a name. */
const MAPPINGS = {
  "no mapping": {},
  Buffers: { [BLOB_STRING]: Buffer },
  Maps: { [MAP]: Map },
  "Buffers and arrays": { [BLOB_STRING]: Buffer, [MAP]: Array },
};
const HUGE = "<html>é</html>".repeat(20_000);

/** Commands with values, each with replies that are the same whenever they run in this order. */
const COMMANDS: ((client: Client) => unknown)[] = [
  (client) => client.set("s", page(1)),
  (client) => client.get("s"),
  (client) => client.set("s", page(2), { GET: true }),
  (client) => client.set("s:short", "short"),
  (client) => client.get("s:short"),
  (client) => client.set("s:number", 12),
  (client) => client.incr("s:number"),
  (client) => client.set("s:bytes", Buffer.from(page(3))),
  (client) => client.getEx("s:bytes", { type: "PERSIST" }),
  (client) => client.mSet({ a: page(4), b: page(5) }),
  (client) => client.mGet(["a", "none", "b", "s:short"]),
  (client) => client.getSet("a", page(6)),
  (client) => client.getDel("a"),
  (client) => client.get("a"),
  (client) => client.setNX("a", page(7)),
  (client) => client.setEx("a", 100, page(8)),
  (client) => client.get("a"),
  (client) => client.hSet("h", { one: page(1), two: "short", ["__proto__"]: page(2), 7: page(3) }),
  (client) => client.hSet("h:single", "field", page(4)),
  (client) => client.hGet("h", "one"),
  (client) => client.hmGet("h", ["one", "none", "two"]),
  (client) => client.hGetAll("h"),
  (client) => client.hGetAll("none"),
  (client) => client.hVals("h"),
  (client) => client.hKeys("h"),
  (client) => client.hScan("h", "0"),
  (client) => client.hScanNoValues("h", "0"),
  (client) => client.hRandFieldCountWithValues("h:single", 1),
  (client) => client.hRandField("h:single"),
  (client) => client.hSetNX("h", "three", page(5)),
  (client) => client.hExists("h", "three"),
  (client) => client.rPush("l", [page(1), page(2), "short", page(3), page(4), page(5), page(6), page(7)]),
  (client) => client.lRange("l", 0, -1),
  (client) => client.lIndex("l", 1),
  (client) => client.lSet("l", 1, page(8)),
  (client) => client.lInsert("l", "BEFORE", "short", page(9)),
  (client) => client.lMove("l", "l:other", "LEFT", "RIGHT"),
  (client) => client.rPopLPush("l", "l:other"),
  (client) => client.blMove("l", "l:other", "LEFT", "RIGHT", 1),
  (client) => client.lPop("l"),
  (client) => client.lPopCount("l", 2),
  (client) => client.rPop("l"),
  (client) => client.lmPop(["none", "l"], "LEFT", { COUNT: 2 }),
  (client) => client.lmPop(["none"], "LEFT"),
  (client) => client.blPop(["none", "l:other"], 1),
  (client) => client.brPop("l:other", 1),
  (client) => client.blmPop(1, ["l:other"], "LEFT"),
  (client) => client.lPop("none"),
  (client) => client.xAdd("x", "1-1", { field: page(1), other: "short" }),
  (client) => client.xAdd("x", "1-2", { field: page(2) }),
  (client) => client.xRange("x", "-", "+"),
  (client) => client.xRevRange("x", "+", "-"),
  (client) => client.xRead({ key: "x", id: "0" }),
  (client) => client.xGroupCreate("x", "group", "0"),
  (client) => client.xReadGroup("group", "me", [{ key: "x", id: ">" }]),
  (client) => client.xClaim("x", "group", "you", 0, ["1-1"]),
  (client) => client.xAutoClaim("x", "group", "me", 0, "0"),
  (client) => client.xRead({ key: "none", id: "0" }),
  (client) => client.type("x"),
];

describe("replies", () => {
  let port: number;

  before(async () => {
    ({ port } = await valkey());
  });

  for (const [version, library] of Object.entries(LIBRARIES)) {
    for (const RESP of [2, 3] as const) {
      for (const [name, mapping] of Object.entries(MAPPINGS)) {
        const ways: Record<string, (client: Client) => Promise<unknown>> = {
          "one by one": async (client) => {
            const replies = [];
            for (const send of COMMANDS) {
              replies.push(await Promise.resolve(send(client)).catch(messageOf));
            }
            return replies;
          },
          "all at once": (client) =>
            Promise.all(COMMANDS.map((send) => Promise.resolve(send(client)).catch(messageOf))),
          "in a transaction": (client) => batch(client).exec(),
          "in a pipeline": (client) => batch(client).execAsPipeline(),
          raw: async (client) => [
            await client.sendCommand(["SET", "s", page(1)]),
            await client.sendCommand([Buffer.from("get"), "s"]),
            await client.sendCommand(["HSET", "h", "field", page(2)]),
            await client.sendCommand(["HGETALL", "h"]),
            await client.sendCommand(["HGETALL", "h"], { typeMapping: { [BLOB_STRING]: Buffer } }),
            await client.sendCommand(["MULTI"]),
            await client.sendCommand(["GET", "s"]),
            await client.sendCommand(["HGETALL", "h"]),
            await client.sendCommand(["TYPE", "h"]),
            await client.sendCommand(["EXEC"]),
          ],
        };
        for (const [way, run] of Object.entries(ways)) {
          it(`are those of a bare client: ${version}, RESP ${RESP}, ${name}, ${way}`, async () => {
            const options = { socket: { port }, RESP };
            const bare = library.createClient(options);
            const cache = compress(library.createClient({ ...options, database: 1 }), { valueTypes: TYPES });
            await all(bare.connect(), cache.connect());
            try {
              await bare.flushAll();
              const expected = await run(bare.withTypeMapping(mapping) as unknown as Client).catch(messageOf);
              const actual = await run(cache.withTypeMapping(mapping) as unknown as Client).catch(messageOf);
              assert.deepStrictEqual(plain(actual), plain(expected));
              assert.ok((statistics(cache).encoded_values_zstd ?? 0) > 0);
            } finally {
              bare.destroy();
              cache.destroy();
            }
          });
        }
      }
    }
  }
});

for (const [version, library] of Object.entries(LIBRARIES)) {
  describe(`a client of redis ${version}`, () => {
    let port: number;
    let cache: Client;
    let bare: Client;

    before(async () => {
      ({ port } = await valkey());
      cache = compress(library.createClient({ socket: { port } }), { valueTypes: TYPES }) as unknown as Client;
      bare = library.createClient({ socket: { port } }) as unknown as Client;
      cache.on("error", () => undefined);
      await all(cache.connect(), bare.connect());
    });

    after(() => {
      cache.destroy();
      bare.destroy();
    });

    it("stores less than it is given", async () => {
      await cache.set("page", page(1));
      assert.equal(await cache.get("page"), page(1));
      assert.ok((await bare.strLen("page")) < page(1).length / 2);
    });

    it("leaves the caller's arguments as they were", async () => {
      const args = ["SET", "page", page(2)];
      await cache.sendCommand(args);
      await cache.multi().addCommand(args).exec();
      assert.deepEqual(args, ["SET", "page", page(2)]);
    });

    it("rejects a refused command, and sends nothing of its transaction or pipeline", async () => {
      await cache.set("refused", "before");
      await assert.rejects(cache.append("refused", "more"), CommandRefusedError);
      await assert.rejects(cache.multi().set("refused", "after").append("refused", "more").exec(), CommandRefusedError);
      await assert.rejects(
        cache.multi().set("refused", "after").append("refused", "more").execAsPipeline(),
        CommandRefusedError,
      );
      assert.equal(await cache.get("refused"), "before");
    });

    it("rejects for a value that cannot be read, and tells it apart from others in a transaction", async () => {
      await cache.set("torn", page(1));
      await cache.set("whole", page(2));
      const stored = await bare.withTypeMapping({ [BLOB_STRING]: Buffer }).get("torn");
      await bare.set("torn", (stored as unknown as Buffer).subarray(0, 30));
      await assert.rejects(cache.get("torn"), UndecodableError);
      await assert.rejects(cache.multi().get("torn").get("whole").execAsPipeline(), UndecodableError);
      await assert.rejects(cache.multi().get("whole").get("torn").lPop("whole").hSet("h", "f", "v").exec(), (error) => {
        assert.ok(error instanceof UndecodableBatchError);
        assert.deepEqual(error.key, Buffer.from("torn"));
        assert.deepEqual(error.errorIndexes, [1, 2]);
        assert.equal(error.replies[0], page(2));
        assert.ok([...error.errors()][0] instanceof UndecodableError);
        return true;
      });
    });

    it("keeps the order of commands some of which wait for the worker pool", async () => {
      const replies = await Promise.all([
        cache.set("huge", HUGE),
        cache.get("huge"),
        cache.set("huge", "small"),
        cache.get("huge"),
        cache.multi().set("huge", HUGE).get("huge").exec(),
        cache.get("huge"),
        cache.multi().set("huge", page(3)).get("huge").execAsPipeline(),
        cache.get("huge"),
      ]);
      assert.deepEqual(replies, ["OK", HUGE, "OK", "small", ["OK", HUGE], HUGE, ["OK", page(3)], page(3)]);
    });

    it("sends what waits for the worker pool before it closes", async () => {
      const other = compress(library.createClient({ socket: { port } }));
      await other.connect();
      const [reply] = await Promise.all([other.set("last", HUGE), other.close()]);
      assert.equal(reply, "OK");
      assert.equal(await cache.get("last"), HUGE);
    });

    it("encodes a command once that waits for a connection, and works on after it was cut", async () => {
      const other = compress(library.createClient({ socket: { port } }), { existingEnvelopes: "wrap" });
      other.on("error", () => undefined);
      const connected = other.connect();
      const early = other.set("early", page(1));
      await all(connected, early);
      const id = await other.clientId();
      await bare.sendCommand(["CLIENT", "KILL", "ID", String(id)]);
      await until(async () => (await other.get("early").catch(() => null)) === page(1));
      assert.equal(statistics(other).encoded_values_zstd, 1);
      other.destroy();
    });

    it("gives a transaction up if a watched key has changed, and forgets it then", async () => {
      await cache.watch("watched");
      await bare.set("watched", "changed");
      const refused = (client: Client) => client.multi().get("watched").select(3).exec();
      await assert.rejects(refused(cache), library.WatchError);
      assert.deepEqual(await cache.multi().get("watched").exec(), ["changed"]);
      await cache.watch("watched");
      assert.deepEqual(await cache.multi().get("watched").exec(), ["changed"]);
    });

    it("gives a transaction up that was watching on another connection", async () => {
      await cache.watch("watched");
      const id = await cache.clientId();
      const ended = new Promise((resolve) => cache.once("ready", resolve));
      await bare.sendCommand(["CLIENT", "KILL", "ID", String(id)]);
      await ended;
      await assert.rejects(cache.multi().get("watched").exec(), library.WatchError);
      assert.deepEqual(await cache.multi().get("watched").exec(), ["changed"]);
    });

    it("knows the database that a transaction has selected", async () => {
      const other = compress(library.createClient({ socket: { port } }));
      other.on("error", () => undefined);
      await other.connect();
      await other.multi().get("none").select(5).set("in five", page(5)).exec();
      const id = await other.clientId();
      const ready = new Promise((resolve) => other.once("ready", resolve));
      await bare.sendCommand(["CLIENT", "KILL", "ID", String(id)]);
      await ready;
      assert.equal(await other.get("in five"), page(5));
      other.destroy();
    });

    it("leaves scripts and messages alone", async () => {
      await cache.set("page", page(1));
      const script = { keys: ["page"], arguments: [page(2)] };
      assert.equal(await cache.eval("return ARGV[1]", script), page(2));
      assert.notEqual(await cache.eval("return redis.call('GET', KEYS[1])", script), page(1));
      const listener = cache.duplicate();
      await listener.connect();
      const heard = new Promise((resolve) => void listener.subscribe("channel", resolve));
      await until(async () => (await cache.publish("channel", page(3))) > 0);
      assert.equal(await heard, page(3));
      listener.destroy();
    });

    it("returns fields and values in its iterators", async () => {
      await cache.hSet("scanned", { one: page(1), two: page(2) });
      const entries = [];
      for await (const some of cache.hScanIterator("scanned")) {
        entries.push(...some);
      }
      assert.deepEqual(entries, [
        { field: "one", value: page(1) },
        { field: "two", value: page(2) },
      ]);
    });

    it("duplicates itself with its compression, once", async () => {
      const duplicate = cache.duplicate();
      await duplicate.connect();
      await duplicate.set("duplicated", page(1));
      assert.equal(await cache.get("duplicated"), page(1));
      assert.deepEqual(statistics(duplicate), statistics(cache));
      assert.throws(() => compress(duplicate), ConfigurationError);
      assert.throws(() => compress(cache.withTypeMapping({})), ConfigurationError);
      duplicate.destroy();
    });

    it("compresses in a pool", async () => {
      // Closed while it makes more clients, the pool of 5.0 ends in a rejection that nobody can handle.
      const options = { minimum: 3, maximum: 3 };
      const pool = compress(library.createClient({ socket: { port } }).createPool(options), { valueTypes: TYPES });
      await pool.connect();
      await Promise.all([1, 2, 3, 4, 5].map((n) => pool.set(`pool:${n}`, page(n))));
      const buffers = pool.withTypeMapping({ [BLOB_STRING]: Buffer });
      assert.deepEqual(await Promise.all([1, 2, 3].map((n) => pool.get(`pool:${n}`))), [page(1), page(2), page(3)]);
      assert.deepEqual(await buffers.get("pool:4"), Buffer.from(page(4)));
      assert.deepEqual(await pool.multi().hSet("pool", "f", page(1)).hVals("pool").exec(), [1, [page(1)]]);
      assert.equal(await pool.execute((client) => client.get("pool:5")), page(5));
      assert.equal(statistics(pool).encoded_values_zstd, 6);
      assert.ok((await bare.strLen("pool:1")) < page(1).length / 2);
      await pool.close();
      const clientsOwn = cache.createPool(options);
      await clientsOwn.connect();
      assert.equal(await clientsOwn.get("pool:1"), page(1));
      await clientsOwn.close();
    });
  });
}

describe("the client-side cache of redis 6.3", () => {
  it("returns restored values, as often as they are asked for", async () => {
    const { port } = await valkey();
    const client = redis6.createClient({ socket: { port }, RESP: 3, clientSideCache: {} });
    const cache = compress(client, { valueTypes: TYPES });
    await cache.connect();
    await cache.set("page", page(1));
    await cache.hSet("hash", "field", page(2));
    for (let times = 0; times < 3; times++) {
      assert.equal(await cache.get("page"), page(1));
      assert.deepEqual({ ...(await cache.hGetAll("hash")) }, { field: page(2) });
    }
    assert.equal(cache.clientSideCache?.stats().hitCount, 4);
    await cache.set("page", page(3));
    await until(async () => (await cache.get("page")) === page(3));
    cache.destroy();
  });
});

for (const [version, library] of Object.entries(LIBRARIES)) {
  describe(`a cluster client of redis ${version}`, () => {
    const client = async (ports: number[]) => {
      const made = compress(
        library.createCluster({ rootNodes: ports.map((port) => ({ socket: { port } })) }),
        { valueTypes: TYPES, existingEnvelopes: "wrap" },
      );
      await made.connect();
      return made;
    };
    let ports: number[];
    let cache: Awaited<ReturnType<typeof client>>;

    before(async () => {
      ports = (await cluster()).map(({ port }) => port);
      cache = await client(ports);
    });

    after(() => {
      cache.destroy();
    });

    it("compresses at each node, once", async () => {
      const keys = ["a", "b", "c", "d", "e", "f"];
      await Promise.all(keys.map((key) => cache.set(key, page(1))));
      assert.deepEqual(
        await Promise.all(keys.map((key) => cache.get(key))),
        keys.map(() => page(1)),
      );
      assert.deepEqual(await cache.multi().set("m", page(2)).get("m").exec(), ["OK", page(2)]);
      assert.deepEqual(await cache.multi().set("m", page(3)).get("m").execAsPipeline(), ["OK", page(3)]);
      assert.equal(await cache.sendCommand("a", true, ["GET", "a"]), page(1));
      assert.equal(statistics(cache).encoded_values_zstd, 8);
    });

    it("encodes a command once that is redirected", async () => {
      const slot = Number((await command(ports[0] ?? 0, "CLUSTER", "KEYSLOT", "moving")).slice(1));
      const from = Math.floor((slot * 3) / 16384);
      const to = (from + 1) % 3;
      const replies = await Promise.all(ports.map((port) => command(port, "CLUSTER", "MYID")));
      const ids = replies.map((reply) => /[0-9a-f]{40}/.exec(reply)?.[0] ?? "");
      const encoded = () => statistics(cache).encoded_values_zstd ?? 0;
      const setSlot = (at: number, ...how: string[]) => command(ports[at] ?? 0, "CLUSTER", "SETSLOT", String(slot), ...how);

      await setSlot(to, "IMPORTING", ids[from] ?? "");
      await setSlot(from, "MIGRATING", ids[to] ?? "");
      let earlier = encoded();
      await cache.set("moving", page(1));
      assert.equal(encoded(), earlier + 1);
      assert.equal(await cache.get("moving"), page(1));

      for (const at of [to, from, 3 - from - to]) {
        await setSlot(at, "NODE", ids[to] ?? "");
      }
      earlier = encoded();
      await cache.set("moving", page(2));
      assert.equal(encoded(), earlier + 1);
      assert.equal(await cache.get("moving"), page(2));
    });

    it("duplicates itself with its compression", async () => {
      const duplicate = cache.duplicate();
      await duplicate.connect();
      await duplicate.set("duplicated", page(1));
      assert.equal(await cache.get("duplicated"), page(1));
      assert.deepEqual(statistics(duplicate), statistics(cache));
      duplicate.destroy();
    });
  });
}

/** Returns a transaction of all commands. */
function batch(client: Client) {
  const multi = client.multi();
  for (const send of COMMANDS) {
    send(multi as unknown as Client);
  }
  return multi;
}

function page(number: number): string {
  return `${number}: ${"<html>é</html>".repeat(20)}`;
}

/** Makes a prototype comparable that is a Buffer, as the library has it for a field named __proto__. */
function plain(replies: unknown): unknown {
  if (Array.isArray(replies)) {
    return replies.map(plain);
  }
  if (typeof replies === "object" && replies !== null) {
    const prototype: unknown = Object.getPrototypeOf(replies);
    return Buffer.isBuffer(prototype) ? [Buffer.from(prototype), Object.entries(replies)] : replies;
  }
  return replies;
}

function messageOf(error: unknown): string {
  return String(error);
}

async function all(...promises: Promise<unknown>[]): Promise<void> {
  await Promise.all(promises);
}
