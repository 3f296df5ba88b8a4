/**
 * Compression for Keyv, and so for cache-manager, whatever the store is.
 *
 *     import { Keyv } from "keyv";
 *     import { compression } from "snugly/keyv";
 *
 *     const cache = new Keyv({ store, compression: compression({ backend: "lz4" }) });
 *
 * Keyv makes text of what it stores, in which bytes take a third more. A store on node-redis is better given a client that
 * compresses. It knows Keyv's `compression` option, and no store.
 */

import { Codec } from "./codec";
import type { CompressionOptions } from "./configuration";

/** What Keyv's option `compression` is. */
export interface KeyvCompression {
  compress(value: unknown): Promise<Buffer>;
  decompress(stored: unknown): Promise<unknown>;
}

/** Kinds of values, in the byte in front of each. */
const TEXT = 0;
const BYTES = 1;
const JSON_TEXT = 2;

/**
 * Returns what compresses the values of a Keyv.
 *
 * Strings and Buffers come back as they were, and other values as JSON has them; what cannot be read is undefined, as for a
 * key that is not there. Values from `workerPoolFrom` bytes on (default: 64 KiB) are compressed on the worker pool.
 *
 * Throws ConfigurationError.
 *
 * @param options Settings of `Codec`; by default envelopes are wrapped, and what cannot be read is a miss.
 */
export function compression(options: CompressionOptions = {}): KeyvCompression {
  const codec = new Codec({ existingEnvelopes: "wrap", onUndecodable: "miss", ...options });
  const largeFrom = options.workerPoolFrom ?? 64 << 10;
  return {
    async compress(value) {
      const plain = marked(value);
      return plain.length < largeFrom ? codec.encode(plain) : codec.encodeOnWorker(plain);
    },
    async decompress(stored) {
      if (!Buffer.isBuffer(stored)) {
        // It was written before, by a Keyv without compression.
        return stored;
      }
      const plain = stored.length < largeFrom ? codec.decode(stored) : await codec.decodeOnWorker(stored);
      return plain === null ? undefined : unmarked(plain);
    },
  };
}

function marked(value: unknown): Buffer {
  if (typeof value === "string") {
    return Buffer.concat([Buffer.of(TEXT), Buffer.from(value)]);
  }
  return Buffer.isBuffer(value)
    ? Buffer.concat([Buffer.of(BYTES), value])
    : Buffer.concat([Buffer.of(JSON_TEXT), Buffer.from(JSON.stringify(value ?? null))]);
}

function unmarked(plain: Buffer): unknown {
  const value = plain.subarray(1);
  switch (plain[0]) {
    case TEXT:
      return value.toString();
    case BYTES:
      return value;
    default:
      return JSON.parse(value.toString());
  }
}
