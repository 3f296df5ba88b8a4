/**
 * The addon: what it exports, and where it is.
 *
 * It is built by `npm run addon`, or comes with the package of this machine's platform.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";

import { PLATFORM } from "./platform";

/** Reason why an envelope was not decoded. */
export interface Failure {
  why: string;
  kind: string;
  backend: number;
  missingDictionary?: number;
}

export interface CommandRow {
  name: string;
  number: number;
  /** Treatment: nothing, or a reply of its shape, whatever the arguments are; or what these decide. */
  treatment: "untouched" | "read" | "asked";
  shape: number;
}

export interface ShapeRow {
  kind: "value" | "transaction" | "each" | "element" | "pairs";
  inner?: number;
  at?: number;
  hasArgumentsKeys: boolean;
  hasKey: boolean;
}

export interface ValuePlace {
  at: number;
  key: number;
}

/** Number of a shape that says that a reply has no values. */
export const NO_REPLY = -1;
/** Number of a shape that says that a command passes as it is. */
export const UNTOUCHED = -2;
/** Number of a shape that says that a value is to be encoded on the worker pool. */
export const LARGE = -3;

export interface CommandTable {
  commands(): CommandRow[];
  shapes(): ShapeRow[];
  read(name: string, args: unknown[], from: number): { shape: number; values: ValuePlace[] };
  /** Returns the shape of the reply; the codec returns the envelopes. */
  encode(codec: ValueCodec, command: number, args: unknown[], from: number, largeFrom: number): number;
  keys(name: string, args: unknown[], from: number): number[];
}

export interface CodecSettings {
  backend: string;
  level?: number | undefined;
  minCompressionSize: number;
  maxDecompressedSize: number;
  maxReplyBytes: number;
  wraps: boolean;
  checksum: boolean;
  exclude: Buffer[];
}

export interface ValueCodec {
  encode(value: string | Buffer, key?: string | Buffer): Buffer | null;
  encodeOnWorker(value: string | Buffer, key?: string | Buffer): Promise<Buffer | null>;
  decode(
    stored: Buffer,
    asText: boolean,
    left: number,
    largeFrom: number,
    dictionary?: Dictionary,
  ): Buffer | string | number | Failure | null | undefined;
  decodeOnWorker(stored: Buffer, left: number, dictionary?: Dictionary): Promise<Buffer | Failure | null>;
  excludes(key: Buffer): boolean;
  countPlain(values: number, bytes: number): void;
  countUnread(): void;
  count(event: string): void;
  reads(): number;
  statistics(): Record<string, number>;
}

export interface Dictionary {
  readonly id: number;
  readonly bytes: Buffer;
}

export interface Dictionaries {
  areWrittenWith(): boolean;
  get(id: number): Dictionary | null;
  chosenFor(key: Buffer): number | null;
  excludes(key: Buffer): boolean;
}

export interface LearningSettings {
  goal?: string | undefined;
  trains: boolean;
  backend: string;
  level?: number | undefined;
  minCompressionSize: number;
  memory: number;
  seed: bigint;
}

export interface ExplainedRow {
  codec: string;
  level: number;
  dictionary?: number;
  values: number;
  ratio: number;
  saved: number;
  encode: number;
  decode: number;
  worth: number;
}

export interface Explained {
  pattern: string;
  goal: string;
  price: number;
  reads: number;
  decidedAt: number;
  latestRatio?: number;
  measured: ExplainedRow[];
  best: number;
}

export interface Lesson {
  readonly dictionary: Dictionary | null;
  readonly pattern: string;
  activeIn(document: Buffer | null): number | null;
  isListedIn(document: Buffer | null): boolean;
  addedTo(
    document: Buffer | null,
    trainedAt: string,
    publishedAt: number,
    lost: number | null,
  ): Buffer | null;
}

export interface Learner {
  shown(): number;
  step(now: number, reads: number): Promise<Lesson | null>;
  forget(): void;
  allowTraining(isAllowed: boolean): void;
  explain(key: Buffer, len?: number): Explained | null;
}

export interface Step {
  events: { kind: string; text: string }[];
  commands?: Buffer[][];
  sleep?: number;
  readCopies?: number[];
  writeCopies?: Dictionary[];
  removeCopies?: number[];
  found?: Dictionary[];
  pause?: number;
  isKept?: boolean;
}

export interface Failed {
  isDenied: boolean;
  reason: string;
}

export interface Steps {
  start(monotonic: number, wall: number): Step;
  replies(
    replies: (Buffer | string | number | null | unknown[] | Failed)[],
    monotonic: number,
    wall: number,
  ): Step;
  lost(reason: string, monotonic: number, wall: number): Step;
  copies(copies: { id: number; place: string; bytes: Buffer }[], monotonic: number, wall: number): Step;
  done(monotonic: number, wall: number): Step;
}

export interface Manager {
  readonly interval: number;
  fetch(ids: number[]): Steps;
  refresh(): Steps;
  keep(): Steps;
  hurry(): void;
  isMissing(id: number, monotonic: number): boolean;
  isOff(monotonic: number): boolean;
  wasOff(): boolean;
  isKnown(): boolean;
  lose(): void;
  hasPublished(dictionary: Dictionary, monotonic: number, wall: number): void;
  isNewWarning(warning: string): boolean;
}

export interface ManagerSettings {
  prefix: string;
  refresh: number;
  waits: boolean;
  hasCopies: boolean;
  readTimeout?: number | undefined;
}

/** The exports of the addon. */
export interface Addon {
  CommandTable: new (types: string[]) => CommandTable;
  ValueCodec: new (
    settings: CodecSettings,
    dictionaries: Dictionaries,
    bytes: Buffer,
    places: Buffer,
    learner?: Learner,
  ) => ValueCodec;
  Dictionary: {
    new (bytes: Buffer): Dictionary;
    train(samples: Buffer[], maxBytes: number): Promise<Dictionary>;
  };
  Dictionaries: new (
    given: Dictionary | undefined,
    writes: boolean,
    isAllowed: boolean,
    excluded: Buffer[],
  ) => Dictionaries;
  Learner: new (settings: LearningSettings, dictionaries: Dictionaries) => Learner;
  Manager: new (settings: ManagerSettings, dictionaries: Dictionaries) => Manager;
  inspect(
    stored: Buffer,
  ): { backend: number; name?: string; size?: number; dictionary?: number } | null;
  levels(backend: string): { lowest: number; highest: number; usual: number } | null;
  dictionaryKeys(prefix: string): { catalogue: Buffer; lock: Buffer };
  dictionaryKey(prefix: string, id: number): Buffer;
  processStatistics(): Record<string, number>;
  counters(): { name: string; family: string; codec?: string; help: string }[];
}

/** The addon, or the reason why it is not there. */
export const loaded: { addon: Addon } | { reason: string } = load();

function load(): { addon: Addon } | { reason: string } {
  const built = ["..", "../.."].map((folder) => join(__dirname, folder, `snugly.${PLATFORM}.node`));
  const place = built.find((file) => existsSync(file)) ?? `@snugly/${PLATFORM}`;
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an addon cannot be imported
    return { addon: require(place) as Addon };
  } catch (error) {
    const why = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return { reason: `the addon for ${PLATFORM} cannot be loaded: ${why}` };
  }
}
