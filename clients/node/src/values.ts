/**
 * Values to envelopes and back, by the addon or by what there is without it; for codecs and for clients.
 *
 * It knows the addon's ways of handing over results. It must not know commands or keys' patterns.
 */

import type { Configuration } from "./configuration";
import { UndecodableError, type UndecodableKind } from "./errors";
import { Fallback } from "./fallback";
import { MissLog } from "./missed";
import {
  loaded,
  type Addon,
  type CommandTable,
  type Dictionaries,
  type Failure,
  type Learner,
  type ValueCodec,
} from "./native";

/** First bytes of envelopes. */
const MAGIC = [0x00, 0x01, 0x02] as const;
/** Bytes before the payload. */
const HEADER = 5;
/** Bytes for values that the addon returns at once. */
const RETURNED_BYTES = 64 << 10;
/** Envelopes that it returns at once, and numbers that say where one is: its argument, its beginning and its end. */
const RETURNED_PLACES = 64;
const PLACE = 3;

/** Returns whether bytes may be an envelope; those that are not need not be decoded. */
export function mayBeEnvelope(stored: Buffer): boolean {
  return stored.length >= HEADER && stored[0] === MAGIC[0] && stored[1] === MAGIC[1] && stored[2] === MAGIC[2];
}

/** Encodes and decodes values of one client, or of one codec. */
export class Values {
  readonly codec: ValueCodec;
  /** Dictionaries at hand, and what learns from values; undefined without the addon. */
  readonly dictionaries: Dictionaries | undefined;
  readonly learner: Learner | undefined;
  readonly #onUndecodable: Configuration["onUndecodable"];
  readonly #misses: MissLog;
  // The addon puts small results there: making a Buffer costs more in it than copying one here.
  readonly #bytes = Buffer.alloc(RETURNED_BYTES);
  /** Number of envelopes that the addon has returned, and their places. */
  readonly #places = new Int32Array(1 + PLACE * RETURNED_PLACES);

  /** @param isClient Whether a given dictionary is to be published before it is written with. */
  constructor(configuration: Configuration, isClient: boolean) {
    this.#onUndecodable = configuration.onUndecodable;
    this.#misses = new MissLog(configuration.onWarning);
    if (!("addon" in loaded)) {
      this.codec = new Fallback(loaded.reason, configuration.maxDecompressedSize);
      return;
    }
    const { addon } = loaded;
    const given = typeof configuration.dictionary === "object" ? configuration.dictionary.native : undefined;
    const isAllowed = !isClient || given === undefined;
    const excluded = [...configuration.dictionaryExclude];
    this.dictionaries = new addon.Dictionaries(given, configuration.writesDictionaries, isAllowed, excluded);
    const basics = {
      // Until there is a decision.
      backend: configuration.backend === "auto" ? "zstd" : configuration.backend,
      level: configuration.compressionLevel,
      minCompressionSize: configuration.minCompressionSize,
    };
    if (configuration.learns) {
      this.learner = learner(addon, configuration, basics, this.dictionaries);
    }
    this.codec = new addon.ValueCodec(
      {
        ...basics,
        maxDecompressedSize: configuration.maxDecompressedSize,
        maxReplyBytes: configuration.maxReplyBytes,
        wraps: configuration.existingEnvelopes === "wrap",
        checksum: configuration.checksum,
        exclude: [...configuration.exclude],
      },
      this.dictionaries,
      this.#bytes,
      Buffer.from(this.#places.buffer),
      this.learner,
    );
  }

  /**
   * Puts the envelopes of a command's values into its arguments.
   *
   * @returns Number of the shape of the reply, or one of those that stand for none. Throws what the addon throws.
   */
  encodeIn(table: CommandTable, command: number, args: unknown[], from: number, largeFrom: number): number {
    this.#places[0] = 0;
    const shape = table.encode(this.codec, command, args, from, largeFrom);
    const end = 1 + PLACE * this.#places[0];
    for (let place = 1; place < end; place += PLACE) {
      args[this.#places[place] ?? 0] = this.#copy(this.#places[place + 1] ?? 0, this.#places[place + 2] ?? 0);
    }
    return shape;
  }

  /** Decodes as the addon's codec does, which returns no length here. */
  decode(
    stored: Buffer,
    asText: boolean,
    left: number,
    largeFrom: number,
  ): Buffer | string | Failure | null | undefined {
    const read = this.codec.decode(stored, asText, left, largeFrom);
    return typeof read === "number" ? this.#copy(0, read) : read;
  }

  /**
   * Returns what stands for a value that cannot be read: what is stored, or null. Throws UndecodableError, if neither is
   * asked for.
   *
   * @param key Returns the key, if it is known.
   * @param besides Returns what else there is to say of a dictionary that is missing.
   */
  unread(failure: Failure, stored: Buffer, key: () => Buffer | undefined, besides: () => string): Buffer | null {
    const isMissing = failure.missingDictionary !== undefined;
    if (isMissing) {
      this.codec.countUnread();
    }
    if (this.#onUndecodable === "raw") {
      return stored;
    }
    const error = undecodable(stored, key(), failure, isMissing ? besides() : "");
    if (this.#onUndecodable === "raise") {
      throw error;
    }
    this.#misses.tell(error);
    return null;
  }

  #copy(start: number, end: number): Buffer {
    const copy = Buffer.allocUnsafe(end - start);
    this.#bytes.copy(copy, 0, start, end);
    return copy;
  }
}

function learner(
  addon: Addon,
  configuration: Configuration,
  basics: { backend: string; level: number | undefined; minCompressionSize: number },
  dictionaries: Dictionaries,
): Learner {
  return new addon.Learner(
    {
      ...basics,
      goal: configuration.backend === "auto" ? configuration.goal : undefined,
      trains: configuration.trains,
      memory: configuration.dictionaryMemory,
      seed: BigInt(Math.floor(Math.random() * 2 ** 53)),
    },
    dictionaries,
  );
}

function undecodable(stored: Buffer, key: Buffer | undefined, failure: Failure, besides: string): UndecodableError {
  const at = key === undefined ? "" : ` at key ${JSON.stringify(key.toString())},`;
  const number = failure.backend.toString(16).padStart(2, "0");
  const message = `cannot decode an envelope of ${stored.length} bytes, backend ${number},${at} ${failure.why}${besides}`;
  return new UndecodableError(message, {
    kind: failure.kind as UndecodableKind,
    key,
    backend: failure.backend,
    stored,
  });
}
