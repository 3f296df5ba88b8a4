/** Settings of compression, their defaults and their ranges. */

import { Dictionary } from "./dictionary";
import { ConfigurationError } from "./errors";
import { loaded } from "./native";

/**
 * Backend for new values; every client reads all of them.
 *
 * - `zstd`: small. Levels -131072 to 22, default 3.
 * - `lz4`: fast. Levels -128 to 12, default 0.
 * - `auto`: the best backend for each kind of keys by a goal, found by the client.
 * - `none`: compresses nothing and reads everything, for readers that go first in a roll-out.
 */
export type CompressionBackend = "zstd" | "lz4" | "auto" | "none";

/** Goal of the backend `auto`, by the processor time that a saved byte may cost: up to 500, 20 or 5 ns. */
export type Goal = "memory" | "balanced" | "speed";

/**
 * Treatment of a written value that is already a well-formed envelope: `keep` sends it as it is, so that nothing is
 * compressed twice; `wrap` encodes it like any other value and reads it back as it was, for values that strangers make.
 */
export type ExistingEnvelopes = "keep" | "wrap";

/**
 * Result of reading an envelope that cannot be decoded: `raise` is an `UndecodableError`, `raw` the bytes as they are
 * stored, `miss` null, as for a key that is not there.
 */
export type OnUndecodable = "raise" | "raw" | "miss";

/** Type of keys whose values are compressed. */
export type ValueType = "strings" | "hashes" | "lists" | "streams";

/** Compression settings of a client. Names and defaults are those of Valkey GLIDE where it has them. */
export interface CompressionOptions {
  /** Default: `zstd`. */
  backend?: CompressionBackend;
  /** Goal of `auto`. Default: `balanced`. */
  goal?: Goal;
  /** Level: lower is faster, higher smaller. Default: the backend's. */
  compressionLevel?: number;
  /** Shorter values are sent as they are, in bytes, from 6. Values under 32 bytes always are. Default: 64. */
  minCompressionSize?: number;
  /** Longer values are neither compressed nor decoded, in bytes. Default: 512 MiB. */
  maxDecompressedSize?: number;
  /**
   * Most bytes of all restored values of one reply, or of the replies to one pipeline; 0 for no bound. Default: 1 GiB.
   */
  maxReplyBytes?: number;
  /** Default: `keep`. */
  existingEnvelopes?: ExistingEnvelopes;
  /** Whether zstd frames carry a checksum of the value, 4 bytes. Default: false. */
  checksum?: boolean;
  /** Default: `raise`. */
  onUndecodable?: OnUndecodable;
  /** Default: strings only. */
  valueTypes?: Iterable<ValueType>;
  /**
   * Globs of keys (as those of KEYS) whose values are sent as they are, for locks and tokens that scripts compare.
   * Default: none.
   */
  exclude?: Iterable<string | Buffer>;
  /**
   * Values from this length on, in bytes, are compressed and restored on the worker pool, so that they do not hold up
   * others. Default: 64 KiB.
   */
  workerPoolFrom?: number;
  /**
   * Dictionaries to write with: `"catalogue"` for those beside the data, `"auto"` for the same and to train some from
   * written values, a Dictionary or a path to one for that one, whatever the key. Values that others wrote with one
   * are read in any case. Default: no dictionary.
   */
  dictionary?: Dictionary | string;
  /** Prefix of the keys of dictionaries. Default: `{snugly}`. */
  dictionaryPrefix?: string;
  /** Number of the database that they are in. Default: the client's own. */
  dictionaryDatabase?: number;
  /**
   * Time between reads of the catalogue, and from the publication of a dictionary to its first use, in seconds from 0.1
   * to 86,400: the same for all of a fleet. Default: 60.
   */
  dictionaryRefresh?: number;
  /** Folder in which copies of fetched dictionaries are kept. Default: none. */
  dictionaryFolder?: string;
  /** Globs of keys whose values are neither sampled nor written with a dictionary. Default: none. */
  dictionaryExclude?: Iterable<string | Buffer>;
  /** Most bytes of samples of written values, from 1 MiB to 1 GiB. Default: 8 MiB. */
  dictionaryMemory?: number;
  /** Receives warnings, such as of unreadable values that count as absent. Default: `process.emitWarning`. */
  onWarning?: (message: string) => void;
}

/** Checked settings, with their defaults. */
export class Configuration {
  readonly backend: CompressionBackend;
  readonly goal: Goal;
  readonly compressionLevel: number | undefined;
  readonly minCompressionSize: number;
  readonly maxDecompressedSize: number;
  readonly maxReplyBytes: number;
  readonly existingEnvelopes: ExistingEnvelopes;
  readonly checksum: boolean;
  readonly onUndecodable: OnUndecodable;
  readonly valueTypes: readonly ValueType[];
  readonly exclude: readonly Buffer[];
  readonly workerPoolFrom: number;
  readonly dictionary: "catalogue" | "auto" | Dictionary | undefined;
  readonly dictionaryPrefix: string;
  readonly dictionaryDatabase: number | undefined;
  readonly dictionaryRefresh: number;
  readonly dictionaryFolder: string | undefined;
  readonly dictionaryExclude: readonly Buffer[];
  readonly dictionaryMemory: number;
  readonly onWarning: (message: string) => void;

  /** Throws ConfigurationError for what is no setting, and for values out of range. */
  constructor(options: CompressionOptions = {}) {
    for (const name of Object.keys(options)) {
      if (!NAMES.has(name)) {
        throw new ConfigurationError(`there is no setting ${name}: choose from ${[...NAMES].join(", ")}`);
      }
    }
    this.backend = oneOf("backend", options.backend ?? "zstd", ["zstd", "lz4", "auto", "none"]);
    this.goal = oneOf("goal", options.goal ?? "balanced", ["memory", "balanced", "speed"]);
    this.compressionLevel = level(this.backend, options.compressionLevel);
    this.minCompressionSize = inRange("minCompressionSize", options.minCompressionSize ?? 64, 6, MOST_BYTES);
    this.maxDecompressedSize = inRange(
      "maxDecompressedSize",
      options.maxDecompressedSize ?? 512 << 20,
      1,
      MOST_BYTES,
    );
    this.maxReplyBytes = inRange(
      "maxReplyBytes",
      options.maxReplyBytes ?? 1 << 30,
      0,
      Number.MAX_SAFE_INTEGER,
    );
    this.existingEnvelopes = oneOf("existingEnvelopes", options.existingEnvelopes ?? "keep", [
      "keep",
      "wrap",
    ]);
    this.checksum = oneOf("checksum", options.checksum ?? false, [true, false]);
    this.onUndecodable = oneOf("onUndecodable", options.onUndecodable ?? "raise", ["raise", "raw", "miss"]);
    this.valueTypes = types(options.valueTypes);
    this.exclude = globs("exclude", options.exclude);
    this.workerPoolFrom = inRange("workerPoolFrom", options.workerPoolFrom ?? 64 << 10, 1, MOST_BYTES);
    this.dictionary = dictionary(options.dictionary);
    this.dictionaryPrefix = text("dictionaryPrefix", options.dictionaryPrefix ?? "{snugly}");
    this.dictionaryDatabase =
      options.dictionaryDatabase === undefined
        ? undefined
        : inRange("dictionaryDatabase", options.dictionaryDatabase, 0, MOST_DATABASES);
    this.dictionaryRefresh = refresh(options.dictionaryRefresh ?? 60);
    this.dictionaryFolder =
      options.dictionaryFolder === undefined
        ? undefined
        : text("dictionaryFolder", options.dictionaryFolder);
    this.dictionaryExclude = globs("dictionaryExclude", options.dictionaryExclude);
    this.dictionaryMemory = inRange(
      "dictionaryMemory",
      options.dictionaryMemory ?? 8 << 20,
      1 << 20,
      1 << 30,
    );
    this.onWarning = options.onWarning ?? warn;
  }

  /** Whether values are written with dictionaries. */
  get writesDictionaries(): boolean {
    return this.dictionary !== undefined && this.backend !== "none";
  }

  /** Whether the client trains dictionaries. */
  get trains(): boolean {
    return this.writesDictionaries && this.dictionary === "auto";
  }

  /** Whether the client looks at what it writes. */
  get learns(): boolean {
    return this.trains || this.backend === "auto";
  }
}

// Greatest length that an LZ4 payload can declare.
const MOST_BYTES = 2 ** 32 - 1;
const MOST_DATABASES = 2 ** 31 - 1;

const NAMES = new Set<string>([
  "backend",
  "goal",
  "compressionLevel",
  "minCompressionSize",
  "maxDecompressedSize",
  "maxReplyBytes",
  "existingEnvelopes",
  "checksum",
  "onUndecodable",
  "valueTypes",
  "exclude",
  "workerPoolFrom",
  "dictionary",
  "dictionaryPrefix",
  "dictionaryDatabase",
  "dictionaryRefresh",
  "dictionaryFolder",
  "dictionaryExclude",
  "dictionaryMemory",
  "onWarning",
] satisfies (keyof CompressionOptions)[]);

function warn(message: string): void {
  process.emitWarning(message, { type: "SnuglyWarning" });
}

function oneOf<T>(name: string, value: T, choices: readonly T[]): T {
  if (!choices.includes(value)) {
    throw new ConfigurationError(`${name} is ${shown(value)}: choose ${choices.map(shown).join(", ")}`);
  }
  return value;
}

function inRange(name: string, value: number, lowest: number, highest: number, whose = ""): number {
  if (!Number.isInteger(value) || value < lowest || value > highest) {
    throw new ConfigurationError(
      `${name} is ${shown(value)}: ${whose}it is a whole number from ${lowest} to ${highest}`,
    );
  }
  return value;
}

function level(backend: CompressionBackend, value: number | undefined): number | undefined {
  if (value === undefined || backend === "none") {
    return undefined;
  }
  if (backend === "auto") {
    throw new ConfigurationError(
      'compressionLevel goes with a backend, and "auto" chooses both: give a goal',
    );
  }
  const levels = "addon" in loaded ? loaded.addon.levels(backend) : null;
  return levels === null
    ? value
    : inRange("compressionLevel", value, levels.lowest, levels.highest, `for ${backend} `);
}

function types(value: Iterable<ValueType> | undefined): ValueType[] {
  const choices: readonly ValueType[] = ["strings", "hashes", "lists", "streams"];
  const given = value === undefined ? (["strings"] as const) : iterated("valueTypes", value, '["strings"]');
  if (given.length === 0) {
    throw new ConfigurationError(`valueTypes is empty: give some of ${choices.join(", ")}`);
  }
  return given.map((each) => oneOf("valueTypes", each, choices));
}

function globs(name: string, value: Iterable<string | Buffer> | undefined): Buffer[] {
  return value === undefined
    ? []
    : iterated(name, value, '["session:*"]').map((glob) => {
        if (typeof glob !== "string" && !Buffer.isBuffer(glob)) {
          throw new ConfigurationError(`${name} has ${shown(glob)}: a pattern of keys is a string or a Buffer`);
        }
        return Buffer.from(glob);
      });
}

function iterated<T>(name: string, value: Iterable<T>, example: string): T[] {
  // A string is iterable, too, and never meant.
  const isGiven = typeof value === "object" && !Buffer.isBuffer(value) && Symbol.iterator in value;
  if (!isGiven) {
    throw new ConfigurationError(`${name} is ${shown(value)}: give a list, such as ${example}`);
  }
  return [...value];
}

function dictionary(value: CompressionOptions["dictionary"]): Configuration["dictionary"] {
  if (value === undefined || value === "catalogue" || value === "auto" || value instanceof Dictionary) {
    return value;
  }
  if (typeof value === "string" && value !== "") {
    return Dictionary.read(value);
  }
  throw new ConfigurationError(
    `dictionary is ${shown(value)}: give "catalogue", "auto", a Dictionary, or a path to one`,
  );
}

function refresh(value: number): number {
  if (typeof value !== "number" || !(value >= 0.1 && value <= 86400)) {
    throw new ConfigurationError(
      `dictionaryRefresh is ${shown(value)}: it is a number of seconds from 0.1 to 86400`,
    );
  }
  return value;
}

function text(name: string, value: string): string {
  if (typeof value !== "string" || value === "") {
    throw new ConfigurationError(`${name} is ${shown(value)}: give some text`);
  }
  return value;
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
