// What is checked, the same for every library. It knows the libraries only through the classes in ioredis.js and
// node-redis.js, which all have the same methods.

import assert from "node:assert/strict";

const CLIENT_NAME = "node-tester";
const TEXT = "Zürich, 🦊";

/** One library in one protocol against the servers. */
export class Run {
  #client;
  #complaints = [];

  constructor(library, protocol, addresses) {
    this.library = library;
    this.protocol = protocol;
    this.addresses = addresses;
  }

  complain(complaint) {
    this.#complaints.push(String(complaint));
  }

  complaints() {
    return this.#complaints;
  }

  open(options) {
    return this.library.open({ protocol: this.protocol, complain: (error) => this.complain(error), ...options });
  }

  /** The connection of this run, opened when it is first needed. */
  async client() {
    this.#client ??= await this.open({ ...this.addresses.open, name: CLIENT_NAME });
    return this.#client;
  }

  async close() {
    await this.#client?.close();
  }
}

export const checks = {
  async connect(run) {
    const client = await run.client();
    assert.equal(await client.ping(), "PONG");
    await client.flushAll();
  },

  async identity(run) {
    const client = await run.client();
    const fields = new Map((await client.clientInfo()).split(" ").map((field) => field.split("=")));
    assert.equal(fields.get("name"), CLIENT_NAME);
    assert.equal(fields.get("resp"), String(run.protocol));
    assert.equal(fields.get("lib-name"), run.library.announces);
  },

  async json(run) {
    const client = await run.client();
    const users = Array.from({ length: 200 }, (_, id) => ({
      id,
      name: `${TEXT} ${id}`,
      tags: ["cache", "compressed"],
    }));
    await client.set("json", JSON.stringify(users));
    assert.deepEqual(JSON.parse(await client.get("json")), users);
  },

  async binary(run) {
    const client = await run.client();
    const value = Buffer.from(Array.from({ length: 3 * 256 }, (_, index) => index % 256));
    await client.set("binary", value);
    assert.deepEqual(await client.getBuffer("binary"), value);
    await client.set("empty", "");
    assert.equal(await client.get("empty"), "");
  },

  async missing(run) {
    const client = await run.client();
    assert.equal(await client.get("missing"), null);
  },

  async expiry(run) {
    const client = await run.client();
    await client.set("expiring", "value", 100);
    assertBetween(await client.ttl("expiring"), 1, 100);
    assert.equal(await client.expire("expiring", 50), 1);
    assertBetween(await client.ttl("expiring"), 1, 50);
    assert.equal(await client.persist("expiring"), 1);
    assert.equal(await client.ttl("expiring"), -1);
    assert.equal(await client.expire("missing", 50), 0);
    assert.equal(await client.ttl("missing"), -2);
  },

  async several(run) {
    const client = await run.client();
    await client.mset({ one: "1", two: TEXT });
    assert.deepEqual(await client.mget(["one", "missing", "two"]), ["1", null, TEXT]);
  },

  async counter(run) {
    const client = await run.client();
    assert.equal(await client.incrBy("counter", 1), 1);
    assert.equal(await client.incrBy("counter", 41), 42);
    assert.equal(await client.get("counter"), "42");
  },

  async scan(run) {
    const client = await run.client();
    const keys = numbered("scan", 500);
    await client.mset(Object.fromEntries(keys.map((key) => [key, "value"])));
    assert.deepEqual(new Set(await client.scan("scan:*", 50)), new Set(keys));
  },

  async pipeline(run) {
    const client = await run.client();
    const keys = numbered("pipeline", 200);
    const value = "value ".repeat(100);
    const { read, refused } = await client.pipeline(keys, value);
    assert.deepEqual(
      read,
      keys.map(() => value),
    );
    assertSays(refused, "value is not an integer or out of range");
  },

  async delete(run) {
    const client = await run.client();
    await client.mset({ one: "1", two: "2" });
    assert.equal(await client.del(["one", "two", "missing"]), 2);
    assert.equal(await client.get("one"), null);
  },

  async errors(run) {
    const client = await run.client();
    await client.set("text", "text");
    assertSays(await errorOf(client.incrBy("text", 1)), "value is not an integer or out of range");
    assertSays(await errorOf(client.command("NO-SUCH-COMMAND", "argument")), "unknown command 'NO-SUCH-COMMAND'");
    assert.equal(await client.get("text"), "text");
  },

  async concurrency(run) {
    const client = await run.client();
    const keys = numbered("many", 50);
    await Promise.all(keys.map((key) => client.set(key, key)));
    assert.deepEqual(await Promise.all(keys.map((key) => client.get(key))), keys);
  },

  async transaction(run) {
    const client = await run.client();
    assert.deepEqual(await client.transaction("transaction", 41), ["OK", 42, "42"]);
  },

  async script(run) {
    const client = await run.client();
    await client.set("lock", "mine");
    assert.equal(await client.deleteIfEqual("lock", "another's"), 0);
    assert.equal(await client.deleteIfEqual("lock", "mine"), 1);
    assert.equal(await client.get("lock"), null);
  },

  async watch(run) {
    const client = await run.client();
    const meddle = () => client.set("watched", "somebody else");
    assert.equal(await client.watch("watched", "not to be", meddle), false);
    assert.equal(await client.get("watched"), "somebody else");
    assert.equal(await client.watch("watched", "mine", async () => {}), true);
    assert.equal(await client.get("watched"), "mine");
  },

  async password(run) {
    assert.deepEqual(await knock(run, "secret"), ["PONG"]);
    assert.match((await knock(run, "wrong")).join("\n"), /WRONGPASS/);
    assert.match((await knock(run, undefined)).join("\n"), /NOAUTH/);
  },

  async quiet(run) {
    assert.deepEqual(run.complaints(), []);
  },
};

/** What comes of PING with this password: the reply, or the errors, some of which come as events. */
async function knock(run, password) {
  const answers = [];
  const complain = (error) => answers.push(error.message);
  let client;
  try {
    // As it comes, node-redis tries again and again after an error.
    client = await run.open({ ...run.addresses.locked, password, complain, onlyOnce: true });
    answers.push(await client.ping());
  } catch (error) {
    complain(error);
  } finally {
    await client?.close();
  }
  return answers;
}

function numbered(prefix, count) {
  return Array.from({ length: count }, (_, number) => `${prefix}:${number}`);
}

async function errorOf(promise) {
  return promise.then(
    () => undefined,
    (error) => error,
  );
}

function assertBetween(value, least, most) {
  assert.ok(value >= least && value <= most, `${value} is not from ${least} to ${most}`);
}

function assertSays(error, words) {
  assert.ok(error?.message.includes(words), `the error is ${error}, and should say ${words}`);
}
