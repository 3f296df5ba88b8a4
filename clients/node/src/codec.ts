/**
 * Envelopes without a client: for caching libraries, tools, and values that travel by other ways.
 */

import { Configuration, type CompressionOptions } from "./configuration";
import { ConfigurationError } from "./errors";
import { Fallback } from "./fallback";
import { loaded } from "./native";
import { Values } from "./values";

/** Claims of the first bytes of an envelope, true or not. */
export interface Envelope {
  /** Number of the backend. */
  backend: number;
  /** `zstd`, `lz4`, `zstd_dictionary`, `lz4_dictionary`, or undefined for a backend that this version does not know. */
  name: string | undefined;
  /** Length that is claimed for the value, in bytes; zstd frames need not claim one. */
  size: number | undefined;
  /** ID of the dictionary that is needed. */
  dictionary: number | undefined;
}

/** Encodes and decodes values without a client. It has counters of its own. */
export class Codec {
  readonly #values: Values;

  /**
   * @param options Settings of a client but for those of catalogues, keys and goals.
   *
   * Throws ConfigurationError for `dictionary: "catalogue"` and `"auto"`, for the backend `auto` and for `exclude`,
   * which are for clients.
   */
  constructor(options: CompressionOptions = {}) {
    const chosen = new Configuration(options);
    if (typeof chosen.dictionary === "string" && chosen.writesDictionaries) {
      throw new ConfigurationError(
        `dictionary is "${chosen.dictionary}", which only clients can read: give a Dictionary`,
      );
    }
    if (chosen.backend === "auto") {
      throw new ConfigurationError(
        'backend is "auto", which is for clients, who know keys: choose "zstd" or "lz4"',
      );
    }
    if (chosen.exclude.length > 0) {
      throw new ConfigurationError("exclude has patterns of keys, which only clients know: leave it out");
    }
    this.#values = new Values(chosen, false);
  }

  /** Returns the bytes to store for a value: an envelope, or the value itself where that gains nothing. */
  encode(value: Uint8Array | string): Buffer {
    const bytes = buffer(value);
    return this.#values.codec.encode(bytes) ?? bytes;
  }

  /** Does the same on the worker pool, for large values. A Uint8Array must not change meanwhile. */
  async encodeOnWorker(value: Uint8Array | string): Promise<Buffer> {
    const bytes = buffer(value);
    return (await this.#values.codec.encodeOnWorker(bytes)) ?? bytes;
  }

  /**
   * Returns the value that is stored: the bytes themselves if they are no envelope.
   *
   * Throws UndecodableError for an envelope that cannot be read; with `onUndecodable` it is what is stored (`raw`), or
   * null (`miss`).
   *
   * @param key Named by the error.
   */
  decode(stored: Uint8Array, key?: Buffer): Buffer | null {
    const bytes = buffer(stored);
    return this.#read(bytes, key, this.#values.decode(bytes, false, Infinity, Infinity));
  }

  /** Does the same on the worker pool, for large values. `stored` must not change meanwhile. */
  async decodeOnWorker(stored: Uint8Array, key?: Buffer): Promise<Buffer | null> {
    const bytes = buffer(stored);
    return this.#read(bytes, key, await this.#values.codec.decodeOnWorker(bytes, Infinity));
  }

  /** Returns the counters of this codec, by name. */
  statistics(): Record<string, number> {
    return this.#values.codec.statistics();
  }

  #read(stored: Buffer, key: Buffer | undefined, read: ReturnType<Values["decode"]>): Buffer | null {
    if (read === null || read === undefined) {
      return stored;
    }
    // No text was asked for.
    if (typeof read === "string" || Buffer.isBuffer(read)) {
      return read as Buffer;
    }
    const nothing = (): string => "";
    return this.#values.unread(read, stored, () => key, nothing);
  }
}

/** Parses the header of an envelope; undefined if the bytes are not an envelope. */
export function inspect(stored: Uint8Array): Envelope | undefined {
  const bytes = buffer(stored);
  const header = "addon" in loaded ? loaded.addon.inspect(bytes) : new Fallback(loaded.reason).inspect(bytes);
  return header === null
    ? undefined
    : { name: undefined, size: undefined, dictionary: undefined, ...header };
}

function buffer(value: Uint8Array | string): Buffer {
  if (typeof value === "string") {
    return Buffer.from(value);
  }
  return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

let usual: Codec | undefined;

/** Encodes a value as `new Codec().encode` does: zstd, level 3, from 64 bytes on. */
export function encode(value: Uint8Array | string): Buffer {
  usual ??= new Codec();
  return usual.encode(value);
}

/** Decodes a value as `new Codec().decode` does. Throws UndecodableError. */
export function decode(stored: Uint8Array, key?: Buffer): Buffer {
  usual ??= new Codec();
  const value = usual.decode(stored, key);
  if (value === null) {
    throw new TypeError("what cannot be read is an error by default");
  }
  return value;
}
