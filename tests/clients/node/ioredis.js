// ioredis, and iovalkey, which was forked from it before it knew RESP3 and CLIENT SETINFO.

import IORedis from "ioredis";
import IOValkey from "iovalkey";

import { DELETE_IF_EQUAL } from "./scripts.js";

export const ioredis = {
  name: "ioredis",
  announces: "ioredis",
  protocols: [2, 3],
  open: async (options) => new Client(IORedis, options),
};

export const iovalkey = {
  name: "iovalkey",
  announces: "",
  protocols: [2],
  open: async (options) => new Client(IOValkey, options),
};

class Client {
  #library;
  #options;
  #redis;

  constructor(library, options) {
    const { host, port, protocol, name, password, complain } = options;
    this.#library = library;
    this.#options = options;
    this.#redis = new library({ host, port, protocol, connectionName: name, password });
    this.#redis.on("error", complain);
    this.#redis.defineCommand("deleteIfEqual", { numberOfKeys: 1, lua: DELETE_IF_EQUAL });
  }

  ping() {
    return this.#redis.ping();
  }

  clientInfo() {
    return this.#redis.client("INFO");
  }

  flushAll() {
    return this.#redis.flushall();
  }

  set(key, value, seconds) {
    return seconds ? this.#redis.set(key, value, "EX", seconds) : this.#redis.set(key, value);
  }

  get(key) {
    return this.#redis.get(key);
  }

  getBuffer(key) {
    return this.#redis.getBuffer(key);
  }

  mset(values) {
    return this.#redis.mset(values);
  }

  mget(keys) {
    return this.#redis.mget(keys);
  }

  incrBy(key, by) {
    return this.#redis.incrby(key, by);
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

  async scan(match, count) {
    const pages = await this.#redis.scanStream({ match, count }).toArray();
    return pages.flat();
  }

  command(...words) {
    return this.#redis.call(...words);
  }

  async pipeline(keys, value) {
    const pipeline = this.#redis.pipeline();
    for (const key of keys) {
      pipeline.set(key, value);
    }
    pipeline.incr(keys[0]);
    for (const key of keys) {
      pipeline.get(key);
    }
    const results = await pipeline.exec();
    return { read: results.slice(keys.length + 1).map(([, read]) => read), refused: results[keys.length][0] };
  }

  async transaction(key, number) {
    const results = await this.#redis.multi().set(key, number).incr(key).get(key).exec();
    return results.map(([, result]) => result);
  }

  deleteIfEqual(key, value) {
    return this.#redis.deleteIfEqual(key, value);
  }

  async watch(key, value, meddle) {
    const own = new Client(this.#library, this.#options);
    try {
      await own.#redis.watch(key);
      await meddle();
      const results = await own.#redis.multi().set(key, value).exec();
      return results !== null;
    } finally {
      own.close();
    }
  }

  close() {
    this.#redis.disconnect();
  }
}
