/** Explanation of a client's encoding of a key's values, for people. */

import type { Compressor } from "./compressor";
import type { Goal } from "./configuration";
import { compressorOf } from "./compress";
import { loaded, type Explained, type ExplainedRow } from "./native";

/** Result of one encoding for sampled values. */
export interface Measured {
  /** `none`, `lz4` or `zstd`. */
  readonly codec: string;
  readonly level: number;
  /** ID of the dictionary. */
  readonly dictionary: number | undefined;
  /** Number of measured values. */
  readonly values: number;
  /** Bytes after compression for each byte before. */
  readonly ratio: number;
  /** Bytes that a value takes less, on average. */
  readonly saved: number;
  /** Processor time to encode a value, in seconds on average; 0 for `none`. */
  readonly encode: number;
  /** The same to decode one. */
  readonly decode: number;
  /**
   * Worth of it for a value, in nanoseconds: the saved bytes at the goal's price, less the time for writing a value and
   * reading it as often as values are read. The highest is chosen; what is in use stays unless another way is clearly
   * better.
   */
  readonly worth: number;
}

/** Encoding of a key's values, and its reason. */
export interface Explanation {
  /** Keys that this is decided for, a glob of KEYS; undefined while nothing is decided. */
  readonly pattern: string | undefined;
  /** `none`, `lz4` or `zstd`. */
  readonly codec: string;
  readonly level: number | undefined;
  /** ID of the dictionary that is used now. */
  readonly dictionary: number | undefined;
  /** Goal of the choice; undefined if the client does not choose. */
  readonly goal: Goal | undefined;
  /** Measured encodings; the first is the one used before. */
  readonly measured: readonly Measured[];
  readonly decidedAt: Date | undefined;
  /** The same in words. */
  readonly why: string;
}

/**
 * Explains the encoding that a client uses for values of a key at the moment, or for this value.
 *
 * Throws ConfigurationError if the client does not compress.
 */
export function explain(client: object, key: string | Buffer, value?: string | Buffer): Explanation {
  const compressor = compressorOf(client);
  const { configuration, values } = compressor;
  const { learner, dictionaries } = values;
  const name = Buffer.from(key);
  const length = value === undefined ? undefined : Buffer.byteLength(value);
  const least = configuration.minCompressionSize;
  if (length !== undefined && length < least) {
    return plainly("none", undefined, undefined, `values shorter than ${least} bytes are left alone`);
  }
  if (!("addon" in loaded)) {
    return plainly("none", undefined, undefined, loaded.reason);
  }
  if (compressor.values.codec.excludes(name)) {
    return plainly("none", undefined, undefined, "the configuration excludes such keys");
  }
  const dictionary = dictionaryFor(compressor, name);
  if (configuration.backend !== "auto" || learner === undefined || dictionaries === undefined) {
    return plainly(configuration.backend, configuration.compressionLevel, dictionary, "the configuration says so");
  }
  if (dictionaries.excludes(name)) {
    const why = "the configuration excludes such keys, so their values are not looked at";
    return plainly("zstd", undefined, undefined, why);
  }
  const explained = learner.explain(name, length);
  if (explained === null) {
    const why = "nothing is decided for such keys yet, or for values of this size";
    return plainly("zstd", undefined, dictionary, why);
  }
  return chosen(explained, dictionary);
}

/** For what is not chosen. Without a level, it is the codec's own; what is not compressed has none. */
function plainly(codec: string, level: number | undefined, dictionary: number | undefined, why: string): Explanation {
  const usual = "addon" in loaded ? loaded.addon.levels(codec)?.usual : undefined;
  return {
    pattern: undefined,
    codec,
    level: codec === "none" ? undefined : (level ?? usual),
    dictionary,
    goal: undefined,
    measured: [],
    decidedAt: undefined,
    why: `${codec}: ${why}`,
  };
}

/** For what was chosen, where this dictionary is used for the key. */
function chosen(explained: Explained, dictionary: number | undefined): Explanation {
  const best = explained.measured[explained.best];
  if (best === undefined) {
    throw new RangeError(`there is no method ${explained.best}`);
  }
  return {
    pattern: explained.pattern,
    codec: best.codec,
    level: best.codec === "none" ? undefined : best.level,
    dictionary: best.dictionary === undefined ? undefined : dictionary,
    goal: explained.goal as Goal,
    measured: explained.measured.map((row) => ({ dictionary: undefined, ...row })),
    decidedAt: new Date(explained.decidedAt * 1000),
    why: inWords(explained, best),
  };
}

function inWords(explained: Explained, best: ExplainedRow): string {
  const goal = `the goal "${explained.goal}" gives ${explained.price.toFixed(0)} ns for a saved byte`;
  const about = `of ${best.values} values of "${explained.pattern}"`;
  if (best.codec === "none") {
    return `left alone: ${about}, none saves enough by any codec for its time; ${goal}`;
  }
  const using = best.dictionary === undefined ? "" : ` with the dictionary ${best.dictionary}`;
  const size = `each takes ${percent(best.ratio)} of its size and saves ${best.saved.toFixed(0)} bytes`;
  const taken = `in ${microseconds(best.encode)} to write it and ${microseconds(best.decode)} to read it`;
  const lately =
    explained.latestRatio === undefined ? "" : `; lately values take ${percent(explained.latestRatio)}`;
  return (
    `${best.codec} at level ${best.level}${using}: ${about}, ${size}, ${taken}, ${explained.reads.toFixed(1)} times for ` +
    `each writing; ${goal}, and no other way is worth clearly more${lately}`
  );
}

function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(0)}%`;
}

function microseconds(seconds: number): string {
  return `${(seconds * 1e6).toFixed(1)} µs`;
}

/** Returns the ID of the dictionary that values of a key may be written with now. */
function dictionaryFor(compressor: Compressor, key: Buffer): number | undefined {
  return compressor.values.dictionaries?.chosenFor(key) ?? undefined;
}
