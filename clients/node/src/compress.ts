/** Clients that compress: which library a client is of, and what is known of each. */

import { Compressor } from "./compressor";
import { Configuration, type CompressionOptions } from "./configuration";
import { DictionaryManager, type Keeping } from "./dictionaries/manager";
import { ConfigurationError } from "./errors";
import { compressIoredis, isIoredis } from "./ioredis";
import { loaded } from "./native";
import { compressNodeRedis, isNodeRedis } from "./node-redis";

const compressors = new WeakMap<object, Compressor>();

/**
 * Makes a client compress, and returns it.
 *
 * Values are compressed where they enter and restored where they leave; replies are what the caller asked for, strings or
 * Buffers. Duplicates of the client compress, too.
 *
 * Throws ConfigurationError for a setting that there is not, and a client that cannot be compressed or is already.
 *
 * @param client A Redis or Cluster of ioredis (5 and 6) or iovalkey, or a client, pool, cluster or sentinel of redis (5
 *   and 6).
 * @param options Default: zstd for strings of 64 bytes and more.
 */
export function compress<Client extends object>(client: Client, options: CompressionOptions = {}): Client {
  adopt(client, new Compressor(new Configuration(options)));
  return client;
}

/** Returns the counters of a client, or of all clients and codecs of this process, by name. */
export function statistics(client?: object): Record<string, number> {
  if (client !== undefined) {
    return compressorOf(client).statistics();
  }
  return "addon" in loaded ? loaded.addon.processStatistics() : {};
}

/** Returns the compressor of a client. Throws ConfigurationError for a client that does not compress. */
export function compressorOf(client: object): Compressor {
  const compressor = compressors.get(rootOf(client));
  if (compressor === undefined) {
    throw new ConfigurationError("this client does not compress: give it to compress() first");
  }
  return compressor;
}

function adopt(client: object, compressor: Compressor): void {
  const root = rootOf(client);
  if (compressors.has(root)) {
    throw new ConfigurationError("this client compresses already");
  }
  const adoptAnother = (another: object, hasOtherOptions: boolean): void => {
    adopt(another, hasOtherOptions ? new Compressor(compressor.configuration) : compressor);
  };
  const keeping = keepingOf(client, compressor, adoptAnother);
  compressors.set(root, compressor);
  if ("addon" in loaded && compressor.source === undefined) {
    const manager = new DictionaryManager(compressor, loaded.addon, keeping.access);
    compressor.source = manager;
    keeping.follow(manager);
  }
}

/** Makes a client compress by what knows its library, and returns how its dictionaries are kept. */
function keepingOf(
  client: object,
  compressor: Compressor,
  adoptAnother: (another: object, hasOtherOptions: boolean) => void,
): Keeping {
  if (isIoredis(client)) {
    return compressIoredis(client, compressor, adoptAnother);
  }
  if (isNodeRedis(client)) {
    return compressNodeRedis(client, compressor, adoptAnother);
  }
  throw new ConfigurationError(
    `a ${client.constructor.name} cannot be compressed: give a client of ioredis, iovalkey or redis`,
  );
}

/** Returns the object that a client shares with those that differ from it by their options only. */
function rootOf(client: object): object {
  return isNodeRedis(client) ? client._self : client;
}
