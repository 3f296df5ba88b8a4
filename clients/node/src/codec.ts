/**
 * Envelopes without a client: for caching libraries, tools, and values that travel by other ways.
 */

import { Configuration, type CompressionOptions } from "./configuration";
import { ConfigurationError, UndecodableError, type UndecodableKind } from "./errors";
import { Fallback } from "./fallback";
import { MissLog } from "./missed";
import { loaded, PLACE, type Addon, type Failure } from "./native";

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

/** Where envelopes begin. */
const MAGIC = [0x00, 0x01, 0x02] as const;
/** Bytes before the payload, of which the last one is the backend. */
const HEADER = 5;

/** Returns whether bytes may be an envelope; those that are not need not be decoded. */
export function mayBeEnvelope(stored: Buffer): boolean {
  return stored.length >= HEADER && stored[0] === MAGIC[0] && stored[1] === MAGIC[1] && stored[2] === MAGIC[2];
}

/** Encodes and decodes values without a client. It has counters of its own. */
export class Codec {
  readonly #configuration: Configuration;
  readonly #values: InstanceType<Addon["ValueCodec"]> | Fallback;
  readonly #returned: Returned | undefined;
  readonly #misses: MissLog;

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
    this.#configuration = chosen;
    this.#misses = new MissLog(chosen.onWarning);
    const made =
      "addon" in loaded
        ? valueCodec(loaded.addon, chosen)
        : { codec: new Fallback(loaded.reason, chosen.maxDecompressedSize) };
    this.#values = made.codec;
    this.#returned = "returned" in made ? made.returned : undefined;
  }

  /** Returns the bytes to store for a value: an envelope, or the value itself where that gains nothing. */
  encode(value: Uint8Array | string): Buffer {
    const bytes = buffer(value);
    return this.#values.encode(bytes) ?? bytes;
  }

  /** Does the same on the worker pool, for large values. A Uint8Array must not change meanwhile. */
  async encodeOnWorker(value: Uint8Array | string): Promise<Buffer> {
    const bytes = buffer(value);
    return (await this.#values.encodeOnWorker(bytes)) ?? bytes;
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
    const read = this.#values.decode(bytes, false, Infinity, Infinity);
    const value = typeof read === "number" ? this.#returned?.copy(0, read) : read;
    return this.#read(bytes, key, value as Buffer | Failure | undefined);
  }

  /** Does the same on the worker pool, for large values. `stored` must not change meanwhile. */
  async decodeOnWorker(stored: Uint8Array, key?: Buffer): Promise<Buffer | null> {
    const bytes = buffer(stored);
    return this.#read(bytes, key, await this.#values.decodeOnWorker(bytes, Infinity));
  }

  /** Returns the counters of this codec, by name. */
  statistics(): Record<string, number> {
    return this.#values.statistics();
  }

  #read(stored: Buffer, key: Buffer | undefined, read: Buffer | Failure | null | undefined): Buffer | null {
    if (read === null || read === undefined) {
      return stored;
    }
    if (Buffer.isBuffer(read)) {
      return read;
    }
    if (read.missingDictionary !== undefined) {
      this.#values.countUnread();
    }
    if (this.#configuration.onUndecodable === "raw") {
      return stored;
    }
    const error = undecodable(stored, key, read);
    if (this.#configuration.onUndecodable === "raise") {
      throw error;
    }
    this.#misses.tell(error);
    return null;
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

/** Bytes for values that the addon returns at once. */
const RETURNED_BYTES = 64 << 10;
/** Envelopes that it returns at once. */
const RETURNED_PLACES = 64;

/** Memory that the addon puts small results into: making a Buffer costs more there than copying one here. */
export class Returned {
  readonly bytes = Buffer.alloc(RETURNED_BYTES);
  readonly #numbers = new Int32Array(PLACE * RETURNED_PLACES);
  readonly places = Buffer.from(this.#numbers.buffer);

  /** Returns a copy of some of the bytes. */
  copy(start: number, end: number): Buffer {
    const copy = Buffer.allocUnsafe(end - start);
    this.bytes.copy(copy, 0, start, end);
    return copy;
  }

  /** Puts envelopes into the places of their arguments. */
  putInto(args: unknown[], count: number): void {
    for (let place = 0; place < PLACE * count; place += PLACE) {
      const at = this.#numbers[place] ?? 0;
      args[at] = this.copy(this.#numbers[place + 1] ?? 0, this.#numbers[place + 2] ?? 0);
    }
  }
}

/** Makes what the addon needs for a configuration. */
export function valueCodec(addon: Addon, chosen: Configuration, isClient = false) {
  const given = typeof chosen.dictionary === "object" ? chosen.dictionary.native : undefined;
  const dictionaries = new addon.Dictionaries(given, chosen.writesDictionaries, !isClient || given === undefined, [
    ...chosen.dictionaryExclude,
  ]);
  // Until there is a decision.
  const backend = chosen.backend === "auto" ? "zstd" : chosen.backend;
  const basics = {
    backend,
    level: chosen.compressionLevel,
    minCompressionSize: chosen.minCompressionSize,
  };
  const learner = chosen.learns
    ? new addon.Learner(
        {
          ...basics,
          goal: chosen.backend === "auto" ? chosen.goal : undefined,
          trains: chosen.trains,
          memory: chosen.dictionaryMemory,
          seed: BigInt(Math.floor(Math.random() * 2 ** 53)),
        },
        dictionaries,
      )
    : undefined;
  const returned = new Returned();
  const codec = new addon.ValueCodec(
    {
      ...basics,
      maxDecompressedSize: chosen.maxDecompressedSize,
      maxReplyBytes: chosen.maxReplyBytes,
      wraps: chosen.existingEnvelopes === "wrap",
      checksum: chosen.checksum,
      exclude: [...chosen.exclude],
    },
    dictionaries,
    returned.bytes,
    returned.places,
    learner,
  );
  return { codec, dictionaries, learner, returned };
}

/** Returns the error for what is stored, which ends with what there is to say besides. */
export function undecodable(
  stored: Buffer,
  key: Buffer | undefined,
  failure: Failure,
  besides = "",
): UndecodableError {
  const at = key === undefined ? "" : ` at key ${JSON.stringify(key.toString())},`;
  const backend = failure.backend.toString(16).padStart(2, "0");
  const of = `an envelope of ${stored.length} bytes, backend ${backend},${at}`;
  const message = `cannot decode ${of} ${failure.why}${besides}`;
  const { kind, ...details } = { kind: failure.kind as UndecodableKind, key, backend: failure.backend, stored };
  return new UndecodableError(message, { kind, ...details });
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
