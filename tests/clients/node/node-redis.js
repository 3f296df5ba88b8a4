// node-redis, the package `redis`.

import { createClient, defineScript, RESP_TYPES, WatchError } from "redis";

import { DELETE_IF_EQUAL } from "./scripts.js";

export const nodeRedis = { name: "node-redis", announces: "node-redis", protocols: [2, 3], open };

const deleteIfEqual = defineScript({
  SCRIPT: DELETE_IF_EQUAL,
  NUMBER_OF_KEYS: 1,
  parseCommand: (parser, key, value) => {
    parser.pushKey(key);
    parser.push(value);
  },
  transformReply: (reply) => reply,
});

async function open(options) {
  const { host, port, protocol, name, password, complain, onlyOnce } = options;
  const redis = createClient({
    socket: { host, port, reconnectStrategy: onlyOnce ? false : undefined },
    RESP: protocol,
    name,
    password,
    scripts: { deleteIfEqual },
  });
  redis.on("error", complain);
  await redis.connect();
  return new Client(redis, options);
}

class Client {
  #redis;
  #buffers;
  #options;

  constructor(redis, options) {
    this.#redis = redis;
    this.#buffers = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    this.#options = options;
  }

  ping() {
    return this.#redis.ping();
  }

  clientInfo() {
    return this.#redis.sendCommand(["CLIENT", "INFO"]);
  }

  flushAll() {
    return this.#redis.flushAll();
  }

  set(key, value, seconds) {
    return seconds
      ? this.#redis.set(key, value, { expiration: { type: "EX", value: seconds } })
      : this.#redis.set(key, value);
  }

  get(key) {
    return this.#redis.get(key);
  }

  getBuffer(key) {
    return this.#buffers.get(key);
  }

  mset(values) {
    return this.#redis.mSet(values);
  }

  mget(keys) {
    return this.#redis.mGet(keys);
  }

  incrBy(key, by) {
    return this.#redis.incrBy(key, by);
  }

  del(keys) {
    return this.#redis.del(keys);
  }

  ttl(key) {
    return this.#redis.ttl(key);
  }

  expire(key, seconds) {
    return this.#redis.expire(key, seconds);
  }

  persist(key) {
    return this.#redis.persist(key);
  }

  async scan(pattern, count) {
    const keys = [];
    for await (const page of this.#redis.scanIterator({ MATCH: pattern, COUNT: count })) {
      keys.push(...page);
    }
    return keys;
  }

  command(...words) {
    return this.#redis.sendCommand(words);
  }

  async pipeline(keys, value) {
    // Commands of one tick go out together.
    const set = keys.map((key) => this.#redis.set(key, value));
    const refused = this.#redis.incr(keys[0]).then(
      () => undefined,
      (error) => error,
    );
    const get = keys.map((key) => this.#redis.get(key));
    await Promise.all(set);
    return { refused: await refused, read: await Promise.all(get) };
  }

  transaction(key, number) {
    return this.#redis.multi().set(key, number).incr(key).get(key).exec();
  }

  deleteIfEqual(key, value) {
    return this.#redis.deleteIfEqual(key, value);
  }

  async watch(key, value, meddle) {
    const own = await open(this.#options);
    try {
      await own.#redis.watch(key);
      await meddle();
      await own.#redis.multi().set(key, value).exec();
      return true;
    } catch (error) {
      if (error instanceof WatchError) {
        return false;
      }
      throw error;
    } finally {
      own.close();
    }
  }

  close() {
    this.#redis.destroy();
  }
}
