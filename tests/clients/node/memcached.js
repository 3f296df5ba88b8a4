// Connects to a server with memjs as it comes, and prints one line of JSON for each check.
//
//     node memcached.js HOST PORT PORT-WITH-PASSWORD
//
// ../README.md says what every such program takes, prints and checks.

import assert from "node:assert/strict";
import process from "node:process";
import memjs from "memjs";

const WRONG_USAGE = 2;
const LARGE = 2 << 20;

const [host, port, lockedPort] = process.argv.slice(2);
if (lockedPort === undefined) {
  console.error("usage: memcached.js HOST PORT PORT-WITH-PASSWORD");
  process.exit(WRONG_USAGE);
}

/** Prints lines, while whatever the library says is a complaint. */
const print = console.log;
const complaints = [];
console.log = (...words) => complaints.push(words.join(" "));
console.warn = console.log;
console.error = console.log;
process.on("warning", (warning) => complaints.push(String(warning)));

const client = memjs.Client.create(`${host}:${port}`);

const checks = {
  async connect() {
    assert.ok(await client.flush());
  },

  async binary() {
    const value = Buffer.from(Array.from({ length: 3 * 256 }, (_, index) => index % 256));
    assert.equal(await client.set("binary", value, {}), true);
    assert.deepEqual((await client.get("binary")).value, value);
    await client.set("empty", "", {});
    assert.equal((await client.get("empty")).value.length, 0);
  },

  async missing() {
    assert.equal((await client.get("missing")).value, null);
    assert.equal(await client.delete("missing"), false);
  },

  async modes() {
    assert.equal(await client.replace("modes", "b", {}), false);
    assert.equal(await client.add("modes", "b", {}), true);
    assert.equal(await client.add("modes", "x", {}), false);
    assert.equal(await client.append("modes", "c"), true);
    // Its prepend appends, too.
    assert.equal((await client.get("modes")).value.toString(), "bc");
    assert.equal(await client.delete("modes"), true);
  },

  async expiry() {
    await client.set("expiring", "value", { expires: 100 });
    assert.equal(await client.touch("expiring", 200), true);
    assert.equal((await client.get("expiring")).value.toString(), "value");
    // A date that has passed.
    await client.set("expiring", "value", { expires: 1_000_000_000 });
    assert.equal((await client.get("expiring")).value, null);
    assert.equal(await client.touch("expiring", 200), false);
  },

  async counter() {
    assert.equal((await client.increment("counter", 1, { initial: 10 })).value, 10);
    assert.equal((await client.increment("counter", 32, {})).value, 42);
    assert.equal((await client.decrement("counter", 100, {})).value, 0);
  },

  async concurrency() {
    const numbers = Array.from({ length: 50 }, (_, number) => number);
    await Promise.all(numbers.map((number) => client.set(`many:${number}`, String(number), {})));
    const read = await Promise.all(numbers.map((number) => client.get(`many:${number}`)));
    assert.deepEqual(
      read.map(({ value }) => value.toString()),
      numbers.map(String),
    );
  },

  async statistics() {
    const told = await new Promise((resolve, reject) =>
      client.stats((error, _server, stats) => (error ? reject(error) : resolve(stats))),
    );
    assert.ok(Number(told.curr_items) > 0);
  },

  async quiet() {
    assert.deepEqual(complaints, []);
  },

  async errors() {
    await assert.rejects(client.set("large", Buffer.alloc(LARGE), {}), /too large/i);
    await assert.rejects(client.append("missing", "value"), /not stored/);
    assert.equal(await client.set("small", "value", {}), true);
    complaints.length = 0;
  },

  async password() {
    const knock = async (username, password) => {
      const locked = memjs.Client.create(`${host}:${lockedPort}`, { username, password, retries: 1 });
      try {
        await locked.set("key", "value", {});
        return (await locked.get("key")).value.toString();
      } finally {
        locked.close();
      }
    };
    assert.equal(await knock("default", "secret"), "value");
    await assert.rejects(knock("default", "wrong"));
  },
};

let failed = false;
for (const [check, make] of Object.entries(checks)) {
  const detail = await make().then(
    () => "",
    (error) => error.message || String(error),
  );
  failed ||= detail !== "";
  print(JSON.stringify({ client: "memjs", protocol: "binary", check, ok: detail === "", detail }));
}
client.close();
process.exit(failed ? 1 : 0);
