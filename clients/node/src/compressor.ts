/**
 * Treatment of commands by a client: encode the values, or refuse the command, and restore the values in the reply.
 *
 * It joins the command table and the codec, and knows no client: arguments and replies are given as arrays and Buffers.
 */

import type { Configuration } from "./configuration";
import { CommandRefusedError } from "./errors";
import { FallbackTable } from "./fallback";
import {
  LARGE,
  loaded,
  NO_REPLY,
  UNTOUCHED,
  type CommandRow,
  type CommandTable,
  type Dictionary,
  type Failure,
  type ShapeRow,
} from "./native";
import { replaced, type KeyOfValue, type Shape } from "./shapes";
import { mayBeEnvelope, Values } from "./values";

/** Most spellings of names of commands that are kept: strangers may choose them. */
const MOST_NAMES = 2000;

/** Effect of compression on a command that it touches. */
export interface Treatment {
  /** Shape of the reply, if that may have values. */
  readonly shape: Shape | undefined;
  /** Fulfilled when the values are in the arguments, if that takes a while. */
  readonly ready: Promise<void> | undefined;
}

/** Bytes that the restored values of one reply, or of all replies to a pipeline, may still have. */
export interface Budget {
  left: number;
}

/** Finds dictionaries that are not at hand. */
export interface DictionarySource {
  /** Starts keeping those that are in use, unless that is under way. */
  start(): void;
  /** Returns whether looking for a dictionary now is useless. */
  isMissing(id: number): boolean;
  /** Returns an additional explanation for a dictionary that was not found. */
  whyMissing(): string;
  /** Looks for a dictionary; undefined if there is none. */
  fetch(id: number): Promise<Dictionary | undefined>;
}

/** A command as it was sent: for the keys in errors. */
interface Sent {
  readonly name: string;
  readonly args: unknown[];
  readonly from: number;
}

/** A value of a reply that is to be restored. */
interface Stored {
  readonly bytes: Buffer;
  readonly key: KeyOfValue;
  readonly asText: boolean;
  readonly sent: Sent;
  readonly budget: Budget;
}

/** Meaning of a spelling of a name in the table. */
type Known =
  | { readonly treatment: "untouched" }
  | { readonly treatment: "asked"; readonly command: number }
  | { readonly treatment: "read"; readonly done: Treatment };

const UNTOUCHED_NAME: Known = { treatment: "untouched" };
const NO_REPLY_TREATMENT: Treatment = { shape: undefined, ready: undefined };

/** One client's compression. */
export class Compressor {
  readonly values: Values;
  /** Source of dictionaries, once there is one. */
  source: DictionarySource | undefined;
  readonly #table: CommandTable;
  readonly #shapes: readonly Shape[];
  readonly #treatments: readonly Treatment[];
  readonly #commands: ReadonlyMap<string, Known>;
  readonly #names = new Map<string, Known>();
  readonly #largeFrom: number;
  readonly #usesDictionaries: boolean;
  #plainValues = 0;
  #plainBytes = 0;

  constructor(readonly configuration: Configuration) {
    this.values = new Values(configuration, true);
    if ("addon" in loaded) {
      this.#table = new loaded.addon.CommandTable([...configuration.valueTypes]);
    } else {
      configuration.onWarning(`nothing is compressed: ${loaded.reason}`);
      this.#table = new FallbackTable(configuration.valueTypes);
    }
    this.#largeFrom = configuration.workerPoolFrom;
    this.#usesDictionaries = configuration.writesDictionaries || configuration.learns;
    this.#shapes = shapes(this.#table.shapes());
    this.#treatments = this.#shapes.map((shape) => ({ shape, ready: undefined }));
    this.#commands = new Map(this.#table.commands().map((row) => [row.name, this.#known(row)]));
  }

  /**
   * Puts the values of a command into envelopes, in its arguments.
   *
   * Throws CommandRefusedError.
   *
   * @param from Number of arguments that are the command's name: 0 or 1.
   * @returns What is to become of the reply; undefined if the command is none of our business.
   */
  request(name: string, args: unknown[], from: number): Treatment | undefined {
    const known = this.#names.get(name) ?? this.#look(name);
    if (known.treatment !== "asked") {
      return known.treatment === "read" ? known.done : undefined;
    }
    let shape: number;
    try {
      shape = this.values.encodeIn(this.#table, known.command, args, from, this.#largeFrom);
    } catch (error) {
      throw refusal(name, error);
    }
    if (this.#usesDictionaries) {
      this.source?.start();
    }
    if (shape === LARGE) {
      return this.#requestOnWorker(name, args, from);
    }
    return shape === UNTOUCHED ? undefined : this.#treatment(shape);
  }

  /** Creates the budget of one more reply, or of a pipeline. */
  budget(): Budget {
    const most = this.configuration.maxReplyBytes;
    return { left: most === 0 ? Infinity : most };
  }

  /**
   * Restores the values in a reply.
   *
   * @param asText Whether values are to be strings; otherwise they are Buffers, as is what is not restored.
   * @returns The reply, or a promise of it. Throws, or rejects with, UndecodableError.
   */
  restore(shape: Shape, reply: unknown, asText: boolean, sent: Sent, budget: Budget): unknown {
    return replaced(shape, reply, (bytes, key) =>
      mayBeEnvelope(bytes) ? this.#restored({ bytes, key, asText, sent, budget }) : this.#plain(bytes),
    );
  }

  /** Returns the counters, by name. */
  statistics(): Record<string, number> {
    this.#countPlain();
    return this.values.codec.statistics();
  }

  /** Returns the number of reads for each written value. */
  reads(): number {
    this.#countPlain();
    return this.values.codec.reads();
  }

  #known(row: CommandRow): Known {
    if (row.treatment === "read") {
      return { treatment: "read", done: this.#treatment(row.shape) };
    }
    return row.treatment === "asked" ? { treatment: "asked", command: row.number } : UNTOUCHED_NAME;
  }

  /** Looks up a name that has not been seen in this spelling. */
  #look(name: string): Known {
    const known = this.#commands.get(name.toUpperCase()) ?? UNTOUCHED_NAME;
    if (this.#names.size < MOST_NAMES) {
      this.#names.set(name, known);
    }
    return known;
  }

  #treatment(shape: number): Treatment {
    return (shape === NO_REPLY ? undefined : this.#treatments[shape]) ?? NO_REPLY_TREATMENT;
  }

  #requestOnWorker(name: string, args: unknown[], from: number): Treatment {
    const { shape, values } = this.#table.read(name, args, from);
    const { codec } = this.values;
    const encoded = values.map(async ({ at, key }) => {
      try {
        const envelope = await codec.encodeOnWorker(args[at] as string | Buffer, args[key] as string | Buffer);
        args[at] = envelope ?? args[at];
      } catch {
        // A value that cannot be encoded is sent as it is.
      }
    });
    return { shape: this.#treatment(shape).shape, ready: Promise.all(encoded).then(() => undefined) };
  }

  #plain(stored: Buffer): Buffer {
    this.#plainValues += 1;
    this.#plainBytes += stored.length;
    return stored;
  }

  #countPlain(): void {
    this.values.codec.countPlain(this.#plainValues, this.#plainBytes);
    this.#plainValues = this.#plainBytes = 0;
  }

  #restored(stored: Stored): unknown {
    const { bytes, asText, budget } = stored;
    const read = this.values.decode(bytes, asText, budget.left, this.#largeFrom);
    return read === null ? this.#restoredOnWorker(stored) : this.#outcome(stored, read);
  }

  async #restoredOnWorker(stored: Stored, dictionary?: Dictionary): Promise<unknown> {
    const { bytes, asText, budget } = stored;
    const read = await this.values.codec.decodeOnWorker(bytes, budget.left, dictionary);
    const value = Buffer.isBuffer(read) && asText ? read.toString() : read;
    return this.#outcome(stored, value ?? undefined, dictionary !== undefined);
  }

  #outcome(stored: Stored, read: Buffer | string | Failure | undefined, isLast = false): unknown {
    if (read === undefined) {
      return stored.bytes;
    }
    if (typeof read === "string" || Buffer.isBuffer(read)) {
      stored.budget.left -= read.length;
      return read;
    }
    const id = read.missingDictionary;
    if (!isLast && id !== undefined && this.source?.isMissing(id) === false) {
      return this.#restoredLater(stored, read, this.source.fetch(id));
    }
    return this.#unread(stored, read);
  }

  /** Restores a value once its dictionary has been looked for. */
  async #restoredLater(
    stored: Stored,
    failure: Failure,
    fetched: Promise<Dictionary | undefined>,
  ): Promise<unknown> {
    const dictionary = await fetched;
    return dictionary === undefined ? this.#unread(stored, failure) : this.#restoredOnWorker(stored, dictionary);
  }

  /** Returns what stands for a value that cannot be read, or throws UndecodableError. */
  #unread({ bytes, key, sent }: Stored, failure: Failure): Buffer | null {
    return this.values.unread(
      failure,
      bytes,
      () => this.#key(key, sent),
      () => this.source?.whyMissing() ?? "",
    );
  }

  #key(key: KeyOfValue, sent: Sent): Buffer | undefined {
    const named =
      typeof key === "number" ? sent.args[this.#table.keys(sent.name, sent.args, sent.from)[key] ?? -1] : key;
    return typeof named === "string" || Buffer.isBuffer(named) ? Buffer.from(named) : undefined;
  }
}

/** Makes shapes of the addon's rows, in their order: a part comes after its whole. */
function shapes(rows: ShapeRow[]): Shape[] {
  const made: Shape[] = [];
  for (let at = rows.length - 1; at >= 0; at--) {
    made[at] = shape(rows, at, made);
  }
  return made;
}

function shape(rows: readonly ShapeRow[], at: number, made: Shape[]): Shape {
  const row = rows[at];
  if (row === undefined) {
    throw new RangeError(`there is no shape ${at}`);
  }
  if (row.kind === "value" || row.kind === "transaction") {
    return { kind: row.kind };
  }
  const inner = (made[row.inner ?? -1] ??= shape(rows, row.inner ?? -1, made));
  switch (row.kind) {
    case "each":
      return { kind: "each", inner, hasArgumentsKeys: row.hasArgumentsKeys };
    case "element":
      return { kind: "element", inner, at: row.at ?? 0, hasKey: row.hasKey };
    case "pairs":
      return { kind: "pairs", inner, hasKey: row.hasKey };
  }
}

function refusal(name: string, error: unknown): unknown {
  const isRefused = error instanceof Error && "code" in error && error.code === "CommandRefused";
  return isRefused ? new CommandRefusedError(error.message, name.toUpperCase()) : error;
}
